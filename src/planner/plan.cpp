// The door of the planner: algorithms by name, and the policy that decides between plans that are nearly as good.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "planner/flat.hpp"

namespace gar {

namespace {

/// Does the model know what messages cost? Without that it finds the many messages of an exchange too cheap.
bool knows_messages(const PlanRequest& request) {
  if (!has_handling(request.model.kind)) return false;
  for (NodeId id = 0; id < request.topology.num_nodes(); ++id) {
    const Node& node = request.topology.node(id);
    if (node.is_server() && node.server.mu <= 0) return false;
  }
  return true;
}

/// May gentree+ end a plan in exchanges? These have no halves. And what a communicator measures of the cost of a
/// message when it is made is rough, so that it could take them where they are slower: it tries them when it explores.
bool may_exchange(const PlanRequest& request) {
  return request.model.exchanges && request.collective == Collective::kAllReduce &&
         request.policy != Policy::kRuntime && knows_messages(request);
}

/// Plans with one of the tree planners.
PlanAnswer plan_tree(const AlgorithmSpec& spec, const PlanRequest& request) {
  ModelOptions plus = request.model;
  plus.exchanges = may_exchange(request);
  plus.collective = request.collective;
  TreePlan tree = spec.name == "gentree+" ? gentree_plus(request.topology, request.size_floats, plus)
                                          : gentree(request.topology, request.size_floats,
                                                    {.rearrange = spec.name == "gentree", .model = request.model});
  PlanAnswer out;
  out.spec = spec;
  out.plan =
      tree.plan.collective == request.collective ? std::move(tree.plan) : as_collective(tree.plan, request.collective);
  out.priced =
      tree.priced ? tree.priced : std::make_shared<const PricedPlan>(out.plan, request.topology, request.model);
  out.switches = std::move(tree.switches);
  out.considered = std::move(tree.considered);
  return out;
}

/// Plans with a flat algorithm; hcps and hring without factors get the best ones.
PlanAnswer plan_flat(const AlgorithmSpec& spec, const PlanRequest& request) {
  ModelOptions model = request.model;
  model.collective = request.collective;
  Prediction best = Predictor(request.topology, {spec}, model).at(request.size_floats).front();
  const std::int64_t n = request.topology.num_servers();
  PlanAnswer out;
  out.spec = std::move(best.spec);
  out.plan = as_collective(n == 1 ? cps(1) : build_plan(out.spec, n), request.collective);
  out.priced = std::move(best.priced);
  if (n > 1) out.switches.push_back(flat_choice(request.topology, out.spec, best.terms));
  out.num_considered = best.num_considered;
  return out;
}

PlanAnswer plan_with(const AlgorithmSpec& spec, const PlanRequest& request) {
  PlanAnswer out = is_tree_planner(spec) ? plan_tree(spec, request) : plan_flat(spec, request);
  out.terms = out.priced->cost(request.size_floats);
  return out;
}

PlanAnswer best_of(const PlanRequest& request) {
  std::vector<AlgorithmSpec> algorithms = request.algorithms;
  if (algorithms.empty()) algorithms.push_back(parse_algorithm("gentree+"));
  PlanAnswer best;
  std::vector<PlanCandidate> asked;
  for (const AlgorithmSpec& spec : algorithms) {
    PlanAnswer one = plan_with(spec, request);
    asked.push_back({to_string(one.spec), one.plan.num_chunks, one.terms});
    if (asked.size() == 1 || one.seconds() < best.seconds()) best = std::move(one);
  }
  best.asked = std::move(asked);
  return best;
}

bool has_incast(const Topology& topology) {
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    if (id != topology.root() && topology.node(id).uplink.epsilon > 0) return true;
  }
  return false;
}

/// Deviation from least predicted time: where senders that meet on a link lose data, a stage that begins with another
/// sender than the stage before also costs what the model does not know (a connection that has been idle starts slowly,
/// and ranks are not equally late). In a ring every rank hears from one other rank only, so it is taken where it is
/// predicted to be nearly as good.
void prefer_ring(const PlanRequest& request, PlanAnswer& answer) {
  if (answer.spec.name != "gentree+" || answer.plan.num_ranks < 3) return;
  if (!has_incast(request.topology) || plan_name(answer) == "ring") return;
  PlanAnswer ring = plan_with(parse_algorithm("ring"), request);
  const double excess = ring.seconds() / answer.seconds() - 1;
  if (excess > kRingMargin) return;
  ring.passed_over = PassedOver{plan_name(answer), excess};
  ring.asked = std::move(answer.asked);
  ring.considered = std::move(answer.considered);
  answer = std::move(ring);
}

}  // namespace

SwitchChoice flat_choice(const Topology& topology, const AlgorithmSpec& spec, const Terms& terms) {
  SwitchChoice out;
  out.node = topology.root();
  out.name = topology.node(topology.root()).name;
  out.algorithm = spec.name == "hring" ? "ring" : spec.name;
  out.factors = spec.factors.empty() ? std::vector<std::int64_t>{topology.num_servers()} : spec.factors;
  out.terms = terms;
  return out;
}

PlanAnswer plan(const PlanRequest& request) {
  if (!(request.size_floats >= 0 && request.size_floats <= kMaxFloats)) {
    throw InvalidArgument(fmt::format("a vector of {} floats cannot be planned; expected a number from 0 to {:g}",
                                      request.size_floats, kMaxFloats));
  }
  PlanAnswer out = best_of(request);
  if (request.policy == Policy::kRuntime) prefer_ring(request, out);
  out.bound = lower_bound(request.topology, request.size_floats, request.collective, request.model.kind);
  require_finite(out.seconds(), fmt::format("the cost of {}", to_string(out.spec)));
  require_finite(out.bound.seconds(), "the lower bound");
  if (request.with_optimality && request.collective == Collective::kAllReduce) {
    out.optimality = optimality(out.plan, request.topology);
  }
  return out;
}

void check_algorithm(const AlgorithmSpec& spec, std::int64_t num_ranks) {
  if (is_tree_planner(spec)) return;
  if (spec.factors.empty() && (needs_factors(spec) || num_ranks == 1)) return;
  (void)build_plan(spec, num_ranks);  // the builder checks the factors; what it builds is small
}

}  // namespace gar
