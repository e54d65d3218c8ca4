// Numbers with their units, rounded for people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "gar/explain.hpp"

namespace gar {

namespace {

/// Decimals that show `digits` significant digits of a value from 1 to below 1000.
int decimals_for(double value, int digits) {
  const int before_point = value >= 100 ? 3 : value >= 10 ? 2 : 1;
  return std::max(digits - before_point, 0);
}

/// Rounded to `digits` significant digits, so that 999.96 ms becomes 1.000 s and not 1000.0 ms.
double rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value)))));
  const double result = std::round(value * scale) / scale;
  return std::isfinite(result) ? result : value;
}

}  // namespace

std::string format_seconds(double seconds, int digits) {
  if (seconds == 0) return "0 s";
  if (!std::isfinite(seconds)) return fmt::format("{} s", seconds);
  if (seconds < 0) return "-" + format_seconds(-seconds, digits);
  const double value = rounded(seconds, digits);
  if (value >= 1000) return fmt::format("{:.0f} s", value);
  struct Unit {
    double seconds;
    std::string_view name;
  };
  constexpr Unit kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  for (const Unit& unit : kUnits) {
    // The tolerance keeps a rounded 1e-3 in milliseconds, although 1e-3 / 1e-3 may come out below 1.
    const double scaled = value / unit.seconds;
    if (scaled >= 1 - 1e-12) return fmt::format("{:.{}f} {}", scaled, decimals_for(scaled, digits), unit.name);
  }
  return fmt::format("{:.{}g} ns", value * 1e9, digits);
}

std::string format_bytes(double bytes) {
  constexpr std::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = rounded(bytes, 4);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::string format_count(std::int64_t count) {
  std::int64_t digits = count;
  int zeros = 0;
  while (digits != 0 && digits % 10 == 0) {
    digits /= 10;
    ++zeros;
  }
  const std::string mantissa = fmt::format("{}", digits);
  const int exponent = zeros + static_cast<int>(mantissa.size()) - 1;
  if (exponent < 5 || mantissa.size() > 4) return fmt::format("{}", count);
  if (mantissa.size() == 1) return fmt::format("{}e{}", mantissa, exponent);
  return fmt::format("{}.{}e{}", mantissa.substr(0, 1), mantissa.substr(1), exponent);
}

std::string format_grouped(std::int64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t i = text.size(); i > 3;) {
    i -= 3;
    text.insert(i, ",");
  }
  return text;
}

std::string format_percent(double fraction) { return fmt::format("{:.1f}%", 100 * fraction); }

}  // namespace gar
