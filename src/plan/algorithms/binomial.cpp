// Binomial tree: rank 0 ends with the sum after ceil(log2 N) steps of fan-in 2; the mirror image is the broadcast.
//
// A tree of n ranks is one of the largest power of two below n and one of the rest, whose first rank sends all it has
// to the first of the other. Trees of the same size are shared, so that there are O(log N) sub-plans.
#include <bit>
#include <map>

#include "gar/algorithms.hpp"
#include "plan/algorithms/building.hpp"

namespace gar {

namespace {

SubPlanId binomial_tree(Plan& plan, std::int64_t n, std::map<std::int64_t, SubPlanId>& known) {
  if (n == 1) return kLeaf;
  if (const auto it = known.find(n); it != known.end()) return it->second;
  const auto first = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)) / 2);
  SubPlan tree;
  const SubPlanId left = binomial_tree(plan, first, known);
  const SubPlanId right = binomial_tree(plan, n - first, known);
  tree.children = left == right ? std::vector<SubPlanRun>{{left, 2}} : std::vector<SubPlanRun>{{left, 1}, {right, 1}};
  tree.stages = {{StageKind::kPlace, 1, 1, {{0, plan.num_units, 0}}}};
  return known[n] = building::add(plan, std::move(tree));
}

}  // namespace

Plan binomial(std::int64_t num_ranks) {
  Plan plan = building::empty_plan("binomial", num_ranks, 1);
  std::map<std::int64_t, SubPlanId> known;
  plan.root = binomial_tree(plan, num_ranks, known);
  return plan;
}

Plan build_binomial(const AlgorithmSpec& /*spec*/, std::int64_t num_ranks) { return binomial(num_ranks); }

}  // namespace gar
