#include "apps/gar/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace gar::cli {
namespace {

std::string_view escape_of(Paint paint) {
  switch (paint) {
    case Paint::kBold:
      return "\x1b[1m";
    case Paint::kDim:
      return "\x1b[2m";
    case Paint::kGreen:
      return "\x1b[32m";
    case Paint::kYellow:
      return "\x1b[33m";
    case Paint::kRed:
      return "\x1b[31m";
    case Paint::kCyan:
      return "\x1b[36m";
    case Paint::kPlain:
      break;
  }
  return "";
}

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

bool use_color(ColorMode mode, std::FILE* stream) {
  if (mode != ColorMode::kAuto) return mode == ColorMode::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return isatty(fileno(stream)) == 1;
}

std::string paint(std::string_view text, Paint paint, bool enabled) {
  if (!enabled || paint == Paint::kPlain || text.empty()) return std::string(text);
  return fmt::format("{}{}\x1b[0m", escape_of(paint), text);
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

void Table::add_row(std::vector<Cell> cells) {
  cells.resize(columns_.size(), Cell(""));
  rows_.push_back(std::move(cells));
}

std::string Table::to_string(bool color) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c].text));
    widths.push_back(width);
  }
  std::string out;
  const auto add_line = [&](const std::vector<Cell>& cells) {
    std::string gap;  // blanks that are only written when something follows
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const Cell& cell = cells[c];
      const std::string padding(widths[c] - display_width(cell.text), ' ');
      if (columns_[c].is_number) gap += padding;
      if (!cell.text.empty()) {
        out += gap;
        out += paint(cell.text, cell.paint, color);
        gap.clear();
      }
      if (!columns_[c].is_number) gap += padding;
      gap += "  ";
    }
    out += '\n';
  };
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.emplace_back(column.title, Paint::kBold);
  add_line(titles);
  for (const auto& row : rows_) add_line(row);
  return out;
}

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

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace gar::cli
