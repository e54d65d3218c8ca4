#include "apps/preload/settings.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <limits>

#include "gar/errors.hpp"

namespace gar::preload {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): only read
  return value == nullptr ? std::string() : std::string(value);
}

bool flag(const char* name, bool otherwise) {
  const std::string text = variable(name);
  if (text.empty()) return otherwise;
  if (text == "0") return false;
  if (text == "1") return true;
  throw InvalidArgument(fmt::format("{}={} in the environment: accepted is 0 or 1", name, text));
}

std::int64_t number(const char* name, std::int64_t otherwise) {
  const std::string text = variable(name);
  if (text.empty()) return otherwise;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw InvalidArgument(fmt::format("{}={} in the environment: accepted is a whole number, 0 or more", name, text));
  }
  return value;
}

}  // namespace

Settings settings_from_environment() {
  Settings out;
  out.is_disabled = flag("GAR_DISABLE", false);
  if (out.is_disabled) return out;
  out.checks = flag("GAR_CHECK", false);
  out.upgrades_threads = flag("GAR_THREADS", true);
  out.min_bytes = number("GAR_MIN_BYTES", kDefaultMinBytes);
  out.min_bytes_nonblocking = number("GAR_MIN_BYTES", kDefaultMinBytesNonblocking);
  out.corrupted_call = number("GAR_TEST_CORRUPT", 0);
  out.reports = variable("GAR_DEBUG") == "INFO";
  return out;
}

}  // namespace gar::preload
