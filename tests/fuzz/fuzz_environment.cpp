// The value of every GAR_* variable: the readers either throw InvalidArgument or return what lies within the variable's
// limits.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "fuzz/harness.hpp"
#include "gar/environment.hpp"
#include "gar/errors.hpp"

namespace {

using gar::fuzz::attempt;
using gar::fuzz::require;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gar::environment;
  const std::string value(reinterpret_cast<const char*>(data), size);
  const std::string seen = value.substr(0, value.find('\0'));
  for (const gar::EnvironmentVariable& variable : kAll) {
    const auto is_within = [&](double number) { return number >= variable.least && number <= variable.most; };
    setenv(variable.name, seen.c_str(), 1);
    require(text(variable) == seen);
    attempt([&] { require(flag(variable).has_value() == !seen.empty()); });
    attempt([&] {
      const std::optional<std::int64_t> whole = whole_number(variable);
      require(!whole || is_within(static_cast<double>(*whole)));
    });
    attempt([&] {
      const std::optional<double> read = number(variable);
      require(!read || (std::isfinite(*read) && is_within(*read)));
    });
    unsetenv(variable.name);
  }
  return 0;
}
