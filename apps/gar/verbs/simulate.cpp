// gar simulate: what a plan does on a network over time, what limits it, and what happens when something is wrong.
#include "gar/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <exception>
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
#include "gar/errors.hpp"
#include "gar/files.hpp"
#include "gar/planner.hpp"
#include "gar/trace.hpp"

namespace gar::cli {
namespace {

struct SimulateArgs {
  NetworkArgs network;
  SizeArgs size;
  std::string plan;
  std::string algo;
  std::string collective = "allreduce";
  std::string trace;
  std::string links;
  bool all_hops = false;
  ModelArgs model;
  SimulationArgs simulation;
};

void check_usage(const SimulateArgs& args, std::size_t num_algorithms) {
  if (args.plan.empty() == args.algo.empty()) {
    throw UsageError(fmt::format("{} --plan and --algo is needed, for example --algo gentree+ or --plan plan.json",
                                 args.plan.empty() ? "one of" : "only one of"));
  }
  if (!args.plan.empty() && args.collective != "allreduce") {
    throw UsageError("--collective goes with --algo; a plan file says itself what it computes");
  }
  if (num_algorithms > 1 && (!args.trace.empty() || !args.links.empty() || args.all_hops)) {
    throw UsageError("--trace, --links and --path go with a single algorithm");
  }
  if (args.trace == "-") throw UsageError("--trace '-': accepted is a file; standard output is for the report");
}

ReportOptions report_options(const SimulateArgs& args, const Context& context) {
  ReportOptions out;
  out.color = use_color(context.color, stdout);
  out.all_hops = args.all_hops;
  if (args.links.empty()) {
    if (context.json) out.max_links = -1;
  } else if (args.links == "all") {
    out.max_links = -1;
  } else {
    if (args.links.find_first_not_of("0123456789") != std::string::npos) {
      throw UsageError(fmt::format("--links '{}': accepted is a whole number, or all", args.links));
    }
    out.max_links = parse_count("--links", args.links);
  }
  return out;
}

// A plan file may say for how many elements it was made.
VectorSize size_of(const SimulateArgs& args, const Plan& plan) {
  if (!args.size.size.empty() || !args.size.count.empty() || plan.count == 0) return vector_size(args.size);
  SizeArgs of_plan = args.size;
  of_plan.count = std::to_string(plan.count);
  return vector_size(of_plan);
}

void check_fit(const Plan& plan, const SimulateArgs& args, const Topology& topology) {
  if (plan.num_ranks == topology.num_servers()) return;
  throw PlanError(
      fmt::format("{}: the plan is for {} ranks, but {} has {} servers; accepted is a plan for that many, as "
                  "gar plan {} makes it",
                  args.plan, plan.num_ranks, topology.name(), topology.num_servers(),
                  args.network.topology.empty() ? "-p " + args.network.profile : "-t " + args.network.topology));
}

// The simulation runs while its trace is written. What had happened stays in the trace when it fails; a file that
// exists is left alone when nothing had.
void simulate_traced(const Scene& scene, const Plan& plan, SimulationOptions options, const std::string& path,
                     SimulatedPlan& out) {
  std::exception_ptr failure;
  save_file(path, [&](std::ostream& file) {
    TraceWriter trace(file, plan, scene.topology);
    SimulationWatch watch(fmt::format("simulating {}", out.algorithm));
    double reached = 0;
    options.observer = &trace;
    options.progress = [&](const SimulationProgress& p) {
      reached = p.seconds;
      return trace.error() == 0 && watch.go_on(p);
    };
    std::string about;
    try {
      out.simulation = simulate(plan, scene.topology, scene.size.floats(), options);
      about = trace_summary(scene, out);
      reached = out.simulation.seconds;
    } catch (const std::exception& error) {
      if (trace.num_slices() == 0) throw;
      failure = std::current_exception();
      out.simulation.is_complete = false;
      about = trace_summary(scene, out, error.what());
    }
    trace.finish(reached, about);
    errno = trace.error();
  });
  if (failure) std::rethrow_exception(failure);
}

/// A plan that is to be simulated, with what the model says about it.
struct PredictedPlan {
  std::string algorithm;
  const Plan& plan;
  Terms predicted;
};

SimulatedPlan run_plan(const Scene& scene, const PredictedPlan& given, const SimulationOptions& options,
                       const std::string& trace) {
  const Plan& plan = given.plan;
  SimulatedPlan out;
  out.algorithm = given.algorithm;
  out.collective = plan.collective;
  out.num_chunks = plan.num_chunks;
  out.is_explicit = plan.is_explicit();
  out.predicted = given.predicted;
  if (!trace.empty()) {
    simulate_traced(scene, plan, options, trace, out);
    return out;
  }
  SimulationWatch watch(fmt::format("simulating {}", given.algorithm));
  SimulationOptions watched = options;
  watched.progress = [&](const SimulationProgress& p) { return watch.go_on(p); };
  out.simulation = simulate(plan, scene.topology, scene.size.floats(), watched);
  return out;
}

int run(const SimulateArgs& args, const Context& context) {
  const std::vector<AlgorithmSpec> algorithms =
      args.algo.empty() ? std::vector<AlgorithmSpec>{} : parse_algorithms(args.algo);
  check_usage(args, algorithms.size());
  const ReportOptions report = report_options(args, context);
  const WhatIf what_if = parse_what_if(args.simulation);
  const ModelOptions model = model_options(args.model);
  Plan from_file;
  if (!args.plan.empty()) from_file = load_plan(args.plan);
  const VectorSize size = size_of(args, from_file);
  const Scene scene{load_network(args.network).topology, size, model, what_if, args.simulation.barrier};
  SimulationOptions options;
  options.barrier = scene.barrier;
  options.engine = parse_engine(args.simulation.engine);
  options.tolerance = parse_tolerance(args.simulation);
  options.model = model.kind;
  options.degree = model.degree;
  options.keep_path = algorithms.size() < 2 || context.json;
  apply(what_if, scene.topology, options);

  std::vector<SimulatedPlan> plans;
  std::optional<InterruptGuard> guard;
  if (!args.plan.empty()) {
    check_fit(from_file, args, scene.topology);
    guard.emplace();
    const Terms predicted = PricedPlan(from_file, scene.topology, model).cost(size.floats());
    plans.push_back(run_plan(scene, {from_file.algorithm, from_file, predicted}, options, args.trace));
  }
  for (const AlgorithmSpec& spec : algorithms) {
    const PlanAnswer planned = plan({.topology = scene.topology,
                                     .size_floats = size.floats(),
                                     .algorithms = {spec},
                                     .model = model,
                                     .collective = collective_of(args.collective)});
    if (guard && is_interrupted()) break;
    if (!guard) guard.emplace();
    plans.push_back(run_plan(scene, {to_string(planned.spec), planned.plan, planned.terms}, options, args.trace));
    const Simulation& s = plans.back().simulation;
    if (!s.is_complete) break;
    if (algorithms.size() > 1) {
      print_progress(fmt::format("{:<20} {:>10}", plans.back().algorithm, format_seconds(s.seconds)));
    }
  }
  const bool is_complete =
      plans.size() >= algorithms.size() &&
      std::all_of(plans.begin(), plans.end(), [](const SimulatedPlan& p) { return p.simulation.is_complete; });
  std::stable_sort(plans.begin(), plans.end(), [](const SimulatedPlan& a, const SimulatedPlan& b) {
    if (a.simulation.is_complete != b.simulation.is_complete) return a.simulation.is_complete;
    return a.simulation.seconds < b.simulation.seconds;
  });
  if (context.json) {
    print(simulate_document(scene, plans, is_complete, {report.max_links, report.all_hops}));
  } else if (algorithms.size() > 1) {
    print_simulations(scene, plans, report);
    if (!is_complete) print("\npartial: interrupted; what had not begun is not shown\n");
  } else {
    print_simulation(scene, plans.front(), report);
    if (!args.trace.empty()) {
      print(fmt::format("\ntrace written to {}; open it at https://ui.perfetto.dev\n", escaped(args.trace)));
    }
  }
  return is_complete ? kExitOk : kExitRunTime;
}

}  // namespace

void add_simulate(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("simulate", "Simulate a plan on a network, flow by flow");
  auto args = std::make_shared<SimulateArgs>();
  add_network_options(verb, args->network);
  verb.add_option("--plan", args->plan, "A plan file, as written by gar plan; - for standard input")
      ->type_name("plan.json");
  add_algo_option(verb, args->algo, "Algorithms to plan with and to simulate");
  add_collective_option(verb, args->collective, "What to simulate of the algorithms");
  add_size_options(verb, args->size);
  add_simulation_options(verb, args->simulation);
  verb.add_option("--trace", args->trace, "Write a timeline for ui.perfetto.dev to this file")->type_name("FILE");
  verb.add_option("--links", args->links, "How many of the busiest links to list, or all (default 10; JSON: all)")
      ->type_name("N");
  verb.add_flag("--path", args->all_hops, "Print every hop of the critical path");
  add_model_options(verb, args->model);
  add_output_options(verb, context);
  set_examples(verb, {{"what the best plan does on 16 racks of 24 servers",
                       "gar simulate -t tree:16x24 --algo gentree+ --count 1e8"},
                      {"a plan from a file, with a timeline for ui.perfetto.dev",
                       "gar simulate -t ss24 --plan plan.json --count 1e8 --trace trace.json"},
                      {"several algorithms while one rack has half its uplink and one server is slow",
                       "gar simulate -t tree:16x24 --algo gentree+,hcps,ring --count 1e8 --degrade rack3.uplink=0.5 "
                       "--slow rack7/server2=3"}});
  on_run(verb, context, [args, &context] { return run(*args, context); });
}

}  // namespace gar::cli
