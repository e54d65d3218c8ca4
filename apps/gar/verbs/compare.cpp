// gar compare: predicted and simulated times side by side, why they differ, and what following the model costs.
#include "gar/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "apps/gar/cli/algorithms.hpp"
#include "apps/gar/cli/interrupt.hpp"
#include "apps/gar/cli/network.hpp"
#include "apps/gar/cli/plan_args.hpp"
#include "apps/gar/verbs/simulate_options.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/simulate_report.hpp"
#include "apps/gar/views/simulate_watch.hpp"
#include "gar/documents.hpp"
#include "gar/explain_simulation.hpp"
#include "gar/planner.hpp"

namespace gar::cli {
namespace {

struct CompareArgs {
  NetworkArgs network;
  std::string counts;
  SizeArgs size;
  std::string collective = "allreduce";
  std::string algo = "cps,hcps,ring,rhd,reduce-broadcast,gentree,gentree+";
  ModelArgs model;
  SimulationArgs simulation;
};

std::vector<VectorSize> parse_sizes_of(const CompareArgs& args) {
  if (args.counts.empty()) return vector_sizes(args.size);
  if (!args.size.empty()) throw UsageError("only one of --counts, --count and --size is needed");
  const DataType dtype = parse_dtype("--dtype", args.size.dtype);
  std::vector<VectorSize> out;
  for (const std::int64_t count : parse_count_list("--counts", args.counts, size_factor(args.size.factor))) {
    out.push_back(vector_size_of_count("--counts", fmt::to_string(count), dtype));
  }
  return out;
}

void print_csv_of(const Comparison& c) {
  print(csv_line({"bytes", "count", "dtype", "algorithm", "chunks", "predicted_seconds", "seconds_without_conditions",
                  "simulated_seconds", "why"}));
  for (const ComparedSize& block : c.sizes) {
    for (const ComparedPlan& row : block.plans) {
      print(csv_line({fmt::to_string(block.size.bytes), fmt::to_string(block.size.count),
                      std::string(to_string(block.size.dtype)), row.algorithm, fmt::to_string(row.num_chunks),
                      fmt::to_string(row.predicted.total()), row.without ? fmt::to_string(row.without->seconds) : "",
                      fmt::to_string(row.simulated.seconds), row.why}));
    }
  }
}

// Nothing when it was interrupted.
std::optional<ComparedRun> run_plan(const Scene& scene, const Plan& plan, const VectorSize& size,
                                    const std::string& what, SimulationOptions options) {
  SimulationWatch watch(what, options.jitter > 0);
  options.progress = [&](const SimulationProgress& p) { return watch.go_on(p); };
  const Simulation s = simulate(plan, scene.topology, size.floats(), options);
  if (!s.is_complete) return std::nullopt;
  return ComparedRun{s.seconds, s.terms};
}

// Nothing when it was interrupted.
std::optional<ComparedPlan> make_row(const Scene& scene, const PlanAnswer& planned, const VectorSize& size,
                                     const SimulationOptions& plain, const SimulationOptions& options) {
  const Plan& plan = planned.plan;
  ComparedPlan row;
  row.algorithm = to_string(planned.spec);
  row.num_chunks = plan.num_chunks;
  row.predicted = planned.terms;
  const std::string what = fmt::format("simulating {} at {}", row.algorithm, format_count(size.count));
  if (!scene.what_if.is_empty()) {
    row.without = run_plan(scene, plan, size, what + " without the conditions", plain);
    if (!row.without) return std::nullopt;
  }
  const std::optional<ComparedRun> run = run_plan(scene, plan, size, what, options);
  if (!run) return std::nullopt;
  row.simulated = *run;
  row.why = row.without ? what_grew(row.without->terms, run->terms)
                        : why_simulated_differs(row.predicted, run->terms, {plan.num_chunks > 1, scene.barrier});
  return row;
}

std::string signed_percent(double fraction) {
  return std::abs(fraction) < 5e-4 ? "0.0%" : fmt::format("{:+.1f}%", 100 * fraction);
}

void print_block(const ComparedSize& block, bool has_conditions, bool color) {
  std::vector<Column> columns{{"algorithm"}, {"predicted", true}};
  if (has_conditions) columns.push_back({"without", true});
  columns.push_back({"simulated", true});
  columns.push_back({has_conditions ? "slowdown" : "difference", true});
  columns.push_back({"why"});
  Table table(columns);
  for (std::size_t i = 0; i < block.plans.size(); ++i) {
    const ComparedPlan& row = block.plans[i];
    std::vector<Cell> cells{
        Cell(row.algorithm, i == 0 ? Paint::kGreen : Paint::kPlain),
        Cell(format_seconds(row.predicted.total()), i == block.model_best ? Paint::kGreen : Paint::kPlain)};
    if (row.without) cells.emplace_back(format_seconds(row.without->seconds));
    cells.emplace_back(format_seconds(row.simulated.seconds), Paint::kBold);
    if (row.without) {
      cells.emplace_back(row.without->seconds > 0 ? fmt::format("{:.2f}x", row.simulated.seconds / row.without->seconds)
                                                  : "-");
    } else {
      cells.emplace_back(signed_percent(row.difference()));
    }
    cells.emplace_back(row.why);
    table.add_row(std::move(cells));
  }
  say(fmt::format("{} elements ({})\n", format_count(block.size.count),
                  format_bytes(static_cast<double>(block.size.bytes))));
  say(table.folded(color));
  std::vector<ChunkedName> names;
  for (const ComparedPlan& row : block.plans) names.push_back({row.algorithm, row.num_chunks});
  print(chunk_line(names));
  const std::string& chosen = block.plans[block.model_best].algorithm;
  if (block.plans.size() == 1) return;
  if (block.regret() <= 0) {
    say(fmt::format("the model's choice, {}, is also the fastest in the simulation\n",
                    paint(chosen, Paint::kGreen, color)));
  } else {
    say(fmt::format("best simulated is {}; the model's choice, {}, takes {} longer (regret)\n",
                    paint(block.plans.front().algorithm, Paint::kGreen, color), chosen,
                    format_percent(block.regret())));
  }
}

void print_comparison(const Comparison& c, bool color) {
  const Scene& scene = c.scene;
  say(fmt::format("{}: {} server{}, {}, {}{} and the simulator{}\n", escaped(scene.topology.name()),
                  scene.topology.num_servers(), scene.topology.num_servers() == 1 ? "" : "s",
                  to_string(scene.size.dtype),
                  c.collective == Collective::kAllReduce ? "" : fmt::format("{}, ", to_string(c.collective)),
                  model_name(scene.model), scene.barrier ? " with a barrier after every step" : ""));
  say(parameter_line(scene.topology));
  if (scene.tolerance > 0) say(fmt::format("tolerance: {:g}\n", scene.tolerance));
  for (const std::string& words : what_if_words(scene.what_if)) say(fmt::format("what if: {}\n", escaped(words)));
  for (const ComparedSize& block : c.sizes) {
    say("\n");
    print_block(block, !scene.what_if.is_empty(), color);
  }
  if (!c.is_complete) {
    say(fmt::format("\n{}\n",
                    paint("partial: interrupted; what had not finished is not shown", Paint::kYellow, color)));
  }
  if (c.sizes.size() > 1) {
    const ComparisonTotals t = totals_of(c.sizes);
    say(fmt::format("\nmodel       best choice at {} of {} sizes, regret {} on average and {} at most\n", t.num_right,
                    c.sizes.size(), format_percent(t.mean_regret), format_percent(t.max_regret)));
    say(fmt::format("difference  {} on average between predicted and simulated{}\n", format_percent(t.mean_error),
                    scene.what_if.is_empty() ? "" : ", without the conditions"));
  }
}

int run(const CompareArgs& args, const Context& context) {
  const std::vector<VectorSize> sizes = parse_sizes_of(args);
  const std::vector<AlgorithmSpec> algorithms = parse_algorithms(args.algo);
  const WhatIf what_if = parse_what_if(args.simulation);
  const ModelOptions model = model_options(args.model);
  Comparison c{{load_network(args.network).topology, sizes.front(), model, what_if, args.simulation.barrier,
                parse_tolerance(args.simulation)},
               {},
               true};
  c.collective = collective_of(args.collective);
  SimulationOptions plain;
  plain.barrier = c.scene.barrier;
  plain.engine = parse_engine(args.simulation.engine);
  plain.tolerance = c.scene.tolerance;
  plain.model = model.kind;
  plain.degree = model.degree;
  plain.keep_path = false;
  SimulationOptions options = plain;
  apply(what_if, c.scene.topology, options);

  std::optional<InterruptGuard> guard;
  for (const VectorSize& size : sizes) {
    ComparedSize block{size, {}, 0};
    for (const AlgorithmSpec& spec : algorithms) {
      const PlanAnswer planned = plan({.topology = c.scene.topology,
                                       .size_floats = size.floats(),
                                       .algorithms = {spec},
                                       .model = model,
                                       .collective = c.collective});
      if (!guard) guard.emplace();  // before the first simulation Ctrl-C ends the program
      const std::optional<ComparedPlan> row = make_row(c.scene, planned, size, plain, options);
      c.is_complete = row.has_value();
      if (!row) break;
      print_progress(fmt::format("{:<8} {:<20} {:>10}", format_count(size.count), row->algorithm,
                                 format_seconds(row->simulated.seconds)));
      block.plans.push_back(*row);
    }
    std::stable_sort(block.plans.begin(), block.plans.end(), [](const ComparedPlan& a, const ComparedPlan& b) {
      return a.simulated.seconds < b.simulated.seconds;
    });
    const auto best = std::min_element(
        block.plans.begin(), block.plans.end(),
        [](const ComparedPlan& a, const ComparedPlan& b) { return a.predicted.total() < b.predicted.total(); });
    block.model_best = static_cast<std::size_t>(best - block.plans.begin());
    if (!block.plans.empty()) c.sizes.push_back(std::move(block));
    if (!c.is_complete) break;
  }
  if (context.csv) {
    print_csv_of(c);
  } else if (context.json) {
    print(compare_document(c));
  } else {
    print_comparison(c, use_color(context.color, stdout));
  }
  return c.is_complete ? kExitOk : kExitRunTime;
}

}  // namespace

void add_compare(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("compare", "Compare predicted and simulated times, and say why they differ");
  auto args = std::make_shared<CompareArgs>();
  add_network_options(verb, args->network);
  add_size_options(verb, args->size);
  verb.add_option("--counts", args->counts, "The same as --count")->type_name("N[,N...]");
  add_algo_option(verb, args->algo, "Algorithms to compare");
  add_collective_option(verb, args->collective, "What the algorithms compute");
  add_simulation_options(verb, args->simulation);
  add_model_options(verb, args->model);
  add_output_options(verb, context);
  add_csv_option(verb, context);
  set_examples(verb, {{"does the model choose what the simulator finds best?",
                       "gar compare -t tree:16x24 --counts 1e7,3.2e7,1e8"},
                      {"which algorithm suffers least when a rack's uplink has half its capacity",
                       "gar compare -t tree:16x24 --counts 1e8 --degrade rack3.uplink=0.5"}});
  on_run(verb, context, [args, &context] { return run(*args, context); });
}

}  // namespace gar::cli
