// Flat algorithms and tree planners in one list, each of them in one piece and in chunks.
#include <algorithm>
#include <memory>

#include "gar/errors.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "planner/gentree_plus/search.hpp"

namespace gar {
namespace {

constexpr std::int64_t kMaxChunked = 4096;  // servers up to which a plan is priced in chunks for the comparison alone

/// Puts both prices of its plan into a row. gentree+ has both; of any other plan it is found out how many chunks pay.
void price_both_ways(const PredictRequest& request, PredictRow& row) {
  const Topology& topology = request.topology;
  row.whole = row.chunked = row.terms;
  row.is_chunked = topology.num_servers() <= kMaxChunked;
  if (topology.num_servers() == 1 || !row.is_chunked) return;
  ModelOptions options = request.model;
  options.overlap = true;
  const PricedPlan priced(*row.plan, topology, options);
  const std::int64_t possible = plus::most_chunks(topology, request.size_floats, options);
  row.num_chunks = priced.few_chunks(request.size_floats,
                                     options.max_chunks > 0 ? std::min(possible, options.max_chunks) : possible);
  row.chunked = priced.pipelined_cost(request.size_floats, row.num_chunks);
}

PredictRow tree_row(const PredictRequest& request, const AlgorithmSpec& spec) {
  const PlanAnswer planned = plan({.topology = request.topology,
                                   .size_floats = request.size_floats,
                                   .algorithms = {spec},
                                   .model = request.model,
                                   .collective = request.model.collective});
  PredictRow row;
  row.spec = planned.spec;
  row.terms = planned.terms;
  row.words = plan_words(planned.switches);
  row.sentence = plan_sentence(planned.switches);
  row.plan = std::make_shared<const Plan>(planned.plan);
  if (spec.name != "gentree+") {
    price_both_ways(request, row);
    return row;
  }
  row.is_chunked = true;
  row.num_chunks = planned.plan.num_chunks;
  row.chunked = planned.terms;
  row.whole = planned.priced->pipelined_cost(request.size_floats, 1);
  return row;
}

PredictRow flat_row(const PredictRequest& request, const Prediction& prediction) {
  PredictRow row;
  static_cast<Prediction&>(row) = prediction;
  const std::int64_t n = request.topology.num_servers();
  row.plan =
      std::make_shared<const Plan>(as_collective(n == 1 ? cps(1) : build_plan(row.spec, n), request.model.collective));
  price_both_ways(request, row);
  return row;
}

}  // namespace

std::vector<AlgorithmSpec> parse_algorithm_list(std::string_view name, const std::string& text) {
  std::vector<AlgorithmSpec> out;
  const auto add = [&](const AlgorithmSpec& spec) {
    const bool known =
        std::any_of(out.begin(), out.end(), [&](const AlgorithmSpec& o) { return to_string(o) == to_string(spec); });
    if (!known) out.push_back(spec);
  };
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    begin = end + 1;
    if (one == "all") {
      for (const AlgorithmSpec& spec : classic_algorithms()) add(spec);
      for (const AlgorithmInfo& info : algorithms()) {
        if (info.needs_network()) add({std::string(info.name), {}, false});
      }
      continue;
    }
    try {
      add(parse_algorithm(one));
    } catch (const InvalidArgument& error) {
      throw UsageError(std::string(name) + ": " + error.what() + ", or all");
    }
  }
  return out;
}

PredictAnswer predict(const PredictRequest& request) {
  const Topology& topology = request.topology;
  std::vector<AlgorithmSpec> flat;
  PredictAnswer out;
  for (const AlgorithmSpec& spec : request.algorithms) {
    if (is_tree_planner(spec)) {
      out.results.push_back(tree_row(request, spec));
    } else {
      flat.push_back(spec);
    }
  }
  Predictor predictor(topology, flat, request.model);
  const std::vector<Prediction> predictions = predictor.at(request.size_floats);
  for (const Prediction& p : predictions) out.results.push_back(flat_row(request, p));
  // Where it takes as long as the plan that it has taken over, gentree+ comes first, as in gar plan.
  std::stable_partition(out.results.begin(), out.results.end(),
                        [](const PredictRow& row) { return row.spec.name == "gentree+"; });
  std::stable_sort(out.results.begin(), out.results.end(),
                   [](const PredictRow& a, const PredictRow& b) { return a.best_seconds() < b.best_seconds(); });
  out.bound = lower_bound(topology, request.size_floats, request.model.collective, request.model.kind);
  if (request.flips && flat.size() > 1 && topology.num_servers() > 1) {
    out.flat_best = predictions.front().algorithm();
    out.size_flips = predictor.size_flips(request.size_floats);
    out.rank_flips = rank_flips(topology, flat, request.size_floats, request.model);
  }
  return out;
}

}  // namespace gar
