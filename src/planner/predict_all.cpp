// Flat algorithms and tree planners in one list.
#include <algorithm>

#include "gar/planner.hpp"
#include "gar/predict.hpp"

namespace gar {

PredictAnswer predict(const PredictRequest& request) {
  const Topology& topology = request.topology;
  std::vector<AlgorithmSpec> flat;
  PredictAnswer out;
  for (const AlgorithmSpec& spec : request.algorithms) {
    if (!is_tree_planner(spec)) {
      flat.push_back(spec);
      continue;
    }
    const PlanAnswer planned = plan({.topology = topology,
                                     .size_floats = request.size_floats,
                                     .algorithms = {spec},
                                     .model = request.model,
                                     .collective = request.model.collective});
    PredictRow row;
    row.spec = planned.spec;
    row.terms = planned.terms;
    row.num_chunks = planned.plan.num_chunks;
    row.words = plan_words(planned.switches);
    out.results.push_back(std::move(row));
  }
  Predictor predictor(topology, flat, request.model);
  const std::vector<Prediction> predictions = predictor.at(request.size_floats);
  for (const Prediction& p : predictions) {
    PredictRow row;
    static_cast<Prediction&>(row) = p;
    out.results.push_back(std::move(row));
  }
  std::stable_sort(out.results.begin(), out.results.end(),
                   [](const PredictRow& a, const PredictRow& b) { return a.seconds() < b.seconds(); });
  out.bound = lower_bound(topology, request.size_floats, request.model.collective, request.model.kind);
  if (flat.size() > 1 && topology.num_servers() > 1) {
    out.flat_best = predictions.front().algorithm();
    out.size_flips = predictor.size_flips(request.size_floats);
    out.rank_flips = rank_flips(topology, flat, request.size_floats, request.model);
  }
  return out;
}

}  // namespace gar
