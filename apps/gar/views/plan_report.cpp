// Tables and explanations of `gar plan`.
#include "apps/gar/views/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/gar/cli/algorithms.hpp"
#include "apps/gar/cli/network.hpp"
#include "apps/gar/cli/output.hpp"
#include "apps/gar/cli/plan_args.hpp"
#include "apps/gar/views/term_table.hpp"
#include "gar/explain.hpp"

namespace gar::cli {
namespace {

constexpr std::size_t kShownCandidates = 5;

std::string yes(bool value) { return value ? "yes" : "no"; }

void print_switches(const PlanView& v, bool color) {
  Table table({{"switch"}, {"count", true}, {"algorithm"}, {"factors"}, {"rearranged"}, {"time", true}});
  for (const SwitchChoice& s : v.answer.switches) {
    table.add_row({s.name, fmt::format("{}", s.count), Cell(s.algorithm, Paint::kGreen), fan_in_words(s),
                   yes(s.is_rearranged), format_seconds(s.seconds())});
  }
  say(table.folded(color));
}

void print_stages(const PlanView& v, bool color) {
  std::vector<Column> columns{{"stage", true}, {"phase"}, {"what"}, {"steps", true}, {"time", true}};
  Terms sum;
  for (const StageCost& s : v.stages) sum += s.at(v.size.floats());
  const TermColumns terms(sum, v.names);
  terms.add_columns(columns);
  columns.insert(columns.end(), {{"busiest link"}, {"senders", true}});
  Table table(std::move(columns));
  std::size_t number = 0;
  for (const StageCost& s : v.stages) {
    const Terms t = s.at(v.size.floats());
    std::vector<Cell> row{fmt::to_string(++number),
                          std::string(phase_word(v.answer.plan.is_explicit(), s.is_exchange, s.is_gather)), s.label,
                          fmt::format("{}", s.num_steps), Cell(format_seconds(t.total()), Paint::kBold)};
    terms.add_cells(t, row);
    row.emplace_back(s.link);
    row.emplace_back(fmt::format("{}", s.senders), t.epsilon > 0 ? Paint::kYellow : Paint::kPlain);
    table.add_row(std::move(row));
  }
  say(table.folded(color));
}

/// Differences between candidates stand next to each other, so they are short.
constexpr DifferenceOptions kBrief{.style = DifferenceStyle::kSigned, .with_letters = false};

void print_switch(const SwitchChoice& s, bool is_chunked, TermNames names, bool color) {
  say(fmt::format("\n{}{}: {} {}, {}\n", paint(escaped(s.name), Paint::kBold, color),
                  s.count > 1 ? fmt::format(" ({} alike)", s.count) : "", s.algorithm, fan_in_words(s),
                  format_seconds(s.seconds())));
  say(fmt::format("    {}\n", term_list(s.terms, names)));
  const auto is_choice = [&](const SwitchCandidate& c) {
    return c.algorithm == s.algorithm && c.factors == s.factors && c.is_uneven == s.is_uneven;
  };
  std::size_t shown = 0;
  const SwitchCandidate* previous = nullptr;
  for (const SwitchCandidate& c : s.candidates) {
    const bool is_chosen = is_choice(c);
    const bool repeats = previous != nullptr && previous->algorithm == c.algorithm &&
                         std::abs(previous->terms.total() - c.terms.total()) <= 1e-9 * c.terms.total();
    if ((shown >= kShownCandidates || repeats) && !is_chosen) continue;
    previous = &c;
    ++shown;
    say(fmt::format("  {} {:<20} {:>10}  {}\n", is_chosen ? "*" : " ",
                    fmt::format("{:<5} {}{}", c.algorithm, c.is_uneven ? "~" : "", factor_words(c.factors)),
                    format_seconds(c.terms.total()),
                    is_chosen ? "chosen" : difference_words(s.terms, c.terms, kBrief)));
  }
  if (s.algorithm == "acps") say("    the children hold different intervals: pieces go straight to their owners\n");
  if (!s.shares.empty()) say(fmt::format("    shares of the vector that fit: {}\n", escaped(share_words(s))));
  if (const std::string words = exchange_words(s); !words.empty()) say(fmt::format("    {}\n", words));
  if (s.candidates.size() > kShownCandidates) {
    say(fmt::format("    of {} candidates\n", s.candidates.size()));
  }
  const auto chosen = std::find_if(s.candidates.begin(), s.candidates.end(), is_choice);
  if (chosen == s.candidates.begin() && s.candidates.size() > 1) {
    if (s.seconds() > 0) {
      say(fmt::format("    margin {}\n", format_percent(s.candidates[1].terms.total() / s.seconds() - 1)));
    }
  } else if (chosen != s.candidates.end() && chosen != s.candidates.begin() && is_chunked) {
    say("    slower on its own, but in chunks it overlaps with the other levels: fewer steps or a less busy link "
        "count\n");
  }
  for (const Rearrangement& x : s.rearrangements) say(fmt::format("    rearrangement: {}\n", escaped(x.reason)));
}

void print_stage_words(const PlanView& v) {
  const Plan& plan = v.answer.plan;
  say(fmt::format("\nwhere the time goes{}\n", plan.num_chunks > 1 ? ", if the vector ran in one piece" : ""));
  std::size_t n = 0;
  for (const StageCost& s : v.stages) {
    say(fmt::format("  {}. {}\n", ++n, escaped(stage_words(s, v.size.floats(), plan.is_explicit()))));
  }
}

void print_candidates(const char* title, const std::vector<PlanCandidate>& list) {
  if (list.size() < 2) return;
  say(fmt::format("\n{}\n", title));
  std::string last;
  for (const PlanCandidate& c : list) {
    std::string line = fmt::format("  {:<44} {:>10}{}\n", c.algorithm, format_seconds(c.seconds()),
                                   c.num_chunks > 1 ? fmt::format(" in {} chunks", c.num_chunks) : "");
    if (line != last) say(line);
    last = std::move(line);
  }
}

// The best that there can be, and what the plan has: the paper's Definitions 1 and 2, one line each.
void print_optimality(const Optimality& o, std::int64_t num_ranks) {
  if (num_ranks < 2) return;
  const auto ranks = static_cast<double>(num_ranks);
  const auto line = [](const char* what, bool is_optimal, const std::string& has, const std::string& best) {
    print(labelled(what, is_optimal ? fmt::format("optimal: {}", has) : fmt::format("{}; {}", has, best)));
  };
  print("\n");
  line("bandwidth", o.bandwidth, fmt::format("a rank sends and receives {:.4g} times the vector", o.max_traffic),
       fmt::format("the least is {:.4g}", 2 * (ranks - 1) / ranks));
  line("latency", o.latency, fmt::format("{} steps", o.num_steps), "the least is 2");
  line("incast", o.incast,
       o.max_incast_excess > 0 ? fmt::format("up to {:g} senders too many on a link", o.max_incast_excess)
                               : "no link has more senders than it can take",
       "the best is none");
  line("memory", o.memory_access,
       fmt::format("a rank reads and writes {:.4g} times the vector to add", o.max_memory_access),
       fmt::format("the least is {:.4g}", (ranks + 1) / ranks));
}

}  // namespace

void print_plan(const PlanView& v, bool color) {
  say(fmt::format("{} on {} ({} server{}), {} x {} ({}), {}\n",
                  paint(escaped(v.answer.plan.algorithm), Paint::kGreen, color), escaped(v.request.topology.name()),
                  v.request.topology.num_servers(), v.request.topology.num_servers() == 1 ? "" : "s",
                  format_count(v.size.count), to_string(v.size.dtype), format_bytes(static_cast<double>(v.size.bytes)),
                  to_string(v.request.collective)));
  std::string headline =
      fmt::format("predicted {} by {}", paint(format_seconds(v.answer.terms.total()), Paint::kBold, color),
                  model_name(v.request.model));
  if (v.answer.plan.num_chunks > 1) headline += fmt::format(" in {} chunks", v.answer.plan.num_chunks);
  if (v.answer.bound.seconds() > 0) {
    headline += fmt::format(", {:.2f}x the lower limit {}", v.answer.terms.total() / v.answer.bound.seconds(),
                            format_seconds(v.answer.bound.seconds()));
  }
  say(headline + "\n" + parameter_line(v.request.topology));
  if (v.request.policy == Policy::kRuntime) {
    say(fmt::format("policy runtime: {}\n", escaped(choice_words(v.answer, v.request.topology))));
  }
  say("\n");
  if (v.answer.switches.size() > 1) {
    print_switches(v, color);
    say("\n");
  }
  if (!v.stages.empty()) {
    if (v.answer.plan.num_chunks > 1)
      say("stages for the vector in one piece; chunks pass through them one after another:\n");
    print_stages(v, color);
  }
  if (v.answer.optimality) print_optimality(*v.answer.optimality, v.answer.plan.num_ranks);
}

void print_explanation(const PlanView& v, bool color) {
  for (const SwitchChoice& s : v.answer.switches) print_switch(s, v.answer.plan.num_chunks > 1, v.names, color);
  if (v.answer.plan.num_chunks > 1) {
    const double chunk = v.size.floats() / static_cast<double>(v.answer.plan.num_chunks);
    const Resource& busiest = v.answer.priced->busiest(chunk);
    const double waiting = v.answer.priced->waiting() * v.size.floats();
    say(fmt::format(
        "\nchunks: the first of {} passes through all stages; then each of the others keeps the {} busy for {}{}\n",
        v.answer.plan.num_chunks, escaped(busiest.name), format_seconds(busiest.at(chunk).total()),
        waiting > 0 ? fmt::format("; in the simulation they wait another {} for each other", format_seconds(waiting))
                    : ""));
  }
  if (v.answer.plan.num_chunks == 1 && v.answer.priced->waiting() > 0) {
    say(fmt::format(
        "\nsimulated: it takes {} more than its stages, where ranks that are ahead share links with others\n",
        format_seconds(v.answer.priced->waiting() * v.size.floats())));
  }
  print_stage_words(v);
  if (v.answer.bound.seconds() > 0) {
    say(fmt::format("\nlower limit {}: {}; the plan is {} above it, with {} of latency\n",
                    format_seconds(v.answer.bound.seconds()), escaped(v.answer.bound.binding()),
                    format_percent(v.answer.terms.total() / v.answer.bound.seconds() - 1),
                    format_seconds(v.answer.terms.alpha, 3)));
  }
  print_candidates("algorithms asked for", v.answer.asked);
  print_candidates("whole plans that were compared", v.answer.considered);
}

}  // namespace gar::cli
