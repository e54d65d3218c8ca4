// What `gar fit` prints.
#include "apps/gar/views/fit_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/gar/cli/output.hpp"

namespace gar::cli {
namespace {

std::string number(double value) { return fmt::format("{:.3g}", value); }

std::string interval(const Estimate& e) {
  if (!e.is_identified) return "not identified";
  return std::isfinite(e.high) ? fmt::format("{} to {}", number(e.low), number(e.high))
                               : fmt::format("{} or more", number(e.low));
}

/// A parameter of seconds per float, as the bandwidth that people know.
std::string bandwidth_words(double seconds_per_float) {
  return seconds_per_float > 0 ? format_bytes(4 / seconds_per_float) + "/s" : "";
}

void add_parameter(Table& table, const std::string& name, const Estimate& e, const char* unit,
                   const std::string& words) {
  table.add_row({name, {number(e.value), e.is_identified ? Paint::kPlain : Paint::kDim}, interval(e), unit, words});
}

std::string level_words(const FitReport& report, std::size_t level) {
  return report.profile.levels.size() == 1 ? "" : fmt::format(" of {}", escaped(report.profile.levels[level].name));
}

std::string threshold_words(const Estimate& threshold, const LevelProfile& level) {
  return threshold.is_identified ? "" : fmt::format("not visible: at most {} met", level.most_senders);
}

std::string parameter_table(const FitReport& report, bool color) {
  const Profile& p = report.profile;
  Table table({{"parameter", false}, {"value", true}, {"95% interval", false}, {"unit", false}, {"", false}});
  for (std::size_t i = 0; i < p.levels.size(); ++i) {
    const LevelProfile& level = p.levels[i];
    const std::string of = level_words(report, i);
    add_parameter(table, "alpha" + of, level.alpha, "s", format_seconds(level.alpha.value, 3));
    add_parameter(table, "beta" + of, level.beta, "s/float", bandwidth_words(level.beta.value));
    add_parameter(table, "epsilon" + of, level.epsilon, "s/float", "");
    add_parameter(table, "incast threshold" + of, level.incast_threshold, "senders",
                  threshold_words(level.incast_threshold, level));
    if (level.max_senders > 0) {
      add_parameter(table, "epsilon" + of + ", free", level.free_epsilon, "s/float", "");
      add_parameter(table, "incast threshold" + of + ", free", level.free_incast_threshold, "senders",
                    threshold_words(level.free_incast_threshold, level));
    }
  }
  add_parameter(table, "gamma", p.gamma, "s/float", "");
  add_parameter(table, "delta", p.delta, "s/float", "");
  if (p.mu.is_identified) add_parameter(table, "mu", p.mu, "s/message", format_seconds(p.mu.value, 3));
  add_parameter(table, "2 beta + gamma", p.two_beta_plus_gamma, "s/float", "");
  if (p.overlap.is_identified) add_parameter(table, "overlap", p.overlap, "times", "");
  std::string out = table.folded(color);
  if (p.cores > 0) out += fmt::format("ranks below a lowest switch share {:.3g} cores\n", p.cores);
  return out;
}

std::string incast_words(Incast incast, std::int64_t most_senders, const Estimate& epsilon, const Estimate& beta) {
  switch (incast) {
    case Incast::kNone:
      return fmt::format("none: up to {} senders cost no more than one", most_senders);
    case Incast::kDrift:
      return fmt::format("none; each further sender costs {}, as on networks without loss",
                         beta.value > 0 ? format_percent(epsilon.value / beta.value) : "a little");
    case Incast::kPresent:
      return "present: more senders than the threshold cost more";
    case Incast::kUnknown:
      break;
  }
  return fmt::format("not known: at most {} senders met", most_senders);
}

std::string incast_verdict(const FitReport& report) {
  std::string out;
  for (std::size_t i = 0; i < report.profile.levels.size(); ++i) {
    const LevelProfile& level = report.profile.levels[i];
    out += fmt::format("incast{}: {}\n", level_words(report, i),
                       incast_words(level.free_incast, level.most_senders, level.free_epsilon, level.beta));
    if (level.max_senders > 0) {
      out += fmt::format("  with {} senders at once: {}\n", level.max_senders,
                         incast_words(level.incast, level.most_senders, level.epsilon, level.beta));
    }
  }
  return out;
}

std::string set_words(const IncastPoint& point) {
  if (point.level == 0) return std::to_string(point.num_ranks);
  return fmt::format("{} ({} of each of {})", point.num_ranks, point.per_child, point.num_children);
}

std::string milliseconds(double seconds) { return seconds < 0 ? "" : fmt::format("{:.4g}", 1e3 * seconds); }
std::string count_or_nothing(double count) { return count < 0 ? "" : fmt::format("{:.3g}", count); }

std::string curve_table(const FitReport& report, bool color) {
  const std::vector<IncastPoint> curve = incast_curve(report.measurements);
  if (curve.empty()) return "";
  const auto any = [&](auto member) {
    return std::any_of(curve.begin(), curve.end(), [&](const IncastPoint& p) { return p.*member >= 0; });
  };
  const bool has_admitted = any(&IncastPoint::admitted_s);
  const bool has_retransmits = any(&IncastPoint::mesh_retransmits);
  const bool has_pauses = any(&IncastPoint::mesh_pauses);
  std::vector<Column> columns{{"ranks", false}, {"floats", true}, {"all ms", true}, {"next ms", true}, {"ratio", true}};
  if (has_admitted) columns.push_back({"admitted ms", true});
  if (has_retransmits) columns.insert(columns.end(), {{"sent again, all", true}, {"next", true}});
  if (has_pauses) columns.insert(columns.end(), {{"pauses, all", true}, {"next", true}});
  Table table(columns);
  for (const IncastPoint& p : curve) {
    std::vector<Cell> row{set_words(p), format_count(static_cast<std::int64_t>(p.size_floats)), milliseconds(p.mesh_s),
                          milliseconds(p.shift_s), p.shift_s > 0 ? fmt::format("{:.2f}", p.mesh_s / p.shift_s) : ""};
    if (has_admitted) row.emplace_back(milliseconds(p.admitted_s));
    if (has_retransmits) {
      row.emplace_back(count_or_nothing(p.mesh_retransmits));
      row.emplace_back(count_or_nothing(p.shift_retransmits));
    }
    if (has_pauses) {
      row.emplace_back(count_or_nothing(p.mesh_pauses));
      row.emplace_back(count_or_nothing(p.shift_pauses));
    }
    table.add_row(std::move(row));
  }
  const bool has_several =
      std::any_of(curve.begin(), curve.end(), [](const IncastPoint& p) { return p.per_child > 1; });
  return fmt::format(
             "every rank sends to all others (all), or to its neighbour (next){}:\n",
             has_several ? "; with several ranks of each, all to all also sends more over the links above" : "") +
         table.folded(color);
}

std::string residual_line(const char* of, const std::vector<Residual>& residuals) {
  if (residuals.empty()) return "";
  const ResidualSummary summary = summarise(residuals);
  const Residual& worst = summary.worst.front();
  return fmt::format(
      "residuals of {}, {} fitted median{}: median {}, p95 {}, largest {} ({}: {} measured, {} fitted)\n", of,
      residuals.size(), residuals.size() == 1 ? "" : "s", format_percent(summary.median_error),
      format_percent(summary.p95_error), format_percent(std::abs(worst.fitted_s / worst.measured_s - 1)),
      escaped(worst.what), format_seconds(worst.measured_s, 3), format_seconds(worst.fitted_s, 3));
}

/// How far off the network is, and apart from it, reductions by themselves.
std::string residual_words(const FitReport& report) {
  const ResidualParts parts = parts_of(report.profile.residuals);
  return residual_line("the network", parts.network) + residual_line("reductions in memory", parts.reductions);
}

std::string correction_words(const FitReport& report) {
  std::string out;
  for (const SizeCorrection& c : report.profile.corrections) {
    out += fmt::format("correction from {} to {}: times {:.3g} ({})\n", format_bytes(c.from_bytes),
                       std::isfinite(c.to_bytes) ? format_bytes(c.to_bytes) : "any size", c.factor.value,
                       interval(c.factor));
  }
  return out;
}

/// Is a link clearly faster or slower than its level?
bool differs(const LinkProfile& link, const Profile& profile) {
  constexpr double kClearly = 1.1;
  const auto level = static_cast<std::size_t>(link.level);
  if (level >= profile.levels.size() || !link.beta.is_identified) return false;
  const Estimate& usual = profile.levels[level].beta;
  return link.beta.low > kClearly * usual.high || kClearly * link.beta.high < usual.low;
}

std::string link_table(const FitReport& report, bool color) {
  const std::vector<LinkProfile>& links = report.profile.links;
  if (links.empty()) return "";
  Table table({{"link of", false}, {"beta", true}, {"95% interval", false}, {"", false}});
  std::size_t num_different = 0;
  for (const LinkProfile& link : links) {
    if (!differs(link, report.profile)) continue;
    ++num_different;
    table.add_row({link.name, number(link.beta.value), interval(link.beta), bandwidth_words(link.beta.value)});
  }
  if (num_different == 0) return fmt::format("single links: none of {} differs clearly from its level\n", links.size());
  return fmt::format("{} of {} single links differ from their level:\n", num_different, links.size()) +
         table.folded(color);
}

std::string percent_or_nothing(double fraction) { return fraction < 0 ? "" : format_percent(fraction); }

std::string score_table(const FitReport& report, bool color) {
  if (report.profile.validation.empty()) return "nothing was held out, so nothing is validated\n";
  Table table({{"on what was not fitted", false},
               {"cells", true},
               {"error: median", true},
               {"p95", true},
               {"max", true},
               {"regret: median", true},
               {"p95", true},
               {"max", true}});
  const auto add = [&](const std::string& name, const ValidationScore& s) {
    table.add_row({name, std::to_string(s.num_cells), percent_or_nothing(s.median_error),
                   percent_or_nothing(s.p95_error), percent_or_nothing(s.max_error),
                   percent_or_nothing(s.median_regret), percent_or_nothing(s.p95_regret),
                   percent_or_nothing(s.max_regret)});
  };
  for (const ValidationScore& s : report.profile.validation) add(s.name, s);
  const std::vector<ValidationScore>& by_size = report.profile.validation_by_size;
  if (by_size.empty() || by_size.front().to_bytes == by_size.back().to_bytes) return table.folded(color);
  for (const ValidationScore& s : by_size) {
    add(size_class_words(s) + s.name, s);
  }
  return table.folded(color);
}

std::string cell_table(const FitReport& report, bool color) {
  const std::vector<ValidationCell> cells = validation_cells(report);
  if (cells.empty()) return "";
  Table table({{"ranks", true},
               {"floats", true},
               {"algorithm", false},
               {"measured", true},
               {"GenModel", true},
               {"error", true},
               {"(a,b,g)", true},
               {"error", true}},
              3);
  const auto error = [](double predicted, double measured) {
    return predicted < 0 ? "" : fmt::format("{:+.1f}%", 100 * (predicted / measured - 1));
  };
  const auto seconds = [](double s) { return s < 0 ? "" : format_seconds(s, 3); };
  for (const ValidationCell& c : cells) {
    const Observation& o = *c.observation;
    table.add_row({std::to_string(o.servers.size()), format_count(static_cast<std::int64_t>(o.size_floats)),
                   algorithm_name(o), seconds(c.measured_s), seconds(c.genmodel_s), error(c.genmodel_s, c.measured_s),
                   seconds(c.abc_s), error(c.abc_s, c.measured_s)});
  }
  return table.folded(color);
}

std::string head_words(const FitReport& report) {
  const Provenance& p = report.profile.provenance;
  const std::string mpi = p.mpi.empty() ? "" : fmt::format(" under {}", escaped(p.mpi));
  if (!p.device.empty()) {
    const std::string how = p.transport.empty() ? "alone" : fmt::format("over {}", escaped(p.transport));
    return fmt::format("{} rank{} on {}, {}: {} measurements in {}\n", p.num_ranks, p.num_ranks == 1 ? "" : "s",
                       escaped(p.device), how, format_grouped(p.num_measurements), format_seconds(p.seconds, 3));
  }
  return fmt::format("{} ranks on '{}' over {}{}: {} measurements in {}\n", p.num_ranks,
                     escaped(report.measurements.topology.name()), p.transport.empty() ? "?" : escaped(p.transport),
                     mpi, format_grouped(p.num_measurements), format_seconds(p.seconds, 3));
}

/// Blocks that are not empty, with a line between.
std::string blocks(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (!part.empty()) out += (out.empty() ? "" : "\n") + part;
  }
  return out;
}

}  // namespace

std::string fit_text(const FitReport& report, bool color) {
  std::string notes;
  for (const std::string& text : report.profile.notes) notes += fmt::format("- {}\n", escaped(text));
  if (!notes.empty()) notes = "what these measurements do not tell, and what to know:\n" + notes;
  const bool v = report.is_validated;
  return fitted(
      blocks({head_words(report), parameter_table(report, color), link_table(report, color), incast_verdict(report),
              curve_table(report, color), residual_words(report) + correction_words(report), notes,
              v ? score_table(report, color) : "", v ? cell_table(report, color) : ""}));
}

}  // namespace gar::cli
