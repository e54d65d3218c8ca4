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
#include "apps/gar/views/page.hpp"
#include "apps/gar/views/plots.hpp"
#include "apps/gar/views/simulate_report.hpp"
#include "apps/gar/views/simulate_watch.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/files.hpp"
#include "gar/planner.hpp"
#include "gar/report.hpp"
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
  std::string html;
  bool all_hops = false;
  bool is_verbose = false;
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
  if (args.trace == "-") throw UsageError("--trace '-': expected a file; standard output is for the report");
}

ReportOptions report_options(const SimulateArgs& args, const Context& context) {
  ReportOptions out;
  out.color = use_color(context.color, stdout);
  out.names = context.greek ? TermNames::kGreek : TermNames::kPlain;
  out.all_hops = args.all_hops;
  out.is_verbose = args.is_verbose;
  if (args.links.empty()) {
    if (context.json) out.max_links = -1;
  } else if (args.links == "all") {
    out.max_links = -1;
  } else {
    if (args.links.find_first_not_of("0123456789") != std::string::npos) {
      throw UsageError(fmt::format("--links '{}': expected a whole number, or all", args.links));
    }
    out.max_links = parse_count("--links", args.links);
  }
  return out;
}

// A plan file may say for how many elements it was made.
std::vector<VectorSize> sizes_of(const SimulateArgs& args, const Plan& plan) {
  if (!args.size.empty() || plan.count == 0) return vector_sizes(args.size);
  SizeArgs of_plan = args.size;
  of_plan.count = std::to_string(plan.count);
  return vector_sizes(of_plan);
}

void check_fit(const Plan& plan, const SimulateArgs& args, const Topology& topology) {
  if (plan.num_ranks == topology.num_servers()) return;
  throw PlanError(
      fmt::format("{}: the plan is for {} ranks, but {} has {} servers; expected a plan for that many, as "
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
    SimulationWatch watch(fmt::format("simulating {}", out.algorithm), options.jitter > 0);
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
  SimulationWatch watch(fmt::format("simulating {}", given.algorithm), options.jitter > 0);
  SimulationOptions watched = options;
  watched.progress = [&](const SimulationProgress& p) { return watch.go_on(p); };
  out.simulation = simulate(plan, scene.topology, scene.size.floats(), watched);
  return out;
}

/// What was simulated at one size, best first.
struct SimulatedSize {
  std::vector<SimulatedPlan> plans;
  bool is_complete = true;
};

class SimulateRun {
 public:
  SimulateRun(const SimulateArgs& args, const Context& context)
      : args_(args),
        context_(context),
        algorithms_(args.algo.empty() ? std::vector<AlgorithmSpec>{} : parse_algorithms(args.algo)),
        model_(model_options(args.model)) {
    check_usage(args, algorithms_.size());
    report_ = report_options(args, context);
  }

  int run() {
    const WhatIf what_if = parse_what_if(args_.simulation);
    if (!args_.plan.empty()) from_file_ = load_plan(args_.plan);
    const std::vector<VectorSize> sizes = sizes_of(args_, from_file_);
    if (sizes.size() > 1 && !args_.trace.empty()) throw UsageError("--trace goes with a single size");
    if (sizes.size() > 1 && !args_.html.empty()) throw UsageError("--html goes with a single size");
    check_writable("--html", args_.html);
    const Topology topology = load_network(args_.network).topology;
    if (context_.csv) print_titles();
    std::vector<std::string> documents;
    bool is_complete = true;
    for (const VectorSize& size : sizes) {
      const Scene scene{topology, size, model_, what_if, args_.simulation.barrier, parse_tolerance(args_.simulation)};
      const SimulatedSize done = simulate_all(scene);
      if (context_.csv) {
        print_rows(scene, done);
      } else if (context_.json) {
        documents.push_back(
            simulate_document(scene, done.plans, done.is_complete, {report_.max_links, report_.all_hops}));
      } else {
        if (&size != sizes.data()) print("\n");
        print_report(scene, done);
        print_plot(context_, "where the time of the critical path goes", simulation_bars(done.plans));
      }
      if (!args_.html.empty() && !done.plans.empty()) save_html(scene, done);
      is_complete = done.is_complete;
      if (!is_complete) break;
    }
    if (context_.json && !context_.csv) print(documents.size() == 1 ? documents.front() : list_document(documents));
    return is_complete ? kExitOk : kExitRunTime;
  }

 private:
  SimulatedSize simulate_all(const Scene& scene) {
    SimulationOptions options;
    options.barrier = scene.barrier;
    options.engine = parse_engine(args_.simulation.engine);
    options.tolerance = scene.tolerance;
    options.model = model_.kind;
    options.degree = model_.degree;
    options.keep_path = algorithms_.size() < 2 || context_.json;
    apply(scene.what_if, scene.topology, options);
    const double floats = scene.size.floats();
    SimulatedSize out;
    if (!args_.plan.empty()) {
      check_fit(from_file_, args_, scene.topology);
      if (!guard_) guard_.emplace();
      const Terms predicted = PricedPlan(from_file_, scene.topology, model_).cost(floats);
      out.plans.push_back(run_plan(scene, {from_file_.algorithm, from_file_, predicted}, options, args_.trace));
    }
    for (const AlgorithmSpec& spec : algorithms_) {
      const PlanAnswer planned = plan({.topology = scene.topology,
                                       .size_floats = floats,
                                       .algorithms = {spec},
                                       .model = model_,
                                       .collective = collective_of(args_.collective)});
      if (guard_ && is_interrupted()) break;
      if (!guard_) guard_.emplace();
      out.plans.push_back(
          run_plan(scene, {to_string(planned.spec), planned.plan, planned.terms}, options, args_.trace));
      const Simulation& s = out.plans.back().simulation;
      if (!s.is_complete) break;
      if (algorithms_.size() > 1) {
        print_progress(fmt::format("{:<20} {:>10}", out.plans.back().algorithm, format_seconds(s.seconds)));
      }
    }
    out.is_complete = out.plans.size() >= algorithms_.size() &&
                      std::all_of(out.plans.begin(), out.plans.end(),
                                  [](const SimulatedPlan& p) { return p.simulation.is_complete; });
    std::stable_sort(out.plans.begin(), out.plans.end(), [](const SimulatedPlan& a, const SimulatedPlan& b) {
      if (a.simulation.is_complete != b.simulation.is_complete) return a.simulation.is_complete;
      return a.simulation.seconds < b.simulation.seconds;
    });
    return out;
  }

  void save_html(const Scene& scene, const SimulatedSize& done) const {
    ReportPage page(fmt::format("{} of {} in the simulator", scene.topology.name(),
                                format_bytes(static_cast<double>(scene.size.bytes))));
    add_to_report(page, scene, done.plans);
    add_own_command(page);
    save_page(page, args_.html, context_.json || context_.csv);
  }

  void print_report(const Scene& scene, const SimulatedSize& done) const {
    if (done.plans.empty()) {
      print("partial: interrupted before anything had begun\n");
    } else if (algorithms_.size() > 1) {
      print_simulations(scene, done.plans, report_);
      if (!done.is_complete) print("\npartial: interrupted; what had not begun is not shown\n");
    } else {
      print_simulation(scene, done.plans.front(), report_);
      if (!args_.trace.empty()) {
        print(fmt::format("\ntrace written to {}; open it at https://ui.perfetto.dev\n", escaped(args_.trace)));
      }
    }
  }

  static void print_titles() {
    print(csv_line({"bytes", "count", "dtype", "algorithm", "chunks", "seconds", "predicted_seconds",
                    "communication_seconds", "calculation_seconds", "complete"}));
  }
  static void print_rows(const Scene& scene, const SimulatedSize& done) {
    for (const SimulatedPlan& p : done.plans) {
      const Simulation& s = p.simulation;
      print(csv_line({fmt::to_string(scene.size.bytes), fmt::to_string(scene.size.count),
                      std::string(to_string(scene.size.dtype)), p.algorithm, fmt::to_string(p.num_chunks),
                      fmt::to_string(s.seconds), fmt::to_string(p.predicted.total()),
                      fmt::to_string(s.communication_seconds()), fmt::to_string(s.calculation_seconds()),
                      s.is_complete ? "1" : "0"}));
    }
  }

  const SimulateArgs& args_;
  const Context& context_;
  std::vector<AlgorithmSpec> algorithms_;
  ModelOptions model_;
  ReportOptions report_;
  Plan from_file_;
  std::optional<InterruptGuard> guard_;  // before the first simulation Ctrl-C ends the program
};

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
  add_html_option(verb, args->html);
  verb.add_flag("--path", args->all_hops, "Print every hop of the critical path");
  verb.add_flag("--verbose", args->is_verbose, "Also say how it was computed: classes, events, rates");
  add_model_options(verb, args->model);
  add_output_options(verb, context);
  add_csv_option(verb, context);
  add_plot_option(verb, context);
  add_greek_option(verb, context);
  set_examples(verb, {{"what the best plan does on 16 racks of 24 servers",
                       "gar simulate -t tree:16x24 --algo gentree+ --count 1e8"},
                      {"a plan from a file, with a timeline for ui.perfetto.dev",
                       "gar simulate -t ss24 --plan plan.json --count 1e8 --trace trace.json"},
                      {"several algorithms while one rack has half its uplink and one server is slow",
                       "gar simulate -t tree:16x24 --algo gentree+,hcps,ring --count 1e8 --degrade rack3.uplink=0.5 "
                       "--slow rack7/server2=3"}});
  on_run(verb, context, [args, &context] { return SimulateRun(*args, context).run(); });
}

}  // namespace gar::cli
