// Numbers with units, as people read them, and text that is safe to show.
#include "gar/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

namespace gar {
namespace {
constexpr double kBitsPerFloat = 32;

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

/// The bytes of the character that `text` begins with; 0 when they are no UTF-8.
std::size_t utf8_length(std::string_view text, std::uint32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  code = length == 1 ? first : first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    code = code << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // of so many bytes
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[length] || is_surrogate || code > 0x10ffff ? 0 : length;
}

/// Does a character do something else than to be seen?
bool is_control(std::uint32_t code) {
  const auto is_in = [code](std::uint32_t first, std::uint32_t last) { return code >= first && code <= last; };
  return code < 0x20 || is_in(0x7f, 0x9f) || code == 0x61c || is_in(0x200b, 0x200f) || is_in(0x2028, 0x202e) ||
         is_in(0x2060, 0x206f) || code == 0xfeff;
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

std::string format_link_speed(double seconds_per_float) {
  if (seconds_per_float == 0) return "unlimited";
  struct Unit {
    double bits_per_s;
    const char* name;
  };
  const double speed = kBitsPerFloat / seconds_per_float;
  for (const Unit& unit : {Unit{1e12, "Tbit/s"}, Unit{1e9, "Gbit/s"}, Unit{1e6, "Mbit/s"}, Unit{1e3, "kbit/s"}}) {
    if (speed >= unit.bits_per_s * (1 - 1e-9)) return fmt::format("{:.3g} {}", speed / unit.bits_per_s, unit.name);
  }
  return fmt::format("{:.3g} bit/s", speed);
}

std::string format_binary_bytes(std::int64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::string format_memory_bandwidth(double bytes_per_s) {
  return bytes_per_s >= 1e12 ? fmt::format("{:.2f} TB/s", bytes_per_s / 1e12)
                             : fmt::format("{:.1f} GB/s", bytes_per_s / 1e9);
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::uint32_t code = 0;
    const std::size_t length = utf8_length(text, code);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(length, 1));
    if (length > 0 && !is_control(code)) {
      out += bytes;
    } else {
      for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(bytes.size());
  }
  return out;
}

}  // namespace gar
