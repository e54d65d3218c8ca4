// Reduce-Broadcast: rank 0 reduces everything and sends the result back to all others.
//
// One kPlace stage with rank 0 as the only owner: 1 step with fan-in N; the mirror image is the broadcast.
#include "gar/algorithms.hpp"
#include "plan/algorithms/building.hpp"

namespace gar {

Plan reduce_broadcast(std::int64_t num_ranks) {
  Plan plan = building::empty_plan("reduce-broadcast", num_ranks, 1);
  if (num_ranks == 1) return plan;
  SubPlan sp;
  sp.children = {{kLeaf, num_ranks}};
  sp.stages = {{StageKind::kPlace, 1, 1, {{0, 1, 0}}}};
  plan.root = building::add(plan, std::move(sp));
  return plan;
}

Plan build_reduce_broadcast(const AlgorithmSpec& /*spec*/, std::int64_t num_ranks) {
  return reduce_broadcast(num_ranks);
}

}  // namespace gar
