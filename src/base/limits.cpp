#include "gar/limits.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "gar/environment.hpp"
#include "gar/errors.hpp"

namespace gar {

double require_finite(double value, std::string_view what) {
  if (std::isfinite(value)) return value;
  throw InvalidArgument(
      fmt::format("{} is {}, which is no finite number; expected smaller parameters or a smaller size", what, value));
}

std::int64_t to_whole(double value) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (std::isnan(value)) return 0;
  if (value >= kEnd) return std::numeric_limits<std::int64_t>::max();
  if (value <= -kEnd) return std::numeric_limits<std::int64_t>::min();
  return std::llround(value);
}

WorkMeter::WorkMeter(const WorkLimit& limit, std::string what)
    : limit_(limit), what_(std::move(what)), most_(limit.most * environment::number(environment::kLimit).value_or(1)) {}

void WorkMeter::refuse() const {
  throw InvalidArgument(
      fmt::format("{} asks for {:.3g} {} or more, and the limit is {:.3g}; {}={:.2g} or more in the environment allows "
                  "it, if there "
                  "is the memory and the time",
                  what_, spent_, limit_.things, most_, environment::kLimit.name, std::ceil(spent_ / limit_.most)));
}

void check_work(const WorkLimit& limit, double amount, std::string_view what) {
  WorkMeter(limit, std::string(what)).spend(amount);
}

}  // namespace gar
