// Pictures in letters. A chart is a canvas of Braille patterns, which have two by four dots each; bars are blocks,
// whose ends are exact to an eighth. Without UTF-8 every cell of a chart is one dot, and shows the letter of its line.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>

#include "gar/format.hpp"
#include "gar/plot.hpp"
#include "report/axis.hpp"
#include "report/html.hpp"

namespace gar {
namespace {

using report::Axis;
using report::tick;

constexpr std::size_t kLeastColumns = 30;
constexpr std::array<std::string_view, 6> kInks{"\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[31m", "\x1b[34m"};
constexpr std::string_view kNoInk = "\x1b[0m";
constexpr int kNoColor = -1;
constexpr std::size_t kMostLabel = 12;

std::string inked(std::string_view text, int color, bool enabled) {
  if (!enabled || color == kNoColor) return std::string(text);
  return fmt::format("{}{}{}", kInks[static_cast<std::size_t>(color) % kInks.size()], text, kNoInk);
}

/// Columns of text: its code points.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// A name that is safe to show, in at most `most` columns.
std::string shortened(std::string_view name, std::size_t most, bool is_utf8) {
  std::string text = escaped(name);
  if (!is_utf8) {
    std::string plain;
    for (const char c : text) {
      const auto code = static_cast<unsigned char>(c);
      if (code < 0x80U) plain += c;
      if (code >= 0xC0U) plain += '?';
    }
    text = plain;
  }
  if (width_of(text) <= most) return text;
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U;
    if (begins && ++shown == most) break;
  }
  return text.substr(0, end) + (is_utf8 ? "…" : "~");
}

std::string padded_left(std::string_view text, std::size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ') + std::string(text);
}

std::string padded_right(std::string_view text, std::size_t width) {
  return std::string(text) + std::string(width - std::min(width, width_of(text)), ' ');
}

std::string utf8_of(std::uint32_t code) {
  // All that is drawn is in U+0800 to U+FFFF.
  return {static_cast<char>(0xE0U | (code >> 12U)), static_cast<char>(0x80U | ((code >> 6U) & 0x3FU)),
          static_cast<char>(0x80U | (code & 0x3FU))};
}

std::string without_blanks_at_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// "a ring   b cps": entries in as many lines as they need.
class Legend {
 public:
  Legend(std::size_t columns, bool color) : columns_(columns), color_(color) {}

  void add(std::string_view mark, int color, std::string_view name) {
    const std::size_t width = width_of(mark) + 1 + width_of(name);
    if (used_ > 0 && used_ + kGap + width > columns_) {
      text_ += '\n';
      used_ = 0;
    }
    if (used_ > 0) text_ += std::string(kGap, ' ');
    used_ += (used_ > 0 ? kGap : 0) + width;
    text_ += inked(mark, color, color_) + " " + std::string(name);
  }
  [[nodiscard]] std::string text() const { return text_.empty() ? "" : text_ + "\n"; }

 private:
  static constexpr std::size_t kGap = 3;
  std::size_t columns_;
  bool color_;
  std::size_t used_ = 0;
  std::string text_;
};

/// Letters in the order of the legend.
char letter_of(std::size_t index) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return index < kLetters.size() ? kLetters[index] : '*';
}

struct Place {
  double x = 0;
  double y = 0;
};

/// Dots in cells; each cell has one colour, that of the line that was drawn last.
class Canvas {
 public:
  Canvas(std::size_t width, std::size_t height, std::size_t margin, bool is_utf8)
      : width_(width), height_(height), margin_(margin), is_utf8_(is_utf8), cells_((width + margin) * height) {}

  /// Dots of a cell.
  [[nodiscard]] std::size_t across() const { return is_utf8_ ? 2 : 1; }
  [[nodiscard]] std::size_t down() const { return is_utf8_ ? 4 : 1; }

  struct Pen {
    int color = kNoColor;
    char letter = '*';
    bool is_dotted = false;
  };
  /// A straight line. Of a dotted one every second cell is drawn.
  void line(Place from, Place to, const Pen& pen) {
    const double dx = to.x - from.x;
    const double dy = to.y - from.y;
    const auto num_steps = static_cast<std::size_t>(std::ceil(std::max({std::abs(dx), std::abs(dy), 1.0})));
    for (std::size_t i = 0; i <= num_steps; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(num_steps);
      const Place at{from.x + share * dx, from.y + share * dy};
      const auto along =
          static_cast<std::size_t>(std::lround(std::max(std::abs(dx) >= std::abs(dy) ? at.x : at.y, 0.0)));
      if (pen.is_dotted && along / across() % 2 == 1) continue;
      dot(at, pen);
    }
  }
  void dot(Place at, const Pen& pen) {
    const auto x =
        static_cast<std::size_t>(std::lround(std::clamp(at.x, 0.0, static_cast<double>(width_ * across() - 1))));
    const auto y =
        static_cast<std::size_t>(std::lround(std::clamp(at.y, 0.0, static_cast<double>(height_ * down() - 1))));
    Cell& cell = cells_[y / down() * (width_ + margin_) + x / across()];
    cell.color = pen.color;
    cell.letter = pen.is_dotted ? '.' : pen.letter;
    // Braille counts the upper three rows first, column by column.
    const std::size_t row = y % 4;
    const std::size_t column = x % 2;
    cell.dots |= 1U << (row < 3 ? row + 3 * column : 6 + column);
  }
  /// A letter right of a place, where nothing is drawn if there is such a cell close by.
  void letter(Place at, const Pen& pen) {
    const auto column = static_cast<std::ptrdiff_t>(at.x / static_cast<double>(across())) + 1;
    const auto row = static_cast<std::ptrdiff_t>(at.y / static_cast<double>(down()));
    constexpr std::array<std::ptrdiff_t, 7> kAside{0, -1, 1, -2, 2, -3, 3};
    for (const bool needs_empty : {true, false}) {
      for (const std::ptrdiff_t aside : kAside) {
        for (std::ptrdiff_t behind = 0; behind < 3; ++behind) {
          Cell* cell = find(column + behind, row + aside);
          if (cell == nullptr || cell->is_label || (needs_empty && cell->dots != 0)) continue;
          *cell = {pen.color, pen.letter, 1, true};
          return;
        }
      }
    }
  }

  [[nodiscard]] std::string row(std::size_t number, bool color) const {
    std::string out;
    std::string run;
    int run_color = kNoColor;
    const auto flush = [&] {
      out += inked(run, run_color, color);
      run.clear();
    };
    std::size_t end = width_ + margin_;
    const Cell* cells = &cells_[number * (width_ + margin_)];
    while (end > 0 && cells[end - 1].dots == 0) --end;
    for (std::size_t i = 0; i < end; ++i) {
      const Cell& cell = cells[i];
      const int own = cell.dots == 0 ? kNoColor : cell.color;
      if (own != run_color) flush();
      run_color = own;
      if (cell.dots == 0) {
        run += ' ';
      } else if (is_utf8_ && !cell.is_label) {
        constexpr std::uint32_t kBraille = 0x2800;
        run += utf8_of(kBraille + cell.dots);
      } else {
        run += cell.letter;
      }
    }
    flush();
    return out;
  }

 private:
  struct Cell {
    int color = kNoColor;
    char letter = ' ';
    std::uint32_t dots = 0;
    bool is_label = false;
  };
  Cell* find(std::ptrdiff_t column, std::ptrdiff_t row) {
    if (column < 0 || row < 0 || column >= static_cast<std::ptrdiff_t>(width_ + margin_)) return nullptr;
    if (row >= static_cast<std::ptrdiff_t>(height_)) return nullptr;
    return &cells_[static_cast<std::size_t>(row) * (width_ + margin_) + static_cast<std::size_t>(column)];
  }
  std::size_t width_;
  std::size_t height_;
  std::size_t margin_;
  bool is_utf8_;
  std::vector<Cell> cells_;
};

/// A line of a chart with what it looks like.
struct DrawnLine {
  const ChartLine* line = nullptr;
  Canvas::Pen pen;
  bool is_twin = false;  ///< dotted, in the colour of another one
};

bool is_shown(const Chart& chart, const ChartPoint& point) {
  const auto shows = [](double value, bool is_log) { return std::isfinite(value) && (!is_log || value > 0); };
  return shows(point.x, chart.is_x_log) && shows(point.y, chart.is_y_log);
}

std::vector<DrawnLine> drawn_lines(const Chart& chart) {
  std::vector<DrawnLine> out;
  std::size_t num_letters = 0;
  for (const ChartLine& line : chart.lines) {
    const bool is_empty =
        std::none_of(line.points.begin(), line.points.end(), [&](const ChartPoint& p) { return is_shown(chart, p); });
    if (is_empty) continue;
    const auto twin = std::find_if(out.begin(), out.end(), [&](const DrawnLine& other) {
      return line.color >= 0 && line.is_dashed && other.line->color == line.color;
    });
    DrawnLine drawn{&line, {static_cast<int>(num_letters), letter_of(num_letters), line.is_dashed}, twin != out.end()};
    if (drawn.is_twin) {
      drawn.pen.color = twin->pen.color;
      drawn.pen.letter = twin->pen.letter;
    } else {
      ++num_letters;
    }
    out.push_back(drawn);
  }
  return out;
}

/// A tick that has room, and where it is.
struct ShownTick {
  std::size_t at = 0;  ///< row or column
  std::string label;
};

/// The ticks that have room: all of them, the powers of ten, or every second, third, ... of these.
template <class HasRoom>
std::vector<ShownTick> thinned(const std::vector<double>& ticks, const HasRoom& room_of) {
  std::vector<double> kept = ticks;
  for (std::size_t stride = 1; stride <= ticks.size(); ++stride) {
    std::vector<ShownTick> out;
    bool fits = true;
    for (std::size_t i = 0; i < kept.size() && fits; i += stride) fits = room_of(kept[i], out);
    if (fits) return out;
    if (stride > 1) continue;
    std::vector<double> decades;
    std::copy_if(kept.begin(), kept.end(), std::back_inserter(decades), [](double value) {
      return value > 0 && std::abs(std::log10(value) - std::round(std::log10(value))) < 1e-9;
    });
    const bool is_log = kept.size() > 1 && kept.front() > 0;
    if (!is_log || decades.size() < 2) continue;
    out.clear();
    fits = true;
    for (const double value : decades) fits = fits && room_of(value, out);
    if (fits) return out;
    kept = decades;
  }
  return {};
}

/// Labels of rows from the bottom, with a free row between two of them.
std::vector<ShownTick> row_ticks(const Chart& chart, const Axis& axis, std::size_t down, std::size_t rows) {
  return thinned(axis.ticks(), [&](double value, std::vector<ShownTick>& out) {
    const double place = axis.at(value) / static_cast<double>(down);
    if (!(place >= 0) || place >= static_cast<double>(rows)) return true;
    const auto row = static_cast<std::size_t>(place);
    if (!out.empty() && row + 2 > out.back().at) return false;
    out.push_back({row, tick(chart.y_unit, value).substr(0, kMostLabel)});
    return true;
  });
}

/// Labels of columns from the left, with two blanks between them; those that would stand out are left out.
std::vector<ShownTick> column_ticks(const Chart& chart, const Axis& axis, std::size_t across, std::size_t columns,
                                    std::size_t room_left) {
  return thinned(axis.ticks(), [&](double value, std::vector<ShownTick>& out) {
    const double place = axis.at(value) / static_cast<double>(across);
    if (!(place >= 0) || place >= static_cast<double>(columns)) return true;
    ShownTick one{static_cast<std::size_t>(place), tick(chart.x_unit, value).substr(0, kMostLabel)};
    const auto begin_of = [](const ShownTick& t) {
      return static_cast<std::ptrdiff_t>(t.at) - static_cast<std::ptrdiff_t>(width_of(t.label) / 2);
    };
    const std::ptrdiff_t begin = begin_of(one);
    const auto width = static_cast<std::ptrdiff_t>(width_of(one.label));
    const bool is_inside =
        begin >= -static_cast<std::ptrdiff_t>(room_left) && begin + width <= static_cast<std::ptrdiff_t>(columns);
    if (!is_inside) return true;
    if (!out.empty()) {
      const std::ptrdiff_t end = begin_of(out.back()) + static_cast<std::ptrdiff_t>(width_of(out.back().label));
      if (begin < end + 2) return false;
    }
    out.push_back(std::move(one));
    return true;
  });
}

std::string x_axis(const std::vector<ShownTick>& ticks, std::size_t before, std::size_t columns, bool is_utf8) {
  std::string line = std::string(before, ' ') + (is_utf8 ? "└" : "+");
  std::string labels;
  auto next = ticks.begin();
  for (std::size_t i = 0; i < columns; ++i) {
    const bool is_tick = next != ticks.end() && next->at == i;
    line += is_utf8 ? (is_tick ? "┬" : "─") : (is_tick ? "+" : "-");
    if (!is_tick) continue;
    const std::size_t begin = before + 1 + i - width_of(next->label) / 2;
    labels += std::string(begin - width_of(labels), ' ') + next->label;
    ++next;
  }
  return line + "\n" + without_blanks_at_end(labels) + "\n";
}

void draw(Canvas& canvas, const Chart& chart, const DrawnLine& drawn, const Axis& x, const Axis& y) {
  std::optional<Place> before;
  for (const ChartPoint& p : drawn.line->points) {
    if (!is_shown(chart, p)) {
      before.reset();
      continue;
    }
    const Place at{x.at(p.x), y.at(p.y)};
    if (before) {
      canvas.line(*before, at, drawn.pen);
    } else {
      canvas.dot(at, drawn.pen);
    }
    before = at;
  }
}

/// Where the last point of a line is that is shown.
Place end_of(const Chart& chart, const ChartLine& line, const Axis& x, const Axis& y) {
  const auto last =
      std::find_if(line.points.rbegin(), line.points.rend(), [&](const ChartPoint& p) { return is_shown(chart, p); });
  return {x.at(last->x), y.at(last->y)};
}

bool takes_time(const BarPart& part) { return part.value > 0 && std::isfinite(part.value); }

double length_of(const Bar& bar) {
  double sum = 0;
  for (const BarPart& part : bar.parts) sum += takes_time(part) ? part.value : 0;
  return sum;
}

/// What a part of a bar is made of.
struct Fill {
  std::string mark;
  bool has_eighths = false;  ///< whether its end can be drawn exactly
};

Fill fill_of(std::size_t part, std::size_t num_parts, const TextPlot& plot) {
  if (!plot.is_utf8) return {num_parts == 1 ? "#" : std::string(1, letter_of(part)), false};
  if (plot.color || num_parts == 1) return {"█", true};
  constexpr std::array<const char*, 6> kBlocks{"█", "▓", "▒", "░", "▚", "▞"};
  return {kBlocks[part % kBlocks.size()], part % kBlocks.size() == 0};
}

/// The bar of which a second of time is `scale` columns long.
std::string bar_blocks(const Bar& bar, const std::vector<std::string>& names, double scale, const TextPlot& plot) {
  std::string out;
  double end = 0;
  std::size_t done = 0;
  const auto total = static_cast<std::size_t>(std::floor(length_of(bar) * scale + 1e-9));
  const auto last = std::find_if(bar.parts.rbegin(), bar.parts.rend(), takes_time);
  for (const BarPart& part : bar.parts) {
    if (!takes_time(part)) continue;
    end += part.value * scale;
    const auto number = static_cast<std::size_t>(std::find(names.begin(), names.end(), part.name) - names.begin());
    const Fill fill = fill_of(number, names.size(), plot);
    const auto to = std::min(total, static_cast<std::size_t>(std::lround(end)));
    std::string cells;
    for (; done < to; ++done) cells += fill.mark;
    const bool is_last = &part == &*last;
    const auto eighths = static_cast<std::uint32_t>(std::max(std::lround(8 * (end - static_cast<double>(done))), 0L));
    if (is_last && fill.has_eighths && eighths > 0) {
      constexpr std::uint32_t kFullBlock = 0x2588;  // followed by seven to one eighths
      cells += utf8_of(kFullBlock + 8 - std::min(eighths, 8U));
    } else if (is_last && eighths >= 4) {
      cells += fill.mark;
    }
    out += inked(cells, static_cast<int>(number), plot.color && !cells.empty());
  }
  return out;
}

}  // namespace

std::string chart_text(const Chart& chart, const TextPlot& plot) {
  const std::size_t columns = std::max(plot.columns, kLeastColumns);
  const std::size_t rows = std::clamp<std::size_t>(plot.lines, 4, 100);
  const std::vector<DrawnLine> lines = drawn_lines(chart);
  if (lines.empty()) return "";
  const std::size_t across = plot.is_utf8 ? 2 : 1;
  const std::size_t down = plot.is_utf8 ? 4 : 1;
  Axis y(chart.is_y_log, static_cast<double>(rows * down) - 1, 0);
  for (const DrawnLine& drawn : lines) {
    for (const ChartPoint& p : drawn.line->points) {
      if (is_shown(chart, p)) y.include(p.y);
    }
  }
  y.finish(chart.is_y_log ? 1.3 : 1.1);
  const std::vector<ShownTick> levels = row_ticks(chart, y, down, rows);
  std::size_t label_width = 0;
  for (const ShownTick& level : levels) label_width = std::max(label_width, width_of(level.label));
  const auto num_letters = static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [](const DrawnLine& drawn) { return !drawn.is_twin; }));
  const std::size_t margin = plot.is_utf8 ? std::min<std::size_t>(num_letters, 3) : 0;
  const std::size_t width = columns - label_width - 2 - margin;
  Axis x(chart.is_x_log, 0, static_cast<double>(width * across) - 1);
  for (const DrawnLine& drawn : lines) {
    for (const ChartPoint& p : drawn.line->points) {
      if (is_shown(chart, p)) x.include(p.x);
    }
  }
  x.finish(chart.is_x_log ? 1.1 : 1.03);

  Canvas canvas(width, rows, margin, plot.is_utf8);
  // The first line is on top.
  for (auto drawn = lines.rbegin(); drawn != lines.rend(); ++drawn) draw(canvas, chart, *drawn, x, y);
  for (const DrawnLine& drawn : lines) {
    if (!drawn.is_twin && plot.is_utf8) canvas.letter(end_of(chart, *drawn.line, x, y), drawn.pen);
  }
  std::string out = shortened(chart.title, columns, plot.is_utf8) + "\n";
  for (std::size_t row = 0; row < rows; ++row) {
    const auto level = std::find_if(levels.begin(), levels.end(), [&](const ShownTick& t) { return t.at == row; });
    const bool is_tick = level != levels.end();
    const char* edge = plot.is_utf8 ? (is_tick ? "┤" : "│") : (is_tick ? "+" : "|");
    out += padded_left(is_tick ? level->label : "", label_width) + " " + edge + canvas.row(row, plot.color) + "\n";
  }
  out += x_axis(column_ticks(chart, x, across, width, label_width + 2), label_width + 1, width, plot.is_utf8);
  const std::string title = shortened(chart.x_title, width, plot.is_utf8);
  if (!title.empty()) out += std::string(label_width + 2 + (width - width_of(title)) / 2, ' ') + title + "\n";
  Legend legend(columns, plot.color);
  bool has_twins = false;
  for (const DrawnLine& drawn : lines) {
    has_twins = has_twins || drawn.is_twin;
    if (drawn.is_twin) continue;
    const std::string name = drawn.line->name + (drawn.line->is_dashed ? " (dotted)" : "");
    legend.add(std::string(1, drawn.pen.letter), drawn.pen.color, shortened(name, columns - 2, plot.is_utf8));
  }
  return out + legend.text() + (has_twins ? "dotted: predicted\n" : "");
}

std::string bars_text(const std::string& title, const std::vector<Bar>& bars, const TextPlot& plot) {
  const std::size_t columns = std::max(plot.columns, kLeastColumns);
  double longest = 0;
  std::size_t name_width = 0;
  std::size_t time_width = 0;
  std::vector<std::string> parts;
  std::vector<std::string> names;
  std::vector<std::string> times;
  for (const Bar& bar : bars) {
    longest = std::max(longest, length_of(bar));
    names.push_back(shortened(bar.name, columns / 3, plot.is_utf8));
    times.push_back(shortened(format_seconds(length_of(bar)), columns / 4, plot.is_utf8));
    name_width = std::max(name_width, width_of(names.back()));
    time_width = std::max(time_width, width_of(times.back()));
    for (const BarPart& part : bar.parts) {
      const bool is_known = std::find(parts.begin(), parts.end(), part.name) != parts.end();
      if (takes_time(part) && !is_known) parts.push_back(part.name);
    }
  }
  if (!(longest > 0) || !std::isfinite(longest)) return "";
  const std::size_t room = columns - name_width - time_width - 2;
  std::string out = shortened(title, columns, plot.is_utf8) + "\n";
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const std::string blocks = bar_blocks(bars[i], parts, static_cast<double>(room) / longest, plot);
    out += padded_right(names[i], name_width) + " " + blocks + (blocks.empty() ? "" : " ") + times[i] + "\n";
  }
  if (parts.size() < 2) return out;
  Legend legend(columns, plot.color);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    legend.add(fill_of(i, parts.size(), plot).mark, static_cast<int>(i),
               shortened(parts[i], columns - 2, plot.is_utf8));
  }
  return out + legend.text();
}

}  // namespace gar
