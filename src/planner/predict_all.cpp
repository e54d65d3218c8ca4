// Flat algorithms and tree planners in one list, each of them in one piece and in chunks.
#include <algorithm>
#include <iterator>
#include <memory>
#include <set>

#include "gar/errors.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "planner/flat_prices.hpp"
#include "planner/gentree_plus/finals.hpp"
#include "planner/gentree_plus/search.hpp"

namespace gar {
namespace {

constexpr std::int64_t kMaxChunked = 4096;  // servers up to which a plan is priced in chunks for the comparison alone

/// Puts both prices of its plan into a row. gentree+ has both; of any other plan it is found out how many chunks pay.
void price_both_ways(const PredictRequest& request, FlatPrices& prices, PredictRow& row) {
  const Topology& topology = request.topology;
  row.whole = row.chunked = row.terms;
  row.is_chunked = topology.num_servers() <= kMaxChunked;
  if (topology.num_servers() == 1 || !row.is_chunked) return;
  ModelOptions options = request.model;
  options.overlap = true;
  const std::shared_ptr<const PricedPlan> known = is_tree_planner(row.spec)
                                                      ? std::make_shared<const PricedPlan>(*row.plan, topology, options)
                                                      : prices.of(row.spec, *row.plan, topology, options);
  const PricedPlan& priced = *known;
  const std::int64_t possible = plus::most_chunks(topology, request.size_floats, options);
  row.num_chunks = priced.few_chunks(request.size_floats,
                                     options.max_chunks > 0 ? std::min(possible, options.max_chunks) : possible);
  row.chunked = priced.pipelined_cost(request.size_floats, row.num_chunks);
}

/// `considered` gets what gentree+ has compared its plan with.
PredictRow tree_row(const PredictRequest& request, const AlgorithmSpec& spec, const std::shared_ptr<FlatPrices>& prices,
                    std::vector<PlanCandidate>& considered) {
  const PlanAnswer planned = plan({.topology = request.topology,
                                   .size_floats = request.size_floats,
                                   .algorithms = {spec},
                                   .model = request.model,
                                   .collective = request.model.collective},
                                  prices);
  PredictRow row;
  row.spec = planned.spec;
  row.terms = planned.terms;
  row.words = plan_words(planned.switches);
  row.sentence = plan_sentence(planned.switches);
  row.plan = std::make_shared<const Plan>(planned.plan);
  if (spec.name != "gentree+") {
    price_both_ways(request, *prices, row);
    return row;
  }
  considered = planned.considered;
  row.is_chunked = true;
  row.num_chunks = planned.plan.num_chunks;
  row.chunked = planned.terms;
  row.whole = row.num_chunks == 1 ? planned.terms : planned.priced->pipelined_cost(request.size_floats, 1);
  return row;
}

PredictRow flat_row(const PredictRequest& request, const Prediction& prediction, FlatPrices& prices) {
  PredictRow row;
  static_cast<Prediction&>(row) = prediction;
  const std::int64_t n = request.topology.num_servers();
  row.plan =
      std::make_shared<const Plan>(as_collective(n == 1 ? cps(1) : build_plan(row.spec, n), request.model.collective));
  price_both_ways(request, prices, row);
  return row;
}

/// A row with what its plan costs by the rules of gentree+: as it was compared with it, or simulated now.
void settle(const PredictRequest& request, const std::vector<PlanCandidate>& considered, PredictRow& row) {
  const auto known = std::find_if(considered.begin(), considered.end(),
                                  [&](const PlanCandidate& plan) { return plan.algorithm == row.algorithm(); });
  if (known != considered.end()) {
    row.num_chunks = known->num_chunks;
    row.chunked = known->terms;
  } else {
    const TreePlan best = plus::settled(*row.plan, request.topology, request.size_floats, request.model);
    row.num_chunks = best.plan.num_chunks;
    row.chunked = best.priced->cost(request.size_floats);
  }
  // The price of a half in one piece is not what counts, either.
  const bool is_half = request.model.collective != Collective::kAllReduce;
  if (row.num_chunks == 1 || (is_half && row.whole.total() < row.chunked.total())) row.whole = row.chunked;
}

/// Sorts rows, the best first. What gentree+ costs has been simulated where that can be more than its price. So others
/// are settled in the same way as long as one of them is the first, or the next one that takes notably longer: who is
/// best, and by how much, does not hang on two kinds of prices. What is behind these has its price, which is less than
/// it takes or as much.
void rank(const PredictRequest& request, const std::vector<PlanCandidate>& considered, std::vector<PredictRow>& rows) {
  constexpr double kNotable = 1.002;
  const auto is_plus = [](const PredictRow& row) { return row.spec.name == "gentree+"; };
  const bool settles =
      request.model.simulates && plus::may_simulate(request.topology) && std::any_of(rows.begin(), rows.end(), is_plus);
  std::set<const Plan*> settled;
  for (;;) {
    // Where it takes as long as the plan that it has taken over, gentree+ comes first, as in gar plan.
    std::stable_sort(rows.begin(), rows.end(), [&](const PredictRow& a, const PredictRow& b) {
      if (a.best_seconds() != b.best_seconds()) return a.best_seconds() < b.best_seconds();
      return is_plus(a) && !is_plus(b);
    });
    const auto next = std::find_if(rows.begin(), rows.end(), [&](const PredictRow& row) {
      return !is_plus(row) && row.is_chunked && !settled.contains(row.plan.get());
    });
    if (!settles || next == rows.end()) return;
    if (next != rows.begin() && std::prev(next)->best_seconds() > kNotable * rows.front().best_seconds()) return;
    settle(request, considered, *next);
    settled.insert(next->plan.get());
  }
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
  std::vector<PlanCandidate> considered;  // by gentree+
  PredictAnswer out;
  const auto prices = std::make_shared<FlatPrices>();
  for (const AlgorithmSpec& spec : request.algorithms) {
    if (is_tree_planner(spec)) {
      out.results.push_back(tree_row(request, spec, prices, considered));
    } else {
      flat.push_back(spec);
    }
  }
  Predictor predictor(topology, flat, request.model, prices);
  const std::vector<Prediction> predictions = predictor.at(request.size_floats);
  for (const Prediction& p : predictions) out.results.push_back(flat_row(request, p, *prices));
  rank(request, considered, out.results);
  out.bound = lower_bound(topology, request.size_floats, request.model.collective, request.model.kind);
  if (request.flips && flat.size() > 1 && topology.num_servers() > 1) {
    out.flat_best = predictions.front().algorithm();
    out.size_flips = predictor.size_flips(request.size_floats);
    out.rank_flips = rank_flips(topology, flat, request.size_floats, request.model);
  }
  return out;
}

}  // namespace gar
