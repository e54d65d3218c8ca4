// gar predict: what each algorithm costs on a network, which one is best, why, and where that changes.
#include "gar/predict.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "apps/gar/cli/algorithms.hpp"
#include "apps/gar/cli/network.hpp"
#include "apps/gar/verbs/verbs.hpp"
#include "apps/gar/views/term_table.hpp"
#include "gar/documents.hpp"
#include "gar/planner.hpp"

namespace gar::cli {
namespace {

struct PredictArgs {
  NetworkArgs network;
  SizeArgs size;
  std::string algo = "all";
  ModelArgs model;
};

std::string flip_words(const Flips& flips, const std::string& unit, double scale, const std::string& here) {
  const auto number = [&](double x) { return fmt::format("{:.4g}", x * scale); };
  std::string out;
  if (flips.below) {
    out += fmt::format("{} up to {} {}", flips.below->algorithm, number(flips.below->at), unit);
  }
  if (flips.above) {
    out +=
        fmt::format("{}{} from {} {}", out.empty() ? "" : "; ", flips.above->algorithm, number(flips.above->at), unit);
  }
  if (out.empty()) {
    return fmt::format("{} stays best from {} to {} {}", here, number(flips.searched_from), number(flips.searched_to),
                       unit);
  }
  return out;
}

std::string rank_words(const Topology& topology, const PredictAnswer& a) {
  if (a.rank_flips && a.rank_flips->searched_from < a.rank_flips->searched_to) {
    return flip_words(*a.rank_flips, "servers", 1, a.flat_best.substr(0, a.flat_best.find(':')));
  }
  if (servers_per_switch(topology) == 0) return "not varied, for the lowest switches differ";
  return a.rank_flips ? "not varied for so many servers"
                      : "not varied, for the factors fit this number of servers only";
}

void print_correction(const SizeCorrection& correction) {
  print(fmt::format(
      "correction  measured AllReduces of {} to {} take {:.3f} times what the model says ({:.3f} to {:.3f}); "
      "the terms are without it\n",
      format_bytes(correction.from_bytes), format_bytes(correction.to_bytes), correction.factor.value,
      correction.factor.low, correction.factor.high));
}

void print_answer(const Topology& topology, const VectorSize& size, const ModelOptions& options, const PredictAnswer& a,
                  bool color) {
  print(fmt::format("{}: {} server{}, {} x {} ({}), {}\n\n", topology.name(), topology.num_servers(),
                    topology.num_servers() == 1 ? "" : "s", format_count(size.count), to_string(size.dtype),
                    format_bytes(static_cast<double>(size.bytes)), model_name(options)));
  const double best = a.results.front().seconds();
  std::vector<Column> columns{{"algorithm"}, {"time", true}, {"vs best", true}};
  add_term_columns(columns);
  if (a.correction) columns.insert(columns.begin() + 2, {"corrected", true});
  Table table(std::move(columns));
  for (const PredictRow& p : a.results) {
    const bool is_best = &p == &a.results.front();
    std::vector<Cell> row{Cell(p.algorithm(), is_best ? Paint::kGreen : Paint::kPlain),
                          Cell(format_seconds(p.seconds()), Paint::kBold)};
    if (a.correction) row.emplace_back(format_seconds(p.seconds() * a.correction->factor.value));
    row.emplace_back(best > 0 ? fmt::format("{:.2f}x", p.seconds() / best) : "-");
    add_term_cells(p.terms, row);
    table.add_row(std::move(row));
  }
  print(table.to_string(color));
  const Prediction& winner = a.results.front();
  print("\n");
  if (a.results.size() > 1 && best > 0) {
    const Prediction& other = a.results[1];
    print(fmt::format("best        {0}; {2} takes {1} longer: {3}\n", paint(winner.algorithm(), Paint::kGreen, color),
                      format_percent(other.seconds() / best - 1), other.algorithm(),
                      saving_words(winner.terms, other.terms)));
  }
  for (const PredictRow& p : a.results) {
    if (is_tree_planner(p.spec) && p.spec.name != "gentree-norearrange") {
      const std::string chunks = p.num_chunks > 1 ? fmt::format(", in {} chunks", p.num_chunks) : "";
      print(fmt::format("{:<12}{}{}\n", p.spec.name, p.words, chunks));
    }
    if (p.num_considered > 1) {
      print(fmt::format("{:<12}best of {} factorisations and groupings{}\n", p.spec.name, p.num_considered,
                        p.is_complete ? "" : fmt::format(" ({} settled; name factors to try others)", p.num_priced)));
    }
  }
  if (a.correction) print_correction(*a.correction);
  if (best > 0) {
    print(fmt::format(
        "bound       nothing can be faster than {} ({}); the best is {:.2f}x that. In one piece, stage by stage: {}\n",
        format_seconds(a.bound.seconds()), a.bound.binding(), best / a.bound.seconds(),
        format_seconds(a.bound.sequential_seconds())));
  }
  if (topology.num_servers() == 1) {
    print("one server has nothing to exchange\n");
  } else if (!a.flat_best.empty()) {
    const double scale = 4.0 / static_cast<double>(size_of(size.dtype));
    print(
        fmt::format("by size     among the flat ones: {}\n", flip_words(a.size_flips, "elements", scale, a.flat_best)));
    print(fmt::format("by ranks    among the flat ones: {}\n", rank_words(topology, a)));
  } else if (a.results.size() > 1) {
    print("by size     not searched: name at least two flat algorithms (cps hcps ring rhd reduce-broadcast)\n");
  }
}

int predict(const PredictArgs& args, const Context& context) {
  const VectorSize size = vector_size(args.size);
  const std::vector<AlgorithmSpec> algorithms = parse_algorithms(args.algo);
  const ModelOptions options = model_options(args.model);
  const Network network = load_network(args.network);
  const Topology& topology = network.topology;
  std::vector<AlgorithmSpec> flat;
  PredictAnswer answer;
  // Corrections are relative to GenModel.
  const SizeCorrection* correction =
      network.profile ? correction_of(*network.profile, static_cast<double>(size.bytes)) : nullptr;
  if (correction != nullptr && options.kind == ModelKind::kGenModel) answer.correction = *correction;
  for (const AlgorithmSpec& spec : algorithms) {
    if (!is_tree_planner(spec)) {
      flat.push_back(spec);
      continue;
    }
    const PlanAnswer planned =
        plan({.topology = topology, .size_floats = size.floats(), .algorithms = {spec}, .model = options});
    PredictRow row;
    row.spec = planned.spec;
    row.terms = planned.terms;
    row.num_chunks = planned.plan.num_chunks;
    row.words = plan_words(planned.switches);
    answer.results.push_back(std::move(row));
  }
  Predictor predictor(topology, flat, options);
  const std::vector<Prediction> predictions = predictor.at(size.floats());
  for (const Prediction& p : predictions) {
    PredictRow row;
    static_cast<Prediction&>(row) = p;
    answer.results.push_back(std::move(row));
  }
  std::stable_sort(answer.results.begin(), answer.results.end(),
                   [](const PredictRow& a, const PredictRow& b) { return a.seconds() < b.seconds(); });
  answer.bound = lower_bound(topology, size.floats());
  if (flat.size() > 1 && topology.num_servers() > 1) {
    answer.flat_best = predictions.front().algorithm();
    answer.size_flips = predictor.size_flips(size.floats());
    answer.rank_flips = rank_flips(topology, flat, size.floats(), options);
  }
  if (context.json) {
    print(predict_document(topology, size, options, answer));
  } else {
    print_answer(topology, size, options, answer, use_color(context.color, stdout));
  }
  return kExitOk;
}

}  // namespace

void add_predict(CLI::App& program, Context& context) {
  CLI::App& verb = *program.add_subcommand("predict", "Say what each algorithm costs on a network, and why");
  auto args = std::make_shared<PredictArgs>();
  add_network_options(verb, args->network);
  add_size_options(verb, args->size);
  add_algo_option(verb, args->algo, "Algorithms to compare; hcps without factors is its best factorisation");
  add_model_options(verb, args->model);
  add_output_options(verb, context);
  set_examples(verb, {{"all algorithms on 16 racks of 24 servers", "gar predict -t tree:16x24 --count 1e8"},
                      {"two of them, 64 MiB of doubles, as JSON",
                       "gar predict -t ss24 --size 64MiB --dtype float64 --algo ring,hcps:8x3 --json"},
                      {"a network that gar fit has measured", "gar predict -p profile.json --size 1MB"},
                      {"what a model without incast and memory access would say",
                       "gar predict -t ss24 --count 1e8 --model abc"}});
  on_run(verb, context, [args, &context] { return predict(*args, context); });
}

}  // namespace gar::cli
