// Rows of a benchmark as observations.
#include <map>
#include <memory>
#include <numeric>

#include "gar/fit.hpp"
#include "gar/limits.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"

namespace gar {

namespace {

/// What the model finds best for each size, for rows that do not say what ran.
class BestPlan {
 public:
  explicit BestPlan(Topology topology)
      : topology_(std::move(topology)),
        is_one_switch_(topology_.height(topology_.root()) == 1),
        model_(metered({}, topology_)) {}

  /// Sets the algorithm, or the plan where only a tree planner finds it.
  void choose(Observation& observation) {
    const auto [found, is_new] = known_.try_emplace(observation.size_floats);
    if (is_new) found->second = best_at(observation.size_floats);
    observation.algorithm = found->second.algorithm;
    observation.plan = found->second.plan;
  }

 private:
  struct Choice {
    AlgorithmSpec algorithm;
    std::shared_ptr<const Plan> plan;
  };
  Choice best_at(double size_floats) {
    PlanRequest request{.topology = topology_, .size_floats = size_floats, .model = model_};
    if (is_one_switch_) {
      request.algorithms = classic_algorithms();
      return {plan(request).spec, nullptr};
    }
    request.model.max_chunks = 1;
    request.model.exchanges = false;  // other libraries do not take them either
    PlanAnswer best = plan(request);
    return {best.spec, std::make_shared<const Plan>(std::move(best.plan))};
  }

  Topology topology_;
  bool is_one_switch_;
  ModelOptions model_;  // all sizes together count against one limit
  std::map<double, Choice> known_;
};

}  // namespace

std::vector<Observation> observations_of(const std::vector<ResultRow>& rows, const Topology& topology,
                                         std::int64_t num_ranks) {
  check_work(kResultLimit, static_cast<double>(num_ranks) * static_cast<double>(rows.size()), "the table of results");
  std::vector<std::int64_t> servers(static_cast<std::size_t>(num_ranks));
  std::iota(servers.begin(), servers.end(), std::int64_t{0});
  BestPlan best(num_ranks == topology.num_servers() ? topology : place_ranks(topology, servers));
  std::vector<Observation> out;
  for (const ResultRow& row : rows) {
    Observation o;
    o.servers = servers;
    o.size_floats = row.bytes / 4;
    o.seconds = {row.seconds};
    if (row.algorithm.empty()) {
      best.choose(o);
    } else {
      o.algorithm = parse_algorithm(row.algorithm);
    }
    out.push_back(std::move(o));
  }
  return out;
}

}  // namespace gar
