// Ring: every piece travels along a chain through all ranks, and each rank adds its own contribution.
//
// One ring digit of radix N: N - 1 steps with fan-in 2.
#include "gar/algorithms.hpp"
#include "plan/algorithms/building.hpp"

namespace gar {

Plan ring(std::int64_t num_ranks) {
  return building::digits_plan("ring", num_ranks, building::one_group(num_ranks), StageKind::kRing);
}

Plan build_ring(const AlgorithmSpec& /*spec*/, std::int64_t num_ranks) { return ring(num_ranks); }

}  // namespace gar
