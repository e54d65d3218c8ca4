// Multi-dimensional ring: the stages of HCPS, with a ring instead of a direct exchange in each of them.
//
// One ring digit per factor: the sum of (f_i - 1) steps with fan-in 2.
#include <fmt/format.h>

#include "gar/algorithms.hpp"
#include "plan/algorithms/building.hpp"

namespace gar {

Plan hierarchical_ring(std::int64_t num_ranks, const std::vector<std::int64_t>& factors) {
  return building::digits_plan(fmt::format("hring:{}", factor_words(factors)), num_ranks, factors, StageKind::kRing);
}

Plan build_hring(const AlgorithmSpec& spec, std::int64_t num_ranks) {
  return hierarchical_ring(num_ranks, spec.factors);
}

}  // namespace gar
