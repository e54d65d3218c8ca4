// What `gar plan` prints for people.
#include "apps/gar/views/plan_explain.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/gar/cli/algorithms.hpp"
#include "apps/gar/cli/output.hpp"

namespace gar::cli {
namespace {

constexpr std::size_t kShownCandidates = 5;

std::string yes(bool value) { return value ? "yes" : "no"; }

void print_switches(const PlanReport& r, bool color) {
  Table table({{"switch"}, {"count", true}, {"algorithm"}, {"factors"}, {"rearranged"}, {"its stages", true}});
  for (const SwitchChoice& s : r.planned.tree.switches) {
    table.add_row({s.name, fmt::format("{}", s.count), Cell(s.algorithm, Paint::kGreen), factor_words(s.factors),
                   yes(s.is_rearranged), format_seconds(s.seconds())});
  }
  print(table.to_string(color));
}

void print_stages(const PlanReport& r, bool color) {
  Table table({{"half"},
               {"stage"},
               {"steps", true},
               {"time", true},
               {"alpha", true},
               {"beta", true},
               {"gamma", true},
               {"delta", true},
               {"epsilon", true},
               {"busiest link"},
               {"senders", true}});
  for (const StageCost& s : r.stages) {
    const Terms t = s.at(r.size.floats());
    std::vector<Cell> row{r.plan.is_explicit() ? "step"
                          : s.is_gather        ? "gather"
                                               : "scatter",
                          s.label, fmt::format("{}", s.num_steps), Cell(format_seconds(t.total()), Paint::kBold)};
    for (const double x : {t.alpha, t.beta, t.gamma, t.delta, t.epsilon}) {
      row.emplace_back(format_seconds(x, 3), x == 0 ? Paint::kDim : Paint::kPlain);
    }
    row.emplace_back(s.link);
    row.emplace_back(fmt::format("{}", s.senders), t.epsilon > 0 ? Paint::kYellow : Paint::kPlain);
    table.add_row(std::move(row));
  }
  print(table.to_string(color));
}

// Which terms make the difference between two ways.
std::string difference(const Terms& chosen, const Terms& other) {
  struct Part {
    const char* name;
    double seconds;
  };
  std::vector<Part> parts{{"latency", other.alpha - chosen.alpha},
                          {"link time", other.beta - chosen.beta},
                          {"adding", other.gamma - chosen.gamma},
                          {"memory access", other.delta - chosen.delta},
                          {"incast", other.epsilon - chosen.epsilon}};
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return std::abs(a.seconds) > std::abs(b.seconds); });
  std::string out;
  for (const Part& p : parts) {
    if (std::abs(p.seconds) < 0.02 * std::abs(parts.front().seconds) || p.seconds == 0) continue;
    out += fmt::format("{}{}{} {}", out.empty() ? "" : ", ", p.seconds > 0 ? "+" : "-",
                       format_seconds(std::abs(p.seconds), 3), p.name);
  }
  return out.empty() ? "the same" : out;
}

void print_switch(const SwitchChoice& s, bool is_chunked, bool color) {
  print(fmt::format("\n{}{}: {} {}, {}\n", paint(s.name, Paint::kBold, color),
                    s.count > 1 ? fmt::format(" ({} alike)", s.count) : "", s.algorithm, factor_words(s.factors),
                    format_seconds(s.seconds())));
  print(fmt::format("    alpha {}, beta {}, gamma {}, delta {}, epsilon {}\n", format_seconds(s.terms.alpha, 3),
                    format_seconds(s.terms.beta, 3), format_seconds(s.terms.gamma, 3), format_seconds(s.terms.delta, 3),
                    format_seconds(s.terms.epsilon, 3)));
  std::size_t shown = 0;
  const SwitchCandidate* previous = nullptr;
  for (const SwitchCandidate& c : s.candidates) {
    const bool is_chosen = c.algorithm == s.algorithm && c.factors == s.factors;
    const bool repeats = previous != nullptr && previous->algorithm == c.algorithm &&
                         std::abs(previous->terms.total() - c.terms.total()) <= 1e-9 * c.terms.total();
    if ((shown >= kShownCandidates || repeats) && !is_chosen) continue;
    previous = &c;
    ++shown;
    print(fmt::format("  {} {:<6}{:<14} {:>10}  {}\n", is_chosen ? "*" : " ", c.algorithm, factor_words(c.factors),
                      format_seconds(c.terms.total()), is_chosen ? "chosen" : difference(s.terms, c.terms)));
  }
  if (s.algorithm == "acps") print("    the children hold different intervals: pieces go straight to their owners\n");
  if (s.candidates.size() > kShownCandidates) {
    print(fmt::format("    of {} candidates\n", s.candidates.size()));
  }
  const auto chosen = std::find_if(s.candidates.begin(), s.candidates.end(), [&](const SwitchCandidate& c) {
    return c.algorithm == s.algorithm && c.factors == s.factors;
  });
  if (chosen == s.candidates.begin() && s.candidates.size() > 1) {
    const double margin = s.candidates[1].terms.total() / std::max(s.seconds(), 1e-300) - 1;
    print(fmt::format("    margin {}\n", format_percent(margin)));
  } else if (chosen != s.candidates.end() && chosen != s.candidates.begin() && is_chunked) {
    print(
        "    slower on its own, but in chunks it overlaps with the other levels: fewer steps or a less busy link "
        "count\n");
  }
  for (const Rearrangement& x : s.rearrangements) print(fmt::format("    rearrangement: {}\n", x.reason));
}

void print_stage_words(const PlanReport& r) {
  print(fmt::format("\nwhere the time goes{}\n", r.plan.num_chunks > 1 ? ", if the vector ran in one piece" : ""));
  std::size_t n = 0;
  for (const StageCost& s : r.stages) {
    const Terms t = s.at(r.size.floats());
    const double link = t.beta + t.epsilon;
    std::string incast;
    if (t.epsilon > 0) {
      incast = fmt::format("; more than the threshold of {:g}, so incast is {} of that", s.incast_threshold,
                           format_percent(t.epsilon / link));
    }
    const std::string calculation = t.gamma + t.delta > 0 ? fmt::format("; then reductions of {} operands, {}",
                                                                        s.fan_in, format_seconds(t.gamma + t.delta, 3))
                                                          : "";
    print(fmt::format("  {}. {} ({}): {} of latency; the {} carries {} of the vector{} from {} sender{} in {}{}{}\n",
                      ++n, s.label,
                      r.plan.is_explicit() ? "explicit"
                      : s.is_gather        ? "AllGather"
                                           : "ReduceScatter",
                      format_seconds(t.alpha, 3), s.link, format_percent(s.volume),
                      s.num_steps > 1 ? fmt::format(" in each of {} steps", s.num_steps) : "", s.senders,
                      s.senders == 1 ? "" : "s", format_seconds(link, 3), incast, calculation));
  }
}

void print_candidates(const char* title, const std::vector<PlanCandidate>& list) {
  if (list.size() < 2) return;
  print(fmt::format("\n{}\n", title));
  std::string last;
  for (const PlanCandidate& c : list) {
    std::string line = fmt::format("  {:<44} {:>10}{}\n", c.algorithm, format_seconds(c.seconds),
                                   c.num_chunks > 1 ? fmt::format(" in {} chunks", c.num_chunks) : "");
    if (line != last) print(line);
    last = std::move(line);
  }
}

}  // namespace

void print_plan(const PlanReport& r, const std::string& collective, bool color) {
  print(fmt::format("{} on {} ({} server{}), {} x {} ({}), {}\n", paint(r.plan.algorithm, Paint::kGreen, color),
                    r.topology.name(), r.topology.num_servers(), r.topology.num_servers() == 1 ? "" : "s",
                    format_count(r.size.count), to_string(r.size.dtype),
                    format_bytes(static_cast<double>(r.size.bytes)), collective));
  print(fmt::format("predicted {} by {}", paint(format_seconds(r.terms.total()), Paint::kBold, color),
                    model_name(r.options)));
  if (r.plan.num_chunks > 1) print(fmt::format(" in {} chunks", r.plan.num_chunks));
  if (r.bound.seconds() > 0 && r.plan.collective == Collective::kAllReduce) {
    print(fmt::format(", {:.2f}x the lower bound {}", r.terms.total() / r.bound.seconds(),
                      format_seconds(r.bound.seconds())));
  }
  print("\n\n");
  if (r.planned.tree.switches.size() > 1) {
    print_switches(r, color);
    print("\n");
  }
  if (!r.stages.empty()) {
    if (r.plan.num_chunks > 1) print("its stages, if the vector ran in one piece:\n");
    print_stages(r, color);
  }
  if (r.optimal) {
    print(fmt::format("\noptimal in bandwidth: {}, latency (two steps): {}, incast: {}, memory access: {}\n",
                      yes(r.optimal->bandwidth), yes(r.optimal->latency), yes(r.optimal->incast),
                      yes(r.optimal->memory_access)));
  }
}

void print_explanation(const PlanReport& r, bool color) {
  for (const SwitchChoice& s : r.planned.tree.switches) print_switch(s, r.plan.num_chunks > 1, color);
  if (r.plan.num_chunks > 1) {
    const double chunk = r.size.floats() / static_cast<double>(r.plan.num_chunks);
    print(fmt::format(
        "\nchunks: the first of {} takes its way through all stages; then the {} is busy {} with each of the others\n",
        r.plan.num_chunks, r.busiest.name, format_seconds(chunk * r.busiest.slope.total())));
  }
  print_stage_words(r);
  if (r.bound.seconds() > 0 && r.plan.collective == Collective::kAllReduce) {
    print(fmt::format("\nlower bound {}: {}; the plan is {} above it, with {} of latency\n",
                      format_seconds(r.bound.seconds()), r.bound.binding(),
                      format_percent(r.terms.total() / r.bound.seconds() - 1), format_seconds(r.terms.alpha, 3)));
  }
  print_candidates("algorithms asked for", r.candidates);
  print_candidates("whole plans that were compared", r.planned.tree.considered);
}

}  // namespace gar::cli
