// Pictures as SVG: lines over an axis, and stacked bars. Next to each of them its numbers, as a table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gar/format.hpp"
#include "report/axis.hpp"
#include "report/html.hpp"

namespace gar::report {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 320;
constexpr double kLeft = 66;
constexpr double kRight = 14;
constexpr double kTop = 10;
constexpr double kBottom = 42;
constexpr std::size_t kColors = 8;

/// A name and its colour.
using LegendEntry = std::pair<std::string, std::size_t>;

std::string legend(const std::vector<LegendEntry>& entries, const std::string& note = "") {
  std::string out = "<p class=\"legend\">";
  for (const auto& [name, color] : entries) {
    out += fmt::format("<span><i class=\"s{}\"></i>{}</span>", color % kColors, html(name));
  }
  if (!note.empty()) out += "<span>" + html(note) + "</span>";
  return out + "</p>\n";
}

std::string numbers(const std::string& table) {
  return "<details><summary>The numbers</summary>" + table + "</details>\n";
}

bool has_interval(const ChartPoint& p) { return p.low >= 0 && p.high >= p.low && std::isfinite(p.high); }

std::string line_svg(const ChartLine& line, std::size_t index, const Axis& x, const Axis& y) {
  std::string points;
  std::string marks;
  for (const ChartPoint& p : line.points) {
    if (!x.shows(p.x) || !y.shows(p.y)) continue;
    const double px = x.at(p.x);
    points += fmt::format("{:.1f},{:.1f} ", px, y.at(p.y));
    if (y.shows(p.low) && has_interval(p)) {
      marks += fmt::format("<line class=\"interval\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>", px,
                           y.at(p.low), y.at(p.high));
    }
    if (!line.is_dashed)
      marks += fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", px, y.at(p.y));
  }
  return fmt::format("<g class=\"s{}\"><polyline class=\"line{}\" points=\"{}\"/>{}</g>\n", index % kColors,
                     line.is_dashed ? " dashed" : "", points, marks);
}

std::string interval_words(ChartUnit unit, const ChartPoint& p) {
  if (p.low < 0 || p.high < 0) return tick(unit, p.y);
  return fmt::format("{} ({} to {})", tick(unit, p.y), tick(unit, p.low), tick(unit, p.high));
}

/// One row for each x that occurs.
std::string chart_table(const Chart& chart, const std::vector<const ChartLine*>& lines) {
  std::vector<double> all;
  for (const ChartLine* line : lines) {
    for (const ChartPoint& p : line->points) all.push_back(p.x);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<std::string> titles{chart.x_title};
  for (const ChartLine* line : lines) titles.push_back(line->name);
  std::vector<std::vector<std::string>> rows;
  for (const double x : all) {
    std::vector<std::string> row{tick(chart.x_unit, x)};
    for (const ChartLine* line : lines) {
      const auto found =
          std::find_if(line->points.begin(), line->points.end(), [&](const ChartPoint& p) { return p.x == x; });
      row.push_back(found == line->points.end() ? "" : interval_words(chart.y_unit, *found));
    }
    rows.push_back(std::move(row));
  }
  return table_html(titles, rows);
}

}  // namespace

std::string tick(ChartUnit unit, double value) {
  constexpr int kDigits = 3;
  switch (unit) {
    case ChartUnit::kSeconds:
      return format_seconds(value, kDigits);
    case ChartUnit::kBytes:
      return format_bytes(value);
    case ChartUnit::kPercent:
      return fmt::format("{:.3g}%", 100 * value);
    case ChartUnit::kNumber:
      break;
  }
  return fmt::format("{:.4g}", value);
}

namespace {

/// The lines of a chart that have points.
std::vector<const ChartLine*> drawn_lines(const Chart& chart) {
  std::vector<const ChartLine*> out;
  for (const ChartLine& line : chart.lines) {
    if (!line.points.empty()) out.push_back(&line);
  }
  return out;
}

/// Do all lines have one point, at the same place? Lines would show nothing then.
bool is_one_place(const std::vector<const ChartLine*>& lines) {
  return !lines.empty() && std::all_of(lines.begin(), lines.end(), [&](const ChartLine* line) {
    return line->points.size() == 1 && line->points.front().x == lines.front()->points.front().x;
  });
}

/// A bar for each line, from 0, with its interval; what is predicted is hollow.
std::string one_place_html(const Chart& chart, const std::vector<const ChartLine*>& lines) {
  constexpr double kRow = 34;
  constexpr double kNames = 170;
  constexpr double kValues = 220;
  Axis axis(false, kNames, kWidth - kValues);
  for (const ChartLine* line : lines) {
    const ChartPoint& p = line->points.front();
    axis.include(p.y);
    if (has_interval(p)) axis.include(p.high);
  }
  if (axis.is_empty()) return "";
  axis.finish(1);
  const std::string place = tick(chart.x_unit, lines.front()->points.front().x);
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}, {}\">\n", kWidth,
                                kRow * static_cast<double>(lines.size()) + 6, html(chart.title), html(place));
  std::size_t next = 0;
  for (const ChartLine* line : lines) next = std::max(next, static_cast<std::size_t>(line->color + 1));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const ChartLine& line = *lines[i];
    const ChartPoint& p = line.points.front();
    if (!axis.shows(p.y)) continue;
    const double top = kRow * static_cast<double>(i) + 6;
    const double middle = top + (kRow - 12) / 2;
    double end = axis.at(p.y);
    svg += fmt::format(
        "<g class=\"s{}\"><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>"
        "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>",
        (line.color >= 0 ? static_cast<std::size_t>(line.color) : next++) % kColors, kNames - 8, middle + 4,
        html(line.name), line.is_dashed ? "hollow" : "part", kNames, top, std::max(end - kNames, 0.5), kRow - 12);
    if (has_interval(p)) {
      svg += fmt::format("<path class=\"whisker\" d=\"M{0:.1f},{2:.1f}H{1:.1f}M{0:.1f},{3:.1f}v8M{1:.1f},{3:.1f}v8\"/>",
                         axis.at(p.low), axis.at(p.high), middle, middle - 4);
      end = std::max(end, axis.at(p.high));
    }
    svg += fmt::format("</g><text class=\"tick\" x=\"{:.1f}\" y=\"{}\">{}</text>\n", end + 6, middle + 4,
                       html(interval_words(chart.y_unit, p)));
  }
  return fmt::format("<h3>{}, {}</h3>\n<figure>\n{}</svg>\n{}</figure>\n", html(chart.title), html(place), svg,
                     numbers(chart_table(chart, lines)));
}

}  // namespace

std::string chart_html(const Chart& chart) {
  const std::vector<const ChartLine*> lines = drawn_lines(chart);
  if (is_one_place(lines)) return one_place_html(chart, lines);
  Axis x(chart.is_x_log, kLeft, kWidth - kRight);
  Axis y(chart.is_y_log, kHeight - kBottom, kTop);
  for (const ChartLine* line : lines) {
    for (const ChartPoint& p : line->points) {
      x.include(p.x);
      for (const double value : {p.y, p.low >= 0 ? p.low : p.y, p.high >= 0 ? p.high : p.y}) y.include(value);
    }
  }
  if (lines.empty() || x.is_empty() || y.is_empty()) return "";
  x.finish(chart.is_x_log ? 1.1 : 1.03);
  y.finish(chart.is_y_log ? 1.3 : 1.1);
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kWidth, kHeight, html(chart.title));
  for (const double value : x.ticks()) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text class=\"tick\" x=\"{0:.1f}\" "
        "y=\"{3}\" text-anchor=\"{5}\">{4}</text>\n",
        x.at(value), kTop, kHeight - kBottom, kHeight - kBottom + 16, html(tick(chart.x_unit, value)),
        x.at(value) > kWidth - 40 ? "end" : "middle");
  }
  for (const double value : y.ticks()) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text class=\"tick\" x=\"{3}\" "
        "y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5}</text>\n",
        kLeft, kWidth - kRight, y.at(value), kLeft - 6, y.at(value) + 4, html(tick(chart.y_unit, value)));
  }
  svg += fmt::format("<text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (kLeft + kWidth) / 2,
                     kHeight - 6, html(chart.x_title));
  std::vector<LegendEntry> entries;
  std::vector<int> known;
  bool has_twins = false;
  std::size_t next = 0;
  for (const ChartLine* line : lines) next = std::max(next, static_cast<std::size_t>(line->color + 1));
  for (const ChartLine* line : lines) {
    const bool is_twin = line->color >= 0 && std::find(known.begin(), known.end(), line->color) != known.end();
    const std::size_t color = line->color >= 0 ? static_cast<std::size_t>(line->color) : next++;
    if (line->color >= 0) known.push_back(line->color);
    svg += line_svg(*line, color, x, y);
    has_twins = has_twins || is_twin;
    if (!is_twin) entries.emplace_back(line->name + (line->is_dashed ? " (dashed)" : ""), color);
  }
  svg += "</svg>\n";
  return fmt::format("<h3>{}</h3>\n<figure>\n{}{}{}</figure>\n", html(chart.title), svg,
                     legend(entries, has_twins ? "dashed in the same colour: predicted" : ""),
                     numbers(chart_table(chart, lines)));
}

std::string bars_html(const std::string& title, const std::vector<Bar>& bars) {
  constexpr double kRow = 30;
  constexpr double kNames = 150;
  constexpr double kTimes = 80;
  std::vector<std::string> names;
  double most = 0;
  const auto total_of = [](const Bar& bar) {
    double sum = 0;
    for (const BarPart& part : bar.parts) sum += part.value;
    return sum;
  };
  for (const Bar& bar : bars) {
    most = std::max(most, total_of(bar));
    for (const BarPart& part : bar.parts) {
      if (part.value > 0 && std::find(names.begin(), names.end(), part.name) == names.end()) names.push_back(part.name);
    }
  }
  if (!(most > 0) || !std::isfinite(most)) return "";
  const double scale = (kWidth - kNames - kTimes) / most;
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                                kRow * static_cast<double>(bars.size()) + 6, html(title));
  std::vector<std::string> titles{"", "time"};
  titles.insert(titles.end(), names.begin(), names.end());
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double top = kRow * static_cast<double>(i);
    double x = kNames;
    svg +=
        fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kNames - 8, top + 20, html(bars[i].name));
    std::vector<std::string> row{bars[i].name, format_seconds(total_of(bars[i]))};
    row.resize(2 + names.size());
    for (const BarPart& part : bars[i].parts) {
      if (!(part.value > 0)) continue;
      const auto color = static_cast<std::size_t>(std::find(names.begin(), names.end(), part.name) - names.begin());
      svg += fmt::format("<rect class=\"part s{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>",
                         color % kColors, x, top + 5, part.value * scale, kRow - 10);
      x += part.value * scale;
      row[2 + color] = format_seconds(part.value);
    }
    svg += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{}\">{}</text>\n", x + 6, top + 20,
                       html(format_seconds(total_of(bars[i]))));
    rows.push_back(std::move(row));
  }
  svg += "</svg>\n";
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < names.size(); ++i) entries.emplace_back(names[i], i);
  return fmt::format("<h3>{}</h3>\n<figure>\n{}{}{}</figure>\n", html(title), svg, legend(entries),
                     numbers(table_html(titles, rows)));
}

}  // namespace gar::report
