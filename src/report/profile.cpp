// What a profile and a fit say: parameters with intervals, the incast curve with its cause, errors and regret.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "gar/explain_profile.hpp"
#include "gar/explain_topology.hpp"
#include "gar/format.hpp"
#include "report/html.hpp"

namespace gar {
namespace {

std::string number_words(double value) { return fmt::format("{:.4g}", value); }

std::string interval_words_of(const Estimate& e) {
  if (!e.is_identified) return "not identified";
  return std::isfinite(e.high) ? fmt::format("{:.3g} to {:.3g}", e.low, e.high) : fmt::format("{:.3g} or more", e.low);
}

using Rows = std::vector<std::vector<std::string>>;

Rows parameter_rows(const Profile& profile) {
  Rows rows;
  const auto add = [&](const std::string& name, const Estimate& e, const char* unit, const std::string& words) {
    rows.push_back({name, number_words(e.value), interval_words_of(e), unit, words});
  };
  for (const LevelProfile& level : profile.levels) {
    const std::string of = profile.levels.size() == 1 ? "" : " of " + level.name;
    add("alpha" + of, level.alpha, "s", format_seconds(level.alpha.value, 3));
    add("beta" + of, level.beta, "s/float", format_link_speed(level.beta.value));
    add("epsilon" + of, level.epsilon, "s/float", "");
    add("w_t" + of, level.incast_threshold, "senders", "");
  }
  add("gamma", profile.gamma, "s/float", "");
  add("delta", profile.delta, "s/float", "");
  if (profile.mu.is_identified) add("mu", profile.mu, "s/message", format_seconds(profile.mu.value, 3));
  return rows;
}

void add_validation(ReportPage& page, const Profile& profile) {
  if (profile.validation.empty()) return;
  page.paragraph(
      "Errors and regret on what was measured and not fitted. Regret is the time lost by following a choice "
      "instead of the fastest that was measured.");
  Rows rows;
  const auto percent_or_nothing = [](double value) { return value < 0 ? std::string("-") : format_percent(value); };
  for (const ValidationScore& score : profile.validation) {
    rows.push_back({score.name, fmt::format("{}", score.num_cells), percent_or_nothing(score.median_error),
                    percent_or_nothing(score.p95_error), percent_or_nothing(score.max_error),
                    fmt::format("{}", score.num_cases), percent_or_nothing(score.median_regret),
                    percent_or_nothing(score.p95_regret), percent_or_nothing(score.max_regret)});
  }
  page.table({"", "cells", "median error", "p95", "most", "choices", "median regret", "p95", "most"}, rows);
}

void add_corrections(ReportPage& page, const Profile& profile) {
  ChartLine factors{.name = "measured / model"};
  for (const SizeCorrection& c : profile.corrections) {
    const double middle = std::sqrt(std::max(c.from_bytes, 1.0) * c.to_bytes);
    factors.points.push_back({middle, c.factor.value, c.factor.low, c.factor.high});
  }
  if (factors.points.size() > 1) {
    page.chart({.title = "What AllReduces took, relative to the model",
                .x_title = "size of the vector",
                .y_unit = ChartUnit::kNumber,
                .is_y_log = false,
                .lines = {factors}});
  } else if (!factors.points.empty()) {
    const SizeCorrection& c = profile.corrections.front();
    page.paragraph(fmt::format("AllReduces of {} to {} took {:.3f} times what the model says ({:.3f} to {:.3f}).",
                               format_bytes(c.from_bytes), format_bytes(c.to_bytes), c.factor.value, c.factor.low,
                               c.factor.high));
  }
}

/// The verdict: what the network is, and how far to trust this.
void add_profile_verdict(ReportPage& page, const Profile& profile) {
  const ResidualSummary summary = summarise(parts_of(profile.residuals).network);
  if (!profile.residuals.empty()) {
    constexpr double kGoodFit = 0.1;
    constexpr double kRoughFit = 0.3;
    page.verdict(summary.median_error <= kGoodFit   ? Tone::kGood
                 : summary.median_error > kRoughFit ? Tone::kBad
                                                    : Tone::kPlain,
                 fmt::format("The model fits the network's measurements within {} (median) and {} (95%).",
                             format_percent(summary.median_error), format_percent(summary.p95_error)));
  }
  for (const LevelProfile& level : profile.levels) {
    const bool hurts = level.free_incast == Incast::kPresent || level.incast == Incast::kPresent;
    page.verdict(hurts ? Tone::kBad : Tone::kPlain,
                 fmt::format("Links of each {}: {}; incast: {}.", level.name, format_link_speed(level.beta.value),
                             incast_words(level)));
  }
  for (const ValidationScore& score : profile.validation) {
    if (score.median_error < 0 || score.name != "GenModel") continue;
    page.verdict(
        Tone::kPlain,
        fmt::format(
            "What was not fitted is predicted within {} (median), {} (95%); the choice that follows loses {} (95%).",
            format_percent(score.median_error), format_percent(score.p95_error),
            score.p95_regret < 0 ? "an unknown time" : format_percent(score.p95_regret)));
  }
}

Origin origin_of(const Profile& profile) {
  const Provenance& from = profile.provenance;
  Origin out;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) out.facts.emplace_back(name, value);
  };
  add("measured", from.date);
  add("gar", from.gar_version);
  add("kernel", from.kernel);
  add("processor", from.cpu);
  add("MPI", from.mpi);
  add("transport", from.transport);
  add("device", from.device);
  std::string hosts;
  for (const std::string& host : from.hosts) hosts += (hosts.empty() ? "" : " ") + host;
  add("hosts", hosts);
  if (from.num_ranks > 0) add("ranks", fmt::format("{}", from.num_ranks));
  if (from.num_measurements > 0) {
    add("measurements", fmt::format("{}, in {}", from.num_measurements, format_seconds(from.seconds, 3)));
  }
  if (!from.command.empty()) out.commands.push_back(from.command);
  return out;
}

/// Meshes beside shifts: the same bytes with many senders, and with one.
void add_incast(ReportPage& page, const FitReport& report) {
  const std::vector<IncastCharts> charts = incast_charts(report);
  if (charts.empty()) return;
  page.section("Incast: what it costs when senders meet");
  for (const IncastCharts& one : charts) {
    page.paragraph(
        "Times are those of a vector of a million floats. Where all to all takes longer than one to one, senders that "
        "meet cost something: incast " +
        incast_words(report.profile.levels[static_cast<std::size_t>(one.level)]) + ".");
    page.chart(one.times);
    if (one.resent.lines.empty()) continue;
    const std::vector<ChartPoint>& again = one.resent.lines.front().points;
    const bool is_lossy = std::any_of(again.begin(), again.end(), [](const ChartPoint& p) { return p.y > 0; });
    page.paragraph(is_lossy
                       ? "The cause is seen: switches drop what does not fit their buffers, and TCP sends it again."
                       : "No TCP segment was sent again, so nothing was lost in buffers.");
    page.chart(one.resent);
  }
}

/// One chart for each number of ranks that was held out: measured lines, predicted ones dashed.
void add_held_out(ReportPage& page, const FitReport& report) {
  constexpr std::size_t kMostLines = 6;
  const std::vector<ValidationCell> cells = validation_cells(report);
  if (cells.empty()) return;
  page.section("Measured and predicted, on what was not fitted");
  std::map<std::size_t, std::map<std::string, std::pair<ChartLine, ChartLine>>> charts;
  for (const ValidationCell& cell : cells) {
    const std::string name = algorithm_name(*cell.observation);
    auto& [measured, predicted] = charts[cell.observation->servers.size()][name];
    measured.name = name;
    predicted.name = name + ", predicted";
    predicted.is_dashed = true;
    const double bytes = 4 * cell.observation->size_floats;
    std::vector<double> sorted = cell.observation->seconds;
    std::sort(sorted.begin(), sorted.end());
    measured.points.push_back({bytes, cell.measured_s, sorted.front(), sorted.back()});
    if (cell.genmodel_s > 0) predicted.points.push_back({.x = bytes, .y = cell.genmodel_s});
  }
  for (auto& [ranks, algorithms] : charts) {
    const auto by_x = [](const ChartPoint& p, const ChartPoint& q) { return p.x < q.x; };
    std::vector<std::pair<ChartLine, ChartLine>> lines;
    for (auto& [name, pair] : algorithms) {
      for (ChartLine* line : {&pair.first, &pair.second})
        std::stable_sort(line->points.begin(), line->points.end(), by_x);
      lines.push_back(std::move(pair));
    }
    // The fastest ones at the largest size; the library's own is always shown.
    std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
      const bool is_native = a.first.name == "native";
      if (is_native != (b.first.name == "native")) return is_native;
      return a.first.points.back().y < b.first.points.back().y;
    });
    Chart chart{.title = lines.size() > kMostLines
                             ? fmt::format("{} ranks, the {} fastest of {}", ranks, kMostLines, lines.size())
                             : fmt::format("{} ranks", ranks),
                .x_title = "size of the vector"};
    if (lines.size() > kMostLines) lines.resize(kMostLines);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      lines[i].first.color = static_cast<int>(i);
      lines[i].second.color = static_cast<int>(i);
      chart.lines.push_back(std::move(lines[i].first));
    }
    for (auto& [measured, predicted] : lines) chart.lines.push_back(std::move(predicted));
    page.chart(chart);
  }
}

}  // namespace

std::vector<IncastCharts> incast_charts(const FitReport& report) {
  std::vector<IncastCharts> out;
  const std::vector<IncastPoint> curve = incast_curve(report.measurements);
  for (std::size_t i = 0; i < report.profile.levels.size(); ++i) {
    ChartLine mesh{.name = "all to all"};
    ChartLine shift{.name = "one to one, the same bytes"};
    ChartLine admitted{.name = "all to all, senders admitted in turn"};
    ChartLine again{.name = "segments sent again, all to all"};
    for (const IncastPoint& p : curve) {
      if (p.level != static_cast<int>(i)) continue;
      // Sets have different lengths, so the times are those of a float per rank.
      const double scale = p.size_floats > 0 ? 1e6 / p.size_floats : 1;
      const auto add = [&](ChartLine& line, double seconds) {
        if (seconds >= 0) line.points.push_back({.x = static_cast<double>(p.num_ranks), .y = seconds * scale});
      };
      add(mesh, p.mesh_s);
      add(shift, p.shift_s);
      add(admitted, p.admitted_s);
      if (p.mesh_retransmits >= 0)
        again.points.push_back({.x = static_cast<double>(p.num_ranks), .y = p.mesh_retransmits});
    }
    if (mesh.points.empty()) continue;
    const auto by_x = [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; };
    for (ChartLine* line : {&mesh, &shift, &admitted, &again})
      std::stable_sort(line->points.begin(), line->points.end(), by_x);
    IncastCharts charts{.level = static_cast<int>(i),
                        .times = {.title = "All to all and one to one, links of each " + report.profile.levels[i].name,
                                  .x_title = "ranks",
                                  .x_unit = ChartUnit::kNumber,
                                  .y_unit = ChartUnit::kSeconds,
                                  .is_x_log = false,
                                  .is_y_log = false,
                                  .lines = {mesh, shift, admitted}},
                        .resent = {.title = "TCP segments sent again per repetition",
                                   .x_title = "ranks",
                                   .x_unit = ChartUnit::kNumber,
                                   .y_unit = ChartUnit::kNumber,
                                   .is_x_log = false,
                                   .is_y_log = false,
                                   .lines = {}}};
    if (!again.points.empty()) charts.resent.lines = {again};
    out.push_back(std::move(charts));
  }
  return out;
}

void add_to_report(ReportPage& page, const Profile& profile, const std::string& source) {
  add_profile_verdict(page, profile);
  page.section("The network: " + (source.empty() ? profile.topology.name() : source));
  page.paragraph(profile.topology.name() + ": " + topology_totals(profile.topology) + ".");
  page.table({"parameter", "value", "95% interval", "unit", ""}, parameter_rows(profile));
  add_corrections(page, profile);
  for (const LevelProfile& level : profile.levels) {
    if (level.free_incast != Incast::kPresent || !level.free_incast_threshold.is_identified) continue;
    page.paragraph(
        fmt::format("What to change: more than {:.0f} senders at the link of one {} cost time. gentree+ plans for "
                    "that; other programs "
                    "should let fewer ranks send to one at once.",
                    level.free_incast_threshold.value, level.name));
  }
  add_validation(page, profile);
  const ResidualSummary summary = summarise(profile.residuals);
  if (!summary.worst.empty()) {
    page.paragraph("What the model explains worst:");
    Rows rows;
    for (const Residual& r : summary.worst) {
      rows.push_back({r.what, format_seconds(r.measured_s), format_seconds(r.fitted_s),
                      fmt::format("{:.2f}", r.fitted_s > 0 ? r.measured_s / r.fitted_s : 0)});
    }
    page.table({"", "measured", "model", "ratio"}, rows);
  }
  page.list(profile.notes);
  report::add_origin(page, origin_of(profile));
}

void add_to_report(ReportPage& page, const FitReport& report, const std::string& source) {
  add_to_report(page, report.profile, source);
  add_incast(page, report);
  add_held_out(page, report);
}

namespace {

void add_facts(ReportPage& page, const Origin& origin, const char* before_commands) {
  std::vector<std::string> facts;
  for (const auto& [name, value] : origin.facts) facts.push_back(name + ": " + value);
  page.list(facts);
  if (origin.commands.empty()) return;
  std::string text;
  for (const std::string& command : origin.commands) text += (text.empty() ? "" : "\n") + command;
  page.paragraph(before_commands);
  page.code(text);
}

bool is_empty(const Origin& origin) { return origin.facts.empty() && origin.commands.empty(); }

}  // namespace

void report::add_origin(ReportPage& page, const Origin& origin) {
  if (is_empty(origin)) return;
  page.heading("Where these numbers come from");
  add_facts(page, origin, "Measured with:");
}

void add_to_report(ReportPage& page, const Origin& origin) {
  if (is_empty(origin)) return;
  page.section("This machine, and how this page was made");
  add_facts(page, origin, "Made with:");
}

}  // namespace gar
