// gar plan: makes a plan for a network, says what it costs and where the time goes, and writes it to a file.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "apps/gar/cli/algorithms.hpp"
#include "apps/gar/cli/network.hpp"
#include "apps/gar/cli/plan_args.hpp"
#include "apps/gar/verbs/simulate_options.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/cheap_simulator.hpp"
#include "apps/gar/views/plan_report.hpp"
#include "apps/gar/views/plan_table.hpp"
#include "gar/documents.hpp"
#include "gar/files.hpp"
#include "gar/planner.hpp"

namespace gar::cli {
namespace {

constexpr std::int64_t kMaxRanksForOptimality = 1024;  // it looks at every message
constexpr std::int64_t kMaxExplicitRanks = 20'000;

struct PlanArgs {
  NetworkArgs network;
  SizeArgs size;
  std::string counts;
  std::string merge = "1%";
  std::string algo = "gentree+";
  std::string collective = "allreduce";
  std::string policy = "model";
  std::string output;
  bool explain = false;
  bool is_explicit = false;
  ModelArgs model;
  SimulationArgs conditions;
};

Policy policy_of(const PlanArgs& args) { return args.policy == "runtime" ? Policy::kRuntime : Policy::kModel; }

Network network_of(const PlanArgs& args) {
  Network out = load_network(args.network);
  out.topology = with_conditions(out.topology, parse_what_if(args.conditions));
  return out;
}

PlanRequest request_of(const PlanArgs& args, const Network& network, const VectorSize& size) {
  PlanRequest out{.topology = network.topology,
                  .size_floats = size.floats(),
                  .algorithms = parse_algorithms(args.algo),
                  .model = model_options(args.model),
                  .collective = collective_of(args.collective),
                  .policy = policy_of(args)};
  out.quick_gather = message_gather(network.topology.num_servers());
  if (network.profile) out.overlap = overlap_of(*network.profile);
  return out;
}

void write_document(const PlanView& v, bool explain, std::ostream& out) {
  write_plan_document(v.request, v.answer, v.stages, explain ? PlanDetail::kExplained : PlanDetail::kPlain, out);
}

// One program per rank is another plan, with stages of its own.
void become_explicit(const PlanRequest& request, PlanAnswer& answer) {
  if (answer.plan.num_ranks > kMaxExplicitRanks) {
    throw UsageError(fmt::format("--explicit: {} ranks are too many for one program each; expected up to {}",
                                 answer.plan.num_ranks, kMaxExplicitRanks));
  }
  answer.plan = make_explicit(answer.plan);
  answer.priced = std::make_shared<const PricedPlan>(answer.plan, request.topology, request.model);
  answer.terms = answer.priced->cost(request.size_floats);
}

// Where the model is far from the simulator.
void print_doubt(const PlanView& v) {
  if (v.request.topology.num_servers() == 1) return;
  CheapSimulator simulator(v.request.topology, v.request.size_floats, v.request.model);
  const std::string words = simulator.doubt_words(v.answer.plan, v.answer.seconds());
  if (!words.empty())
    print((v.answer.optimality ? "" : "\n") + labelled("simulated", words + " (gar simulate says why)"));
}

// Several sizes: the plan of each, in a line or as a document.
int make_several(const PlanArgs& args, const std::vector<VectorSize>& sizes, const Context& context) {
  if (!args.output.empty() || args.explain || args.is_explicit) {
    throw UsageError("-o, --explain and --explicit are for a plan of one size, without --csv");
  }
  const Network network = network_of(args);
  std::vector<PlanTableSize> rows;
  for (const VectorSize& size : sizes) {
    const PlanRequest request = request_of(args, network, size);
    PlanAnswer answer = plan(request);
    answer.plan.count = size.count;
    std::string document;
    if (context.json) {
      std::ostringstream out;
      write_plan_document(request, answer, answer.priced->critical_stages(size.floats()), PlanDetail::kPlain, out);
      document = out.str();
    }
    rows.push_back({size, plan_name(answer), plan_words(answer.switches), answer.plan.num_chunks, answer.terms.total(),
                    std::move(document)});
  }
  print_plan_sizes(network.topology, rows, context);
  return kExitOk;
}

int make(const PlanArgs& args, const VectorSize& size, const Context& context) {
  PlanRequest request = request_of(args, network_of(args), size);
  const bool to_stdout = args.output == "-";
  const bool is_document = context.json || to_stdout;
  request.with_optimality = !is_document && request.topology.num_servers() <= kMaxRanksForOptimality;
  PlanView view{request, size, plan(request), {}, context.greek ? TermNames::kGreek : TermNames::kPlain};
  if (args.is_explicit) become_explicit(request, view.answer);
  view.answer.plan.count = size.count;
  view.stages = view.answer.priced->critical_stages(size.floats());
  if (!args.output.empty() && !to_stdout)
    save_file(args.output, [&](std::ostream& out) { write_document(view, args.explain, out); });
  if (is_document) {
    write_document(view, args.explain, std::cout);
    std::cout.flush();
    return kExitOk;
  }
  const bool color = use_color(context.color, stdout);
  print_plan(view, color);
  print_doubt(view);
  if (args.explain) print_explanation(view, color);
  if (!args.output.empty()) {
    print(fmt::format("\nwritten to {0}; prove it with: gar verify {1}\n", escaped(args.output),
                      shell_word(args.output)));
  }
  return kExitOk;
}

// "1%" or "0.01".
double parse_share(const std::string& flag, const std::string& text) {
  const std::optional<double> value = share_of(text);
  if (!value || *value < 0 || *value > 1) {
    throw UsageError(fmt::format("{} '{}': expected a share from 0 to 100%, such as 1% or 0.01", flag, text));
  }
  return *value;
}

// A single range without a factor asks where the best plan changes.
bool is_range(const std::string& text) {
  return text.find("..") != std::string::npos && text.find(',') == std::string::npos;
}

int run(const PlanArgs& args, const Context& context) {
  if (args.counts.empty() && args.size.empty()) {
    throw UsageError("one of --size, --count and --counts is needed");
  }
  const bool is_table =
      !args.counts.empty() || (args.size.factor.empty() && (is_range(args.size.size) || is_range(args.size.count)));
  if (!is_table) {
    const std::vector<VectorSize> sizes = vector_sizes(args.size);
    if (sizes.size() > 1 || context.csv) return make_several(args, sizes, context);
    return make(args, sizes.front(), context);
  }
  const int num_sizes =
      (args.counts.empty() ? 0 : 1) + (args.size.size.empty() ? 0 : 1) + (args.size.count.empty() ? 0 : 1);
  if (num_sizes > 1 || !args.output.empty() || args.explain) {
    throw UsageError(
        "--counts, and a range behind --size or --count, makes a table; it goes with --algo, --dtype, --merge, "
        "--policy "
        "and --model only");
  }
  return print_plan_table({.network = network_of(args),
                           .counts = args.counts.empty() ? args.size.count : args.counts,
                           .sizes = args.size.size,
                           .dtype = args.size.dtype,
                           .algorithms = parse_algorithms(args.algo),
                           .model = model_options(args.model),
                           .policy = policy_of(args),
                           .merge = parse_share("--merge", args.merge)},
                          context);
}

}  // namespace

void add_plan(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("plan", "Make the best plan for a network, and price it stage by stage");
  auto args = std::make_shared<PlanArgs>();
  add_network_options(verb, args->network);
  add_size_options(verb, args->size);
  verb.add_option("--counts", args->counts, "Best plan as a function of the size: a table with the crossover sizes")
      ->type_name("FROM..TO");
  verb.add_option("--merge", args->merge,
                  "In such a table, merge rows for which one plan is at most this much slower than the best")
      ->type_name("SHARE")
      ->capture_default_str();
  add_algo_option(verb, args->algo, "Algorithms to choose from; the best one is planned");
  add_collective_option(verb, args->collective, "What to plan");
  verb.add_option("--policy", args->policy, "What decides: the model alone, or the rules that a communicator follows")
      ->type_name("P")
      ->check(CLI::IsMember({"model", "runtime"}))
      ->capture_default_str();
  verb.add_option("-o,--output", args->output, "Write the plan to this file; - for standard output")
      ->type_name("plan.json");
  verb.add_flag("--explain", args->explain,
                "Say per switch what was considered and why it was chosen, and where the time goes");
  verb.add_flag("--explicit", args->is_explicit, "Write one program per rank instead of shared sub-plans");
  add_condition_options(verb, args->conditions);
  add_model_options(verb, args->model);
  add_output_options(verb, context);
  add_csv_option(verb, context);
  add_greek_option(verb, context);
  set_examples(
      verb,
      {{"the best plan for 1e8 floats on 16 racks of 24 servers", "gar plan -t tree:16x24 --count 1e8 -o plan.json"},
       {"the paper's planner, explained", "gar plan -t cdc384 --count 1e8 --algo gentree --explain"},
       {"which plan for which size", "gar plan -t star:12@100GbE --size 1kB..1GB"},
       {"for a network with a cable that has a tenth of its speed left",
        "gar plan -t tree:8x4 --count 1e8 --degrade rack3.uplink=10% --explain"},
       {"a ReduceScatter on 7 servers", "gar plan -t star:7 --count 1e6 --algo rhd --collective reduce-scatter"}});
  on_run(verb, context, [args, &context] { return run(*args, context); });
}

}  // namespace gar::cli
