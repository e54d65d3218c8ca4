// Results of a benchmark: curves with intervals, who is faster, how far predictions and the lower limit are away.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "gar/errors.hpp"
#include "gar/fit.hpp"
#include "gar/format.hpp"
#include "gar/model.hpp"
#include "gar/stats.hpp"
#include "report/html.hpp"

namespace gar {
namespace {

/// One contestant: its rows, ascending by size.
struct Series {
  std::string name;
  ChartLine measured;
  ChartLine predicted;
};

std::string series_name(const Results& results, const ResultRow& row) {
  if (results.format == "gar bench") return parse_bench_label(row.label).name;
  // What NCCL says it took differs from size to size, and one line is for all sizes.
  if (results.nccl) return row.label.substr(0, row.label.find(','));
  if (!row.label.empty()) return row.label;
  return row.algorithm.empty() ? results.format : row.algorithm;
}

std::vector<Series> series_of(const Results& results) {
  std::vector<Series> out;
  for (std::size_t i = 0; i < results.rows.size(); ++i) {
    const ResultRow& row = results.rows[i];
    const std::string name = series_name(results, row);
    auto found = std::find_if(out.begin(), out.end(), [&](const Series& s) { return s.name == name; });
    if (found == out.end())
      found = out.insert(out.end(), Series{name, {.name = name}, {.name = name + ", predicted", .is_dashed = true}});
    ChartPoint point{.x = row.bytes, .y = row.seconds};
    if (i < results.details.size()) {
      point.low = results.details[i].low_s;
      point.high = results.details[i].high_s;
      if (results.details[i].predicted_s > 0)
        found->predicted.points.push_back({.x = row.bytes, .y = results.details[i].predicted_s});
    }
    found->measured.points.push_back(point);
  }
  const auto by_x = [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; };
  for (Series& s : out) {
    std::stable_sort(s.measured.points.begin(), s.measured.points.end(), by_x);
    std::stable_sort(s.predicted.points.begin(), s.predicted.points.end(), by_x);
  }
  return out;
}

/// Times of `slow` over those of `fast`, at the sizes that both have.
std::vector<std::pair<double, double>> ratios_of(const ChartLine& fast, const ChartLine& slow) {
  std::vector<std::pair<double, double>> out;
  for (const ChartPoint& a : fast.points) {
    for (const ChartPoint& b : slow.points) {
      if (a.x == b.x && a.y > 0) out.emplace_back(a.x, b.y / a.y);
    }
  }
  return out;
}

/// Ratios from here on are called level: what two launches differ by.
constexpr double kLevel = 0.97;

void compare_with_native(ReportPage& page, const std::vector<Series>& series, const std::string& source) {
  const auto native = std::find_if(series.begin(), series.end(), [](const Series& s) { return s.name == "native"; });
  if (native == series.end()) return;
  for (const Series& s : series) {
    if (&s == &*native) continue;
    const auto ratios = ratios_of(s.measured, native->measured);
    if (ratios.empty()) continue;
    std::vector<double> values;
    auto least = ratios.front();
    for (const auto& ratio : ratios) {
      values.push_back(ratio.second);
      if (ratio.second < least.second) least = ratio;
    }
    const double mean = geometric_mean(values);
    std::string slower;
    for (const auto& [bytes, ratio] : ratios) {
      if (ratio < kLevel) slower += (slower.empty() ? "" : ", ") + format_bytes(bytes);
    }
    const std::string where = values.size() == 1
                                  ? fmt::format("at {}", format_bytes(least.first))
                                  : fmt::format("(geometric mean over {} sizes), {:.2f} times at {}, the least",
                                                values.size(), least.second, format_bytes(least.first));
    page.verdict(mean >= 1 ? Tone::kGood : Tone::kBad,
                 fmt::format("{}: {} is {:.2f} times as fast as the MPI library's own AllReduce {}.", source, s.name,
                             mean, where));
    if (!slower.empty()) {
      page.verdict(
          Tone::kBad,
          fmt::format(
              "{}: the library's own is faster than {} at {}. What to change: communicators over MPI that explore (the "
              "default) take the library's own where it wins, and gar tune keeps such decisions.",
              source, s.name, slower));
    }
  }
}

void judge_predictions(ReportPage& page, const std::vector<Series>& series, const std::string& source) {
  std::vector<double> errors;
  for (const Series& s : series) {
    for (const auto& [bytes, ratio] : ratios_of(s.predicted, s.measured)) errors.push_back(std::abs(ratio - 1));
  }
  if (errors.empty()) return;
  std::sort(errors.begin(), errors.end());
  page.verdict(Tone::kPlain,
               errors.size() == 1
                   ? fmt::format("{}: the prediction is off by {}.", source, format_percent(errors.front()))
                   : fmt::format("{}: predictions are off by {} (median) and {} (95%).", source,
                                 format_percent(quantile(errors, 0.5)), format_percent(quantile(errors, 0.95))));
}

void judge_by_profile(ReportPage& page, const Results& results, const Profile& profile, const std::string& source) {
  const std::int64_t known = profile.topology.num_servers();
  const std::int64_t num_ranks = results.num_ranks > 0 ? results.num_ranks : known;
  if (num_ranks < 2 || num_ranks > known) {
    page.verdict(Tone::kPlain, fmt::format("{} is of {} ranks and the profile of {}, so they are not compared.", source,
                                           num_ranks, known));
    return;
  }
  const std::vector<Observation> observations = observations_of(results.rows, profile.topology, num_ranks);
  const Diagnosis diagnosis = diagnose(profile, observations);
  for (const std::string& words : diagnosis.words) {
    page.verdict(!diagnosis.is_judged  ? Tone::kPlain
                 : diagnosis.is_normal ? Tone::kGood
                                       : Tone::kBad,
                 fmt::format("{}: {}{}", source, words, words.ends_with('.') ? "" : "."));
  }
}

/// How far the best of each size is from what no plan can beat on the network.
void add_bound(ReportPage& page, Chart& chart, const std::vector<Series>& series, const Results& results,
               const Topology& network, const std::string& source) {
  if (results.num_ranks > 0 && results.num_ranks != network.num_servers()) return;
  std::map<double, double> best;
  for (const Series& s : series) {
    for (const ChartPoint& p : s.measured.points) {
      const auto [at, is_new] = best.emplace(p.x, p.y);
      if (!is_new) at->second = std::min(at->second, p.y);
    }
  }
  ChartLine bound{.name = "lower limit", .is_dashed = true};
  double worst = 0;
  double worst_at = 0;
  std::string binding;
  for (const auto& [bytes, seconds] : best) {
    const LowerBound limit = lower_bound(network, bytes / 4);
    if (!(limit.seconds() > 0)) continue;
    bound.points.push_back({.x = bytes, .y = limit.seconds()});
    if (seconds / limit.seconds() > worst) {
      worst = seconds / limit.seconds();
      worst_at = bytes;
      binding = limit.binding();
    }
  }
  if (bound.points.empty()) return;
  chart.lines.push_back(bound);
  const std::string where = bound.points.size() == 1
                                ? fmt::format("the fastest takes {:.2f} times the lower limit", worst)
                                : fmt::format("the fastest is furthest from the lower limit at {}, {:.2f} times it",
                                              format_bytes(worst_at), worst);
  page.verdict(Tone::kPlain, fmt::format("{}: {} ({}).", source, where, binding));
}

Chart chart_of(const Results& results, const std::vector<Series>& series) {
  Chart chart{.title = fmt::format("{}{}", results.format,
                                   results.num_ranks > 0 ? fmt::format(", {} ranks", results.num_ranks) : ""),
              .x_title = "size of the vector"};
  for (std::size_t i = 0; i < series.size(); ++i) {
    chart.lines.push_back(series[i].measured);
    chart.lines.back().color = static_cast<int>(i);
  }
  for (std::size_t i = 0; i < series.size(); ++i) {
    chart.lines.push_back(series[i].predicted);
    chart.lines.back().color = static_cast<int>(i);
  }
  return chart;
}

}  // namespace

Chart results_chart(const Results& results) { return chart_of(results, series_of(results)); }

void add_to_report(ReportPage& page, const Results& results, const Profile* profile, const std::string& source,
                   const Topology* network) {
  const std::vector<Series> series = series_of(results);
  compare_with_native(page, series, source);
  if (profile != nullptr) judge_by_profile(page, results, *profile, source);
  judge_predictions(page, series, source);
  Chart chart = chart_of(results, series);
  if (network == nullptr && profile != nullptr) network = &profile->topology;
  if (network != nullptr) add_bound(page, chart, series, results, *network, source);
  page.section("Measured: " + source);
  page.chart(chart);
  report::add_origin(page, results.origin);
}

}  // namespace gar
