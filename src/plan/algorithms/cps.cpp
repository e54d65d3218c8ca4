// Co-located parameter server: every rank owns one piece and gets it from all other ranks at once.
//
// One direct digit of radix N: 1 step with fan-in N.
#include "gar/algorithms.hpp"
#include "plan/algorithms/building.hpp"

namespace gar {

Plan cps(std::int64_t num_ranks) {
  return building::digits_plan("cps", num_ranks, building::one_group(num_ranks), StageKind::kDirect);
}

Plan build_cps(const AlgorithmSpec& /*spec*/, std::int64_t num_ranks) { return cps(num_ranks); }

}  // namespace gar
