// gar plan: makes a plan for a network, says what it costs and where the time goes, and writes it to a file.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>

#include "apps/gar/cli/algorithms.hpp"
#include "apps/gar/cli/network.hpp"
#include "apps/gar/planning.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/plan_explain.hpp"
#include "apps/gar/views/plan_table.hpp"
#include "gar/documents.hpp"
#include "gar/files.hpp"

namespace gar::cli {
namespace {

constexpr std::int64_t kMaxRanksForOptimality = 1024;  // it looks at every message
constexpr std::int64_t kMaxExplicitRanks = 20'000;

struct PlanArgs {
  NetworkArgs network;
  SizeArgs size;
  std::string counts;
  std::string algo = "gentree+";
  std::string collective = "allreduce";
  std::string output;
  bool explain = false;
  bool is_explicit = false;
  ModelArgs model;
};

void write_document(const PlanReport& r, bool explain, std::ostream& out) {
  const PlanFacts facts{.topology = r.topology,
                        .size_floats = r.size.floats(),
                        .plan = r.plan,
                        .terms = r.terms,
                        .stages = r.stages,
                        .bound = r.bound,
                        .switches = r.planned.tree.switches,
                        .candidates = r.candidates,
                        .considered = r.planned.tree.considered,
                        .busiest = r.busiest};
  write_plan_document(facts, explain ? PlanDetail::kExplained : PlanDetail::kPlain, out);
}

Plan finished_plan(const PlanArgs& args, Plan plan, const VectorSize& size) {
  plan = half_of(plan, args.collective);
  if (args.is_explicit) {
    if (plan.num_ranks > kMaxExplicitRanks) {
      throw UsageError(fmt::format("--explicit: {} ranks are too many for one program each; accepted are up to {}",
                                   plan.num_ranks, kMaxExplicitRanks));
    }
    plan = make_explicit(plan);
  }
  plan.count = size.count;
  return plan;
}

int make(const PlanArgs& args, const Context& context) {
  const VectorSize size = vector_size(args.size);
  const std::vector<AlgorithmSpec> algorithms = parse_algorithms(args.algo);
  PlanReport r{load_network(args.network).topology, size, model_options(args.model), {}, {}, {}, {}, {}, {}, {}, {}};
  for (const AlgorithmSpec& spec : algorithms) {
    Planned p = plan_with(spec, r.topology, size.floats(), r.options);
    r.candidates.push_back({to_string(p.spec), p.tree.plan.num_chunks, p.terms.total()});
    if (r.candidates.size() == 1 || p.terms.total() < r.planned.terms.total()) r.planned = std::move(p);
  }
  r.plan = finished_plan(args, r.planned.tree.plan, size);
  const PricedPlan priced(r.plan, r.topology, r.options);
  r.terms = priced.cost(size.floats());
  r.stages = priced.critical_stages(size.floats());
  r.busiest = priced.busiest();
  r.bound = lower_bound(r.topology, size.floats());
  const bool to_stdout = args.output == "-";
  if (!args.output.empty() && !to_stdout)
    save_file(args.output, [&](std::ostream& out) { write_document(r, args.explain, out); });
  if (context.json || to_stdout) {
    write_document(r, args.explain, std::cout);
    std::cout.flush();
    return kExitOk;
  }
  if (r.plan.collective == Collective::kAllReduce && r.plan.num_ranks <= kMaxRanksForOptimality) {
    r.optimal = optimality(r.plan, r.topology);
  }
  const bool color = use_color(context.color, stdout);
  print_plan(r, args.collective, color);
  if (args.explain) print_explanation(r, color);
  if (!args.output.empty()) {
    print(fmt::format("\nwritten to {}; prove it with: gar verify {}\n", args.output, args.output));
  }
  return kExitOk;
}

int run(const PlanArgs& args, const Context& context) {
  if (args.counts.empty()) {
    if (args.size.size.empty() && args.size.count.empty()) {
      throw UsageError("one of --size, --count and --counts is needed");
    }
    return make(args, context);
  }
  if (!args.size.size.empty() || !args.size.count.empty() || !args.output.empty() || args.explain) {
    throw UsageError("--counts makes a table; it goes with --algo, --dtype and --model only");
  }
  return print_plan_table({args.network, args.counts, args.size.dtype, args.algo, model_options(args.model)}, context);
}

}  // namespace

void add_plan(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("plan", "Make the best plan for a network, and price it stage by stage");
  auto args = std::make_shared<PlanArgs>();
  add_network_options(verb, args->network);
  add_size_options(verb, args->size);
  verb.add_option("--counts", args->counts, "Best plan as a function of the size: a table with the crossover sizes")
      ->type_name("FROM..TO");
  add_algo_option(verb, args->algo, "Algorithms to choose from; the best one is planned");
  add_collective_option(verb, args->collective, "What to plan");
  verb.add_option("-o,--output", args->output, "Write the plan to this file; - for standard output")
      ->type_name("plan.json");
  verb.add_flag("--explain", args->explain,
                "Say per switch what was considered and why it was chosen, and where the time goes");
  verb.add_flag("--explicit", args->is_explicit, "Write one program per rank instead of shared sub-plans");
  add_model_options(verb, args->model);
  add_output_options(verb, context);
  set_examples(
      verb,
      {{"the best plan for 1e8 floats on 16 racks of 24 servers", "gar plan -t tree:16x24 --count 1e8 -o plan.json"},
       {"the paper's planner, explained", "gar plan -t cdc384 --count 1e8 --algo gentree --explain"},
       {"which plan for which size", "gar plan -t ss24 --counts 1e3..1e9"},
       {"a ReduceScatter on 7 servers", "gar plan -t star:7 --count 1e6 --algo rhd --collective reduce-scatter"}});
  on_run(verb, context, [args, &context] { return run(*args, context); });
}

}  // namespace gar::cli
