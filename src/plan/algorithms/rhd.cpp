// Recursive halving and doubling: partners exchange halves of what they still hold, the nearest partner first.
//
// Radix-2 digits over p = 2^floor(log2 N) ranks: log2 p steps with fan-in 2. When N is no power of two, the first
// 2 (N - p) ranks form pairs and fold into one rank of each pair in a step of its own.
#include <bit>

#include "gar/algorithms.hpp"
#include "plan/algorithms/building.hpp"

namespace gar {

Plan rhd(std::int64_t num_ranks) {
  building::check_ranks(num_ranks);
  const auto p = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(num_ranks)));
  Plan plan = building::empty_plan("rhd", num_ranks, p);
  if (num_ranks == 1) return plan;
  SubPlan top;
  const std::int64_t folded = num_ranks - p;
  if (folded > 0) {
    SubPlan pair;
    pair.children = {{kLeaf, 2}};
    pair.stages = {{StageKind::kPlace, 1, 1, {{0, p, 0}}}};
    pair.label = "fold into a partner";
    top.children.push_back({building::add(plan, std::move(pair)), folded});
  }
  if (p > folded) top.children.push_back({kLeaf, p - folded});
  for (std::int64_t stride = 1; stride < p; stride *= 2) top.stages.push_back({StageKind::kDirect, stride, 2, {}});
  plan.root = building::add(plan, std::move(top));
  return plan;
}

Plan build_rhd(const AlgorithmSpec& /*spec*/, std::int64_t num_ranks) { return rhd(num_ranks); }

}  // namespace gar
