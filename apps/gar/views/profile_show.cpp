// What `gar profile show` says about a profile.
#include "apps/gar/views/profile_show.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "apps/gar/cli/common.hpp"
#include "gar/explain_profile.hpp"
#include "gar/fit_report.hpp"

namespace gar::cli {
namespace {

/// Seconds per float with three digits.
std::string per_float(double seconds) { return fmt::format("{:.3g}", seconds); }

template <class Format>
std::string interval(const Estimate& estimate, const Format& format) {
  if (!estimate.is_identified) return "not identified";
  return fmt::format("{} to {}", format(estimate.low), std::isinf(estimate.high) ? "?" : format(estimate.high));
}

struct Quantity {
  const char* name;
  const char* unit;
};
constexpr const char* kPerFloat = "s/float";

/// A row of the table of parameters. `words` say the same in other words.
template <class Format>
void add_parameter(Table& table, std::string where, Quantity quantity, const Estimate& estimate, const Format& format,
                   std::string words = "") {
  const Paint paint = estimate.is_identified ? Paint::kPlain : Paint::kYellow;
  table.add_row({std::move(where), quantity.name, Cell(format(estimate.value), Paint::kBold), quantity.unit,
                 Cell(interval(estimate, format), paint), std::move(words)});
}

std::string rate_words(const Estimate& beta) {
  if (beta.value <= 0) return "";
  if (!beta.is_identified || beta.low <= 0 || std::isinf(beta.high)) return format_link_speed(beta.value);
  return fmt::format("{} ({} to {})", format_link_speed(beta.value), format_link_speed(beta.high),
                     format_link_speed(beta.low));
}

std::string parameter_table(const Profile& profile, bool color) {
  Table table({{"where"}, {"parameter"}, {"value", true}, {"unit"}, {"95% interval"}, {""}}, 2);
  const auto seconds = [](double value) { return format_seconds(value, 3); };
  const auto senders = [](double value) { return fmt::format("{:g}", value); };
  for (std::size_t h = 0; h < profile.levels.size(); ++h) {
    const LevelProfile& level = profile.levels[h];
    add_parameter(table, fmt::format("level {} ({})", h, level.name), {"alpha", ""}, level.alpha, seconds);
    add_parameter(table, "", {"beta", kPerFloat}, level.beta, per_float, rate_words(level.beta));
    add_parameter(table, "", {"epsilon", kPerFloat}, level.epsilon, per_float);
    add_parameter(table, "", {"incast threshold", "senders"}, level.incast_threshold, senders,
                  "incast " + incast_words(level));
    if (level.max_senders == 0) continue;
    add_parameter(table, fmt::format("  {} admitted,", level.max_senders), {"epsilon", kPerFloat}, level.free_epsilon,
                  per_float);
    add_parameter(table, "  if all send", {"incast threshold", "senders"}, level.free_incast_threshold, senders,
                  fmt::format("incast {}", to_string(level.free_incast)));
  }
  add_parameter(table, "server", {"gamma", kPerFloat}, profile.gamma, per_float);
  add_parameter(table, "", {"delta", kPerFloat}, profile.delta, per_float,
                profile.delta.value > 0 ? fmt::format("{}/s of memory", format_bytes(4 / profile.delta.value)) : "");
  if (profile.mu.is_identified || profile.mu.value > 0) {
    add_parameter(table, "", {"mu", "per message"}, profile.mu, seconds);
  }
  add_parameter(table, "", {"2 beta + gamma", kPerFloat}, profile.two_beta_plus_gamma, per_float);
  for (const LinkProfile& link : profile.links)
    add_parameter(table, "link of " + link.name, {"beta", kPerFloat}, link.beta, per_float, rate_words(link.beta));
  return table.folded(color);
}

std::string correction_table(const std::vector<SizeCorrection>& corrections, bool color) {
  if (corrections.empty()) return "";
  Table table({{"from", true}, {"to", true}, {"correction", true}, {"95% interval"}});
  for (const SizeCorrection& c : corrections) {
    table.add_row({format_bytes(c.from_bytes), format_bytes(c.to_bytes), fmt::format("{:.3f}", c.factor.value),
                   interval(c.factor, [](double value) { return fmt::format("{:.3f}", value); })});
  }
  return "\nmeasured AllReduces relative to the model, by size\n" + table.folded(color);
}

std::string error_line(const char* of, const std::vector<Residual>& residuals) {
  if (residuals.empty()) return "";
  const ResidualSummary summary = summarise(residuals);
  return fmt::format("{} measurement{} of {}: the model is off by {} at the median, {} at the 95th percentile\n",
                     residuals.size(), residuals.size() == 1 ? "" : "s", of, format_percent(summary.median_error),
                     format_percent(summary.p95_error));
}

std::string residual_table(const std::vector<Residual>& residuals, bool color) {
  if (residuals.empty()) return "";
  const ResidualSummary summary = summarise(residuals);
  const ResidualParts parts = parts_of(residuals);
  std::string out =
      "\n" + error_line("the network", parts.network) + error_line("reductions in memory", parts.reductions);
  Table table({{"furthest off"}, {"measured", true}, {"model", true}, {"error", true}, {"weight", true}});
  for (const Residual& r : summary.worst) {
    table.add_row({r.what, format_seconds(r.measured_s), format_seconds(r.fitted_s),
                   fmt::format("{:+.1f}%", 100 * (r.fitted_s / r.measured_s - 1)), fmt::format("{:.2g}", r.weight)});
  }
  return out + table.folded(color);
}

std::string validation_table(const std::vector<ValidationScore>& scores, bool color) {
  if (scores.empty()) return "";
  const auto share = [](double value) { return value < 0 ? std::string("-") : format_percent(value); };
  Table table({{"on what was not fitted"},
               {"cells", true},
               {"error: median", true},
               {"p95", true},
               {"max", true},
               {"cases", true},
               {"regret: median", true},
               {"p95", true},
               {"max", true}});
  for (const ValidationScore& s : scores) {
    table.add_row({size_class_words(s) + s.name, fmt::to_string(s.num_cells), share(s.median_error), share(s.p95_error),
                   share(s.max_error), fmt::to_string(s.num_cases), share(s.median_regret), share(s.p95_regret),
                   share(s.max_regret)});
  }
  return "\n" + table.folded(color);
}

std::string provenance_lines(const Provenance& p) {
  std::string out;
  const auto line = [&](const char* name, const std::string& text) {
    if (!text.empty()) out += fmt::format("{:<12}{}\n", name, escaped(text));
  };
  line("measured", p.date);
  line("command", p.command);
  constexpr std::size_t kMaxHosts = 8;
  const std::vector<std::string> hosts(
      p.hosts.begin(), p.hosts.begin() + static_cast<std::ptrdiff_t>(std::min(p.hosts.size(), kMaxHosts)));
  line("hosts", fmt::format("{}{}", fmt::join(hosts, " "),
                            p.hosts.size() > kMaxHosts ? fmt::format(" and {} more", p.hosts.size() - kMaxHosts) : ""));
  line("kernel", p.kernel);
  line("cpu", p.cpu);
  line("mpi", p.mpi);
  line("device", p.device);
  line("transport", p.transport);
  if (p.num_measurements > 0)
    line("work", fmt::format("{} measurements of {} ranks in {}", format_grouped(p.num_measurements), p.num_ranks,
                             format_seconds(p.seconds, 3)));
  line("gar", p.gar_version);
  return out.empty() ? "" : "\n" + out;
}

}  // namespace

std::string profile_csv(const Profile& profile) {
  std::string out = csv_line({"where", "parameter", "unit", "value", "low", "high", "identified"});
  const auto add = [&](const std::string& where, const char* name, const char* unit, const Estimate& e) {
    out += csv_line({where, name, unit, fmt::to_string(e.value), fmt::to_string(e.low),
                     std::isinf(e.high) ? "" : fmt::to_string(e.high), e.is_identified ? "true" : "false"});
  };
  for (std::size_t h = 0; h < profile.levels.size(); ++h) {
    const LevelProfile& level = profile.levels[h];
    const std::string where = fmt::format("level {} ({})", h, level.name);
    add(where, "alpha", "s", level.alpha);
    add(where, "beta", kPerFloat, level.beta);
    add(where, "epsilon", kPerFloat, level.epsilon);
    add(where, "w_t", "senders", level.incast_threshold);
  }
  add("server", "gamma", kPerFloat, profile.gamma);
  add("server", "delta", kPerFloat, profile.delta);
  add("server", "mu", "s/message", profile.mu);
  for (const LinkProfile& link : profile.links) add("link of " + link.name, "beta", kPerFloat, link.beta);
  return out;
}

std::string profile_report(const Profile& profile, const std::string& source, bool color) {
  const Topology& t = profile.topology;
  const std::size_t levels = profile.levels.size();
  std::string out =
      fmt::format("{}: profile of {}, {} server{}, {} level{} of links\n\n", escaped(source), escaped(t.name()),
                  t.num_servers(), t.num_servers() == 1 ? "" : "s", levels, levels == 1 ? "" : "s");
  out += parameter_table(profile, color);
  if (profile.cores > 0)
    out += fmt::format(
        "\nthe ranks below a lowest switch share {:g} core{}; gamma{} are of a rank with "
        "one of its own\n",
        profile.cores, profile.cores == 1 ? "" : "s", profile.is_memory ? ", delta and level 0" : " and delta");
  out += correction_table(profile.corrections, color);
  out += residual_table(profile.residuals, color);
  std::vector<ValidationScore> scores = profile.validation;
  scores.insert(scores.end(), profile.validation_by_size.begin(), profile.validation_by_size.end());
  out += validation_table(scores, color);
  if (!profile.notes.empty()) out += "\n";
  for (const std::string& note : profile.notes)
    out += fmt::format("{} {}\n", paint("note:", Paint::kYellow, color), escaped(note));
  return fitted(out + provenance_lines(profile.provenance));
}

}  // namespace gar::cli
