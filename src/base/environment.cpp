#include "gar/environment.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "gar/errors.hpp"

namespace gar::environment {

std::string text(const EnvironmentVariable& variable) {
  // A program that runs with the rights of another user than its caller's does not let the caller decide.
  const char* value = secure_getenv(variable.name);
  return value == nullptr ? std::string() : std::string(value);
}

void refuse(const EnvironmentVariable& variable, std::string_view value) {
  throw InvalidArgument(fmt::format("{}={} in the environment: expected {}", variable.name, value, variable.accepted));
}

std::optional<bool> flag(const EnvironmentVariable& variable) {
  const std::string value = text(variable);
  if (value.empty()) return std::nullopt;
  if (value != "0" && value != "1") refuse(variable, value);
  return value == "1";
}

std::optional<std::int64_t> whole_number(const EnvironmentVariable& variable) {
  const std::string value = text(variable);
  if (value.empty()) return std::nullopt;
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  const bool is_number = error == std::errc() && end == value.data() + value.size();
  if (!is_number || static_cast<double>(out) < variable.least || static_cast<double>(out) > variable.most) {
    refuse(variable, value);
  }
  return out;
}

std::optional<double> number(const EnvironmentVariable& variable) {
  const std::string value = text(variable);
  if (value.empty()) return std::nullopt;
  char* end = nullptr;
  const double out = std::strtod(value.c_str(), &end);
  const bool is_plain = value.find_first_not_of("0123456789.eE+-") == std::string::npos;
  if (!is_plain || *end != '\0' || !std::isfinite(out) || out < variable.least || out > variable.most) {
    refuse(variable, value);
  }
  return out;
}

void check(const EnvironmentVariable& variable) {
  switch (variable.value) {
    case EnvironmentValue::kText:
      return;
    case EnvironmentValue::kFlag:
      (void)flag(variable);
      return;
    case EnvironmentValue::kWhole:
      (void)whole_number(variable);
      return;
    case EnvironmentValue::kNumber:
      (void)number(variable);
      return;
  }
}

}  // namespace gar::environment
