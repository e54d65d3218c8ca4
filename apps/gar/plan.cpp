// gar plan: makes a plan for a network, says what it costs and where the time goes, and writes it to a file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>

#include "apps/gar/algorithms.hpp"
#include "apps/gar/files.hpp"
#include "apps/gar/terms.hpp"
#include "apps/gar/verbs.hpp"
#include "gar/io.hpp"
#include "gar/predict.hpp"
#include "src/io/plan_json.hpp"

namespace gar::cli {
namespace {

constexpr std::int64_t kMaxRanksForOptimality = 1024;  // it looks at every message
constexpr std::int64_t kMaxExplicitRanks = 20'000;

struct PlanArgs {
  std::string topology;
  SizeArgs size;
  std::string algo = "all";
  std::string collective = "allreduce";
  std::string output;
  bool explain = false;
  bool is_explicit = false;
  ModelArgs model;
};

struct Result {
  Topology topology;
  VectorSize size;
  ModelOptions options;
  std::vector<Prediction> predictions;
  Plan plan;
  Terms terms;
  std::vector<StageCost> stages;
  LowerBound bound;
  std::optional<Optimality> optimal;
};

// How the plan is called in "switches": reduce-broadcast apart, one of cps hcps ring rhd acps.
std::string switch_algorithm(const AlgorithmSpec& spec) { return spec.name == "hring" ? "ring" : spec.name; }

std::vector<std::int64_t> switch_factors(const Result& r) {
  const AlgorithmSpec& spec = r.predictions.front().spec;
  if (!spec.factors.empty()) return spec.factors;
  return {r.topology.num_servers()};
}

void write_document(const Result& r, std::ostream& out) {
  Json extra;
  extra["topology"] = r.topology.name();
  extra["predicted_seconds"] = r.terms.total();
  extra["terms"] = terms_json(r.terms);
  extra["lower_bound_seconds"] = r.bound.seconds();
  Json one;
  one["name"] = r.topology.node(r.topology.root()).name;
  one["algorithm"] = switch_algorithm(r.predictions.front().spec);
  one["factors"] = switch_factors(r);
  one["rearranged"] = false;
  one["seconds"] = r.terms.total();
  one["count"] = 1;
  extra["switches"] = Json::array({one});
  extra["stages"] = Json::array();
  for (const StageCost& s : r.stages) extra["stages"].push_back(stage_json(s, r.size.floats()));

  out << "{\n\"gar_version\":" << Json(version()).dump() << ",\n";
  write_plan_fields(r.plan, out);
  for (const auto& [key, value] : extra.items()) out << ",\n" << Json(key).dump() << ":" << value.dump();
  out << "\n}\n";
}

std::string yes(bool value) { return value ? "yes" : "no"; }

void print_stages(const Result& r, bool color) {
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
    std::vector<Cell> row{s.is_gather ? "gather" : "scatter", s.label, fmt::format("{}", s.num_steps),
                          Cell(format_seconds(t.total()), Paint::kBold)};
    for (const double x : {t.alpha, t.beta, t.gamma, t.delta, t.epsilon}) {
      row.emplace_back(format_seconds(x, 3), x == 0 ? Paint::kDim : Paint::kPlain);
    }
    row.emplace_back(s.link);
    row.emplace_back(fmt::format("{}", s.senders), t.epsilon > 0 ? Paint::kYellow : Paint::kPlain);
    table.add_row(std::move(row));
  }
  print(table.to_string(color));
}

void print_explanation(const Result& r) {
  print("\nwhere the time goes\n");
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
                      ++n, s.label, s.is_gather ? "AllGather" : "ReduceScatter", format_seconds(t.alpha, 3), s.link,
                      format_percent(s.volume), s.num_steps > 1 ? fmt::format(" in each of {} steps", s.num_steps) : "",
                      s.senders, s.senders == 1 ? "" : "s", format_seconds(link, 3), incast, calculation));
  }
  if (r.predictions.size() > 1) {
    print("\ncandidates\n");
    for (const Prediction& p : r.predictions) {
      print(fmt::format(
          "  {:<18} {:>10}{}\n", p.algorithm(), format_seconds(p.seconds()),
          p.num_considered > 1 ? fmt::format("  best of {} factorisations and groupings", p.num_considered) : ""));
    }
  }
}

void print_result(const Result& r, const PlanArgs& args, bool color) {
  print(fmt::format("{} on {} ({} server{}), {} x {} ({}), {}\n", paint(r.plan.algorithm, Paint::kGreen, color),
                    r.topology.name(), r.topology.num_servers(), r.topology.num_servers() == 1 ? "" : "s",
                    format_count(r.size.count), r.size.dtype.name, format_bytes(static_cast<double>(r.size.bytes)),
                    args.collective));
  print(fmt::format("predicted {} by {}", paint(format_seconds(r.terms.total()), Paint::kBold, color),
                    model_name(r.options)));
  if (r.bound.seconds() > 0 && r.plan.collective == Collective::kAllReduce) {
    const char* binds = r.bound.bandwidth >= r.bound.calculation ? "link bandwidth" : "calculation";
    print(fmt::format(", {:.2f}x the lower bound {} ({} {})", r.terms.total() / r.bound.seconds(),
                      format_seconds(r.bound.seconds()), binds,
                      r.bound.bandwidth >= r.bound.calculation ? r.bound.cut : ""));
  }
  print("\n\n");
  if (!r.stages.empty()) print_stages(r, color);
  if (r.optimal) {
    print(fmt::format("\noptimal in bandwidth: {}, latency: {}, incast: {}, memory access: {}\n",
                      yes(r.optimal->bandwidth), yes(r.optimal->latency), yes(r.optimal->incast),
                      yes(r.optimal->memory_access)));
  }
  if (args.explain) print_explanation(r);
  if (!args.output.empty())
    print(fmt::format("\nwritten to {}; prove it with: gar verify {}\n", args.output, args.output));
}

Plan make_plan(const PlanArgs& args, const Prediction& choice, const VectorSize& size, std::int64_t num_ranks) {
  Plan plan = num_ranks == 1 ? cps(1) : build_plan(choice.spec, num_ranks);
  if (args.collective == "reduce-scatter") plan = as_reduce_scatter(plan);
  if (args.collective == "all-gather") plan = as_all_gather(plan);
  if (args.is_explicit) {
    if (num_ranks > kMaxExplicitRanks) {
      throw UsageError(fmt::format("--explicit: {} ranks are too many for one program each; accepted are up to {}",
                                   num_ranks, kMaxExplicitRanks));
    }
    plan = make_explicit(plan);
  }
  plan.count = size.count;
  return plan;
}

int make(const PlanArgs& args, const Context& context) {
  const VectorSize size = vector_size(args.size);
  const std::vector<AlgorithmSpec> algorithms = parse_algorithms(args.algo);
  Result r{load_topology(args.topology), size, model_options(args.model), {}, {}, {}, {}, {}, {}};
  r.predictions = Predictor(r.topology, algorithms, r.options).at(size.floats());
  r.plan = make_plan(args, r.predictions.front(), size, r.topology.num_servers());
  const PricedPlan priced(r.plan, r.topology, r.options);
  r.terms = priced.cost(size.floats());
  r.stages = priced.critical_stages(size.floats());
  r.bound = lower_bound(r.topology, size.floats());
  if (!args.output.empty()) save_file(args.output, [&](std::ostream& out) { write_document(r, out); });
  if (context.json) {
    write_document(r, std::cout);
    std::cout.flush();
    return kExitOk;
  }
  if (r.plan.collective == Collective::kAllReduce && r.plan.num_ranks <= kMaxRanksForOptimality) {
    r.optimal = optimality(r.plan, r.topology);
  }
  print_result(r, args, use_color(context.color, stdout));
  return kExitOk;
}

}  // namespace

void add_plan(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("plan", "Make the plan of the best algorithm, and price it stage by stage");
  auto args = std::make_shared<PlanArgs>();
  add_topology_option(verb, args->topology);
  add_size_options(verb, args->size);
  add_algo_option(verb, args->algo, "Algorithms to choose from; the best one is planned");
  verb.add_option("--collective", args->collective, "What to plan")
      ->type_name("C")
      ->check(CLI::IsMember({"allreduce", "reduce-scatter", "all-gather"}))
      ->capture_default_str();
  verb.add_option("-o,--output", args->output, "Write the plan to this file")->type_name("plan.json");
  verb.add_flag("--explain", args->explain, "Say in words where the time goes, and what else was considered");
  verb.add_flag("--explicit", args->is_explicit, "Write one program per rank instead of shared sub-plans");
  add_model_options(verb, args->model);
  add_output_options(verb, context);
  set_examples(
      verb,
      {{"the best plan for 1e8 floats on 16 racks of 24 servers", "gar plan -t tree:16x24 --count 1e8 -o plan.json"},
       {"one algorithm, explained", "gar plan -t ss24 --count 1e8 --algo hcps:8x3 --explain"},
       {"a ReduceScatter on 7 servers", "gar plan -t star:7 --count 1e6 --algo rhd --collective reduce-scatter"}});
  on_run(verb, context, [args, &context] { return make(*args, context); });
}

}  // namespace gar::cli
