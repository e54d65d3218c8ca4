// What `gar simulate` prints for people.
#include "apps/gar/views/simulate_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "apps/gar/cli/algorithms.hpp"
#include "apps/gar/cli/network.hpp"
#include "apps/gar/cli/plan_args.hpp"
#include "apps/gar/views/term_table.hpp"
#include "gar/critical_path.hpp"
#include "gar/explain.hpp"
#include "gar/explain_simulation.hpp"
#include "gar/limits.hpp"

namespace gar::cli {
namespace {

constexpr std::size_t kMaxStages = 40;
constexpr std::size_t kMaxParts = 12;  // of the critical path

std::string rank_name(const Topology& topology, std::int64_t rank) {
  return topology.instance_name(rank, find_place(topology, std::to_string(rank)).depth);
}

void print_headline(const Scene& scene, const SimulatedPlan& plan, bool color) {
  const Simulation& s = plan.simulation;
  say(fmt::format(
      "{} on {} ({} server{}), {} x {} ({}), {}{}\n", paint(escaped(plan.algorithm), Paint::kGreen, color),
      escaped(scene.topology.name()), scene.topology.num_servers(), scene.topology.num_servers() == 1 ? "" : "s",
      format_count(scene.size.count), to_string(scene.size.dtype), format_bytes(static_cast<double>(scene.size.bytes)),
      to_string(plan.collective), plan.num_chunks > 1 ? fmt::format(" in {} chunks", plan.num_chunks) : ""));
  if (!s.is_complete) {
    say(fmt::format("{}\n", paint(fmt::format("partial: interrupted at simulated {}, {} of {} messages had arrived",
                                              format_seconds(s.seconds), format_grouped(to_whole(s.flows_done)),
                                              format_grouped(to_whole(s.flows))),
                                  Paint::kYellow, color)));
    say(parameter_line(scene.topology));
    return;
  }
  say(fmt::format("simulated {}; {} predicts {}{}", paint(format_seconds(s.seconds), Paint::kBold, color),
                  model_name(scene.model), format_seconds(plan.predicted.total()),
                  scene.what_if.is_empty() ? "" : " without the conditions below"));
  if (plan.predicted.total() > 0 && s.seconds > 0) {
    say(fmt::format(", the simulation takes {}", difference_words(s.seconds, plan.predicted.total())));
  }
  say("\n" + parameter_line(scene.topology));
}

// How it was computed.
void print_engine(const Scene& scene, const Simulation& s) {
  if (s.engine == SimulationEngine::kClasses) {
    say(fmt::format(
        "engine      classes: {} of {} ranks and {} of {} messages stand for all; {} events, rates found {} "
        "times\n",
        format_grouped(s.rank_classes), format_grouped(scene.topology.num_servers()), format_grouped(s.flow_classes),
        format_grouped(to_whole(s.flows)), format_grouped(s.events), format_grouped(s.solves)));
  } else {
    say(fmt::format("engine      flows: {} messages one by one; {} events, rates found {} times\n",
                    format_grouped(to_whole(s.flows)), format_grouped(s.events), format_grouped(s.solves)));
  }
}

void print_summary(const Scene& scene, const SimulatedPlan& plan, const ReportOptions& options) {
  const Simulation& s = plan.simulation;
  const std::string handling =
      s.handling_seconds() > 0 ? fmt::format(", {} of handling messages", format_seconds(s.handling_seconds())) : "";
  say(fmt::format("\ntime        {} of communication, {} of calculation{} on the critical path\n",
                  format_seconds(s.communication_seconds()), format_seconds(s.calculation_seconds()), handling));
  say(fmt::format("of these    {}\n", term_list(s.terms, options.names)));
  if (options.is_verbose) print_engine(scene, s);
  if (scene.barrier) say("barrier     no rank starts a step before all have finished the one before\n");
  if (scene.tolerance > 0) {
    say(fmt::format("tolerance   {:g}: what differs by no more counts as equal, so times are off by about as much\n",
                    scene.tolerance));
  }
  for (const std::string& words : what_if_words(scene.what_if)) say(fmt::format("what if     {}\n", escaped(words)));
}
void print_stages(const Scene& scene, const SimulatedPlan& plan, bool color) {
  const Simulation& s = plan.simulation;
  if (s.stages.empty()) return;
  Table table({{"stage", true},
               {"phase"},
               {"what"},
               {"steps", true},
               {"begin", true},
               {"end", true},
               {"takes", true},
               {"senders", true},
               {"bottleneck"}});
  std::vector<std::size_t> shown(s.stages.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  if (shown.size() > kMaxStages) {
    std::stable_sort(shown.begin(), shown.end(), [&](std::size_t a, std::size_t b) {
      return s.stages[a].end - s.stages[a].begin > s.stages[b].end - s.stages[b].begin;
    });
    shown.resize(kMaxStages);
    std::sort(shown.begin(), shown.end());
  }
  for (const std::size_t i : shown) {
    const StageUse& stage = s.stages[i];
    table.add_row({fmt::format("{}", i + 1),
                   std::string(phase_word(plan.is_explicit, stage.is_exchange, stage.is_gather)), stage.label,
                   fmt::format("{}", stage.num_steps), format_seconds(stage.begin, 3), format_seconds(stage.end, 3),
                   Cell(format_seconds(stage.end - stage.begin, 3), Paint::kBold),
                   Cell(fmt::format("{}", stage.senders), stage.incast_seconds > 0 ? Paint::kYellow : Paint::kPlain),
                   bottleneck_words(scene.topology, stage, plan.num_chunks > 1)});
  }
  say("\n" + table.folded(color));
  if (shown.size() < s.stages.size()) {
    say(fmt::format("these are the {} longest of {} stages\n", shown.size(), s.stages.size()));
  }
}

// Links of one level and direction that did the same are one line.
std::vector<LinkUse> folded(const std::vector<LinkUse>& links) {
  std::vector<LinkUse> out;
  std::map<std::tuple<int, bool, std::string>, std::size_t> lines;
  for (const LinkUse& use : links) {
    const std::string did = fmt::format("{:.6g} {:.6g} {:.6g} {:.6g} {}", use.busy_seconds, use.incast_seconds,
                                        use.floats, use.utilisation, use.max_senders);
    const auto [line, is_new] = lines.try_emplace({use.link.node.depth, use.link.is_down, did}, out.size());
    if (is_new) {
      out.push_back(use);
    } else {
      out[line->second].count += use.count;
    }
  }
  return out;
}

void print_links(const Scene& scene, const Simulation& s, const ReportOptions& options) {
  if (s.links.empty() || options.max_links == 0) return;
  Table table({{"busiest links"},
               {"links alike", true},
               {"busy", true},
               {"time busy", true},
               {"incast", true},
               {"carried", true},
               {"bandwidth used", true},
               {"senders", true}});
  const std::vector<LinkUse> lines = options.max_links < 0 ? s.links : folded(s.links);
  const std::size_t shown =
      options.max_links < 0 ? lines.size() : std::min(lines.size(), static_cast<std::size_t>(options.max_links));
  for (std::size_t i = 0; i < shown; ++i) {
    const LinkUse& use = lines[i];
    table.add_row({link_name(scene.topology, use.link), fmt::format("{}", use.count),
                   format_seconds(use.busy_seconds, 3),
                   Cell(format_percent(s.seconds > 0 ? use.busy_seconds / s.seconds : 0), Paint::kBold),
                   Cell(format_seconds(use.incast_seconds, 3), use.incast_seconds > 0 ? Paint::kYellow : Paint::kDim),
                   format_bytes(4 * use.floats), format_percent(use.utilisation), fmt::format("{}", use.max_senders)});
  }
  say("\n" + table.folded(options.color));
  if (shown < lines.size()) {
    const std::size_t rest = lines.size() - shown;
    say(fmt::format("and {} more kind{} (--links all: every link)\n", rest, rest == 1 ? "" : "s"));
  }
}

void print_path(const Scene& scene, const SimulatedPlan& plan, const ReportOptions& options) {
  const Simulation& s = plan.simulation;
  if (s.path.empty()) {
    if (s.stages.empty()) return;
    say("\ncritical path: not recorded, the plan has too many steps\n");
    return;
  }
  std::vector<PathPart> parts = options.all_hops ? path_hops(s) : path_parts(s);
  std::string how = parts.size() < s.path.size() ? ", those of one stage together" : "";
  if (!options.all_hops && parts.size() > kMaxParts) {
    std::vector<PathPart> by_stage = path_by_stage(s);
    if (by_stage.size() < parts.size()) how = ", to and fro between the stages; by stage";
    parts = std::move(by_stage);
  }
  if (!options.all_hops && parts.size() > kMaxStages) {
    std::stable_sort(parts.begin(), parts.end(),
                     [](const PathPart& x, const PathPart& y) { return x.terms.total() > y.terms.total(); });
    parts.resize(kMaxStages);
    std::stable_sort(parts.begin(), parts.end(),
                     [](const PathPart& x, const PathPart& y) { return x.begin < y.begin; });
    how += fmt::format(", the {} longest parts", kMaxStages);
  }
  say(fmt::format("\ncritical path: {} hop{}{}{}\n", s.path.size(), s.path.size() == 1 ? "" : "s", how,
                  how.empty() ? "" : " (--path: every hop)"));
  std::vector<Column> columns{{"at", true}, {"hops", true},  {"stage", true},  {"from"},
                              {"to"},       {"takes", true}, {"of all", true}, {"waiting for"}};
  const bool has_chunks = plan.num_chunks > 1;
  if (has_chunks) columns.insert(columns.begin() + 3, Column{"chunks", true});
  Table table(columns);
  for (const PathPart& part : parts) {
    std::vector<Cell> row{format_seconds(part.begin, 3), fmt::format("{}", part.num_hops),
                          part.stage < s.stages.size() ? fmt::format("{}", part.stage + 1) : "-"};
    if (has_chunks) {
      row.emplace_back(part.first_chunk == part.last_chunk ? fmt::format("{}", part.first_chunk)
                                                           : fmt::format("{}-{}", part.first_chunk, part.last_chunk));
    }
    const bool is_alike = s.engine == SimulationEngine::kClasses && part.has_message && part.from == part.rank;
    row.emplace_back(is_alike ? "a server like it" : rank_name(scene.topology, part.from));
    row.emplace_back(rank_name(scene.topology, part.rank));
    const double total = part.terms.total();
    row.emplace_back(format_seconds(total, 3), Paint::kBold);
    row.emplace_back(format_percent(s.seconds > 0 ? total / s.seconds : 0));
    row.emplace_back(waiting_words(scene.topology, part));
    table.add_row(std::move(row));
  }
  say(table.folded(options.color));
}

}  // namespace

void print_simulation(const Scene& scene, const SimulatedPlan& plan, const ReportOptions& options) {
  print_headline(scene, plan, options.color);
  if (scene.topology.num_servers() == 1) {
    say("one server has nothing to exchange\n");
    return;
  }
  print_summary(scene, plan, options);
  print_stages(scene, plan, options.color);
  print_links(scene, plan.simulation, options);
  print_path(scene, plan, options);
}

std::string chunk_line(const std::vector<ChunkedName>& plans) {
  std::vector<std::string> chunked;
  for (const ChunkedName& plan : plans) {
    if (plan.num_chunks > 1) chunked.push_back(fmt::format("{} in {} chunks", plan.algorithm, plan.num_chunks));
  }
  if (chunked.empty()) return "";
  const bool has_whole = chunked.size() < plans.size();
  return labelled("chunks",
                  fmt::format("{}{}", fmt::join(chunked, ", "),
                              has_whole ? ", all others in one piece (gar predict prices them in chunks, too)" : ""));
}

void print_simulations(const Scene& scene, const std::vector<SimulatedPlan>& plans, const ReportOptions& options) {
  say(fmt::format(
      "{}: {} server{}, {} x {} ({}), simulated{}\n", escaped(scene.topology.name()), scene.topology.num_servers(),
      scene.topology.num_servers() == 1 ? "" : "s", format_count(scene.size.count), to_string(scene.size.dtype),
      format_bytes(static_cast<double>(scene.size.bytes)), scene.barrier ? " with a barrier after every step" : ""));
  say(parameter_line(scene.topology));
  if (scene.tolerance > 0) say(fmt::format("tolerance: {:g}\n", scene.tolerance));
  for (const std::string& words : what_if_words(scene.what_if)) say(fmt::format("what if: {}\n", escaped(words)));
  say("\n");
  std::vector<Column> columns{{"algorithm"}, {"simulated", true}, {"vs best", true}};
  Terms sum;
  for (const SimulatedPlan& p : plans) sum += p.simulation.terms;
  const TermColumns terms(sum, options.names);
  terms.add_columns(columns);
  columns.insert(columns.end(), {{"predicted", true}, {"busiest link"}});
  Table table(std::move(columns));
  const double best = plans.front().simulation.seconds;
  for (const SimulatedPlan& p : plans) {
    const Simulation& s = p.simulation;
    const bool is_best = &p == &plans.front() && s.is_complete;
    std::vector<Cell> row{Cell(p.algorithm, is_best ? Paint::kGreen : Paint::kPlain),
                          s.is_complete ? Cell(format_seconds(s.seconds), Paint::kBold)
                                        : Cell("> " + format_seconds(s.seconds), Paint::kYellow),
                          best > 0 && s.is_complete ? fmt::format("{:.2f}x", s.seconds / best) : "partial"};
    terms.add_cells(s.terms, row);
    row.emplace_back(format_seconds(p.predicted.total()));
    if (!s.links.empty()) {
      row.emplace_back(fmt::format("{}, {:.0f}%", link_name(scene.topology, s.links.front().link),
                                   s.seconds > 0 ? 100 * s.links.front().busy_seconds / s.seconds : 0));
    }
    table.add_row(std::move(row));
  }
  say(table.folded(options.color));
  std::vector<ChunkedName> names;
  for (const SimulatedPlan& p : plans) names.push_back({p.algorithm, p.num_chunks});
  if (const std::string line = chunk_line(names); !line.empty()) print("\n" + line);
}

}  // namespace gar::cli
