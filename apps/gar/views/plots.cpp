#include "apps/gar/views/plots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gar::cli {
namespace {

TextPlot terminal_plot(const Context& context) {
  return {.columns = terminal_columns(), .color = use_color(context.color, stdout), .is_utf8 = is_utf8_shown()};
}

/// Adds a point to the line of that name, which is made when there is none.
void add_to_line(std::vector<ChartLine>& lines, const std::string& name, ChartPoint point) {
  auto line = std::find_if(lines.begin(), lines.end(), [&](const ChartLine& l) { return l.name == name; });
  if (line == lines.end()) line = lines.insert(lines.end(), {.name = name});
  line->points.push_back(point);
}

void sort_points(std::vector<ChartLine>& lines) {
  for (ChartLine& line : lines) {
    std::stable_sort(line.points.begin(), line.points.end(),
                     [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  }
}

/// A level line from the first to the last of all points.
ChartLine level_line(const std::vector<ChartLine>& lines, const std::string& name, double y) {
  double first = std::numeric_limits<double>::infinity();
  double last = 0;
  for (const ChartLine& line : lines) {
    for (const ChartPoint& p : line.points) {
      first = std::min(first, p.x);
      last = std::max(last, p.x);
    }
  }
  return {.name = name, .points = {{.x = first, .y = y}, {.x = last, .y = y}}, .is_dashed = true};
}

/// The predicted time of an algorithm; of several with other factors the best one. Negative: it is not there.
double seconds_of(const PredictAnswer& answer, const AlgorithmSpec& spec) {
  const auto row = std::find_if(answer.results.begin(), answer.results.end(),
                                [&](const PredictRow& r) { return r.spec.name == spec.name; });
  return row == answer.results.end() ? -1 : row->best_seconds();
}

bool have_one_curve(const std::vector<PredictAnswer>& answers, const AlgorithmSpec& a, const AlgorithmSpec& b) {
  constexpr double kSame = 0.002;
  return std::all_of(answers.begin(), answers.end(), [&](const PredictAnswer& answer) {
    const double first = seconds_of(answer, a);
    return std::abs(first - seconds_of(answer, b)) <= kSame * std::abs(first);
  });
}

/// How far the algorithm is from the best where it is closest to it.
double least_ratio(const std::vector<PredictAnswer>& answers, const AlgorithmSpec& spec) {
  double least = std::numeric_limits<double>::infinity();
  for (const PredictAnswer& answer : answers) {
    const double best = answer.results.front().best_seconds();
    const double seconds = seconds_of(answer, spec);
    if (seconds >= 0 && best > 0) least = std::min(least, seconds / best);
  }
  return least;
}

}  // namespace

void print_plot(const Context& context, const Chart& chart) {
  if (!draws(context)) return;
  const std::string text = chart_text(chart, terminal_plot(context));
  if (!text.empty()) print("\n" + text);
}

void print_plot(const Context& context, const std::string& title, const std::vector<Bar>& bars) {
  if (!draws(context)) return;
  const std::string text = bars_text(title, bars, terminal_plot(context));
  if (!text.empty()) print("\n" + text);
}

void print_commented_plot(const Context& context, const Chart& chart) {
  if (!draws(context)) return;
  TextPlot plot = terminal_plot(context);
  constexpr std::string_view kMark = "# ";
  plot.columns -= kMark.size();
  std::string text = chart_text(chart, plot);
  if (text.empty()) return;
  std::string out = "#\n";
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    out += std::string(kMark) + text.substr(begin, end + 1 - begin);
    begin = end + 1;
  }
  print(out);
}

Chart predict_chart(const std::vector<VectorSize>& sizes, const std::vector<PredictAnswer>& answers) {
  constexpr std::size_t kMostLines = 6;
  std::vector<AlgorithmSpec> specs;
  for (const PredictAnswer& answer : answers) {
    for (const PredictRow& row : answer.results) {
      const bool is_known = std::any_of(specs.begin(), specs.end(),
                                        [&](const AlgorithmSpec& spec) { return spec.name == row.spec.name; });
      if (!is_known) specs.push_back(row.spec);
    }
  }
  std::stable_sort(specs.begin(), specs.end(), [&](const AlgorithmSpec& a, const AlgorithmSpec& b) {
    return least_ratio(answers, a) < least_ratio(answers, b);
  });
  const std::size_t num_all = specs.size();
  if (num_all > kMostLines) {
    // Of those with the same curve one is enough.
    std::vector<AlgorithmSpec> different;
    for (const AlgorithmSpec& spec : specs) {
      const bool is_twin = std::any_of(different.begin(), different.end(), [&](const AlgorithmSpec& other) {
        return have_one_curve(answers, spec, other);
      });
      if (!is_twin && different.size() < kMostLines) different.push_back(spec);
    }
    specs = different;
  }
  Chart chart{.title = specs.size() < num_all
                           ? fmt::format("predicted time, without {} algorithms that are slower or as fast as another",
                                         num_all - specs.size())
                           : "predicted time",
              .x_title = "size of the vector",
              .lines = {}};
  for (const AlgorithmSpec& spec : specs) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const double seconds = seconds_of(answers[i], spec);
      if (seconds < 0) continue;
      add_to_line(chart.lines, std::string(spec.name), {.x = static_cast<double>(sizes[i].bytes), .y = seconds});
    }
  }
  sort_points(chart.lines);
  return chart;
}

std::vector<Bar> predict_bars(const std::vector<const PredictRow*>& rows) {
  std::vector<Bar> out;
  for (const PredictRow* row : rows) out.push_back(terms_bar(row->algorithm(), row->best_terms()));
  return out;
}

namespace {

/// The line that a row belongs to; what NCCL says it took differs from size to size.
std::string line_name(const Results& results, std::size_t row) {
  const std::string& label = results.rows[row].label;
  return results.nccl ? label.substr(0, label.find(',')) : label;
}

}  // namespace

Chart diagnose_chart(const Results& results, const std::vector<Observation>& observations, const Diagnosis& diagnosis) {
  Chart chart{.title = "measured / expected",
              .x_title = "size of the vector",
              .y_unit = ChartUnit::kNumber,
              .is_y_log = false,
              .lines = {}};
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const Residual& r = diagnosis.rows[i];
    const ResultRow& row = results.rows[i];
    if (!(r.fitted_s > 0)) continue;
    const std::string label = line_name(results, i);
    const std::string name = label.empty() ? to_string(observations[i].algorithm) : label;
    add_to_line(chart.lines, name, {.x = row.bytes, .y = r.measured_s / r.fitted_s});
  }
  sort_points(chart.lines);
  if (!chart.lines.empty()) chart.lines.push_back(level_line(chart.lines, "as expected", 1));
  return chart;
}

Chart diagnose_chart(const Results& results, const LimitDiagnosis& diagnosis) {
  Chart chart{.title = "share of what the links allow",
              .x_title = "size of the vector",
              .y_unit = ChartUnit::kPercent,
              .is_y_log = false,
              .lines = {}};
  for (std::size_t i = 0; i < diagnosis.rows.size(); ++i) {
    const std::string label = line_name(results, i);
    add_to_line(chart.lines, label.empty() ? "measured" : label,
                {.x = diagnosis.rows[i].bytes, .y = diagnosis.rows[i].share()});
  }
  sort_points(chart.lines);
  if (!chart.lines.empty()) chart.lines.push_back(level_line(chart.lines, "all of it", 1));
  return chart;
}

}  // namespace gar::cli
