// Plans for short vectors: groups of ranks exchange all they have, so that all of them hold the sum.
//
// One exchange digit per factor, neighbours first: m steps with fan-ins f_0 ... f_{m-1}, and no AllGather after them.
// Recursive doubling has factors of 2; the gather of all vectors has the one factor N. When the factors multiply to p
// < N, the ranks form p groups as even as possible, larger ones first, and each folds into its first rank in a step of
// its own; the mirror image of that step hands the result back.
//
// Every rank moves (f_i - 1) vectors in a step, so this pays where latency counts more than bytes. All members of a
// group reduce the same operands in the same order, that of ranks, so all ranks end with the same bits.
#include <fmt/format.h>

#include <bit>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "plan/algorithms/building.hpp"

namespace gar {

namespace {

/// The product of factors that number at most n ranks.
std::int64_t exchanging_ranks(std::int64_t n, const std::vector<std::int64_t>& factors) {
  std::int64_t product = 1;
  for (const std::int64_t f : factors) {
    if (f < 2 || f > n / product) {
      throw InvalidArgument(
          fmt::format("factors {} do not fit {} servers; expected factors of at least 2 whose product is at most "
                      "{}: servers beyond it fold into a partner",
                      factor_words(factors), n, n));
    }
    product *= f;
  }
  if (factors.empty() && n > 1) throw InvalidArgument("recursive multiplying needs at least one factor, as in 4x4");
  return product;
}

/// The child of an exchange that stands for `size` ranks.
SubPlanId folded(Plan& plan, std::int64_t size) {
  if (size == 1) return kLeaf;
  SubPlan group;
  group.children = {{kLeaf, size}};
  group.stages = {{StageKind::kPlace, 1, 1, {{0, plan.num_units, 0}}}};
  group.label = "fold into a partner";
  return building::add(plan, std::move(group));
}

Plan exchanges(std::string algorithm, std::int64_t n, const std::vector<std::int64_t>& factors) {
  Plan plan = building::empty_plan(std::move(algorithm), n, 1);
  const std::int64_t groups = exchanging_ranks(n, factors);
  if (n == 1) return plan;
  SubPlan top;
  const std::int64_t num_large = n % groups;
  if (num_large > 0) top.children.push_back({folded(plan, n / groups + 1), num_large});
  top.children.push_back({folded(plan, n / groups), groups - num_large});
  std::int64_t stride = 1;
  for (const std::int64_t f : factors) {
    top.stages.push_back({StageKind::kExchange, stride, f, {}});
    stride *= f;
  }
  plan.root = building::add(plan, std::move(top));
  return plan;
}

}  // namespace

Plan recursive_multiplying(std::int64_t num_ranks, const std::vector<std::int64_t>& factors) {
  return exchanges(fmt::format("recursive-multiplying:{}", factor_words(factors)), num_ranks, factors);
}

Plan recursive_doubling(std::int64_t num_ranks) {
  building::check_ranks(num_ranks);
  const auto digits = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(num_ranks)) - 1);
  return exchanges("recursive-doubling", num_ranks, std::vector<std::int64_t>(digits, 2));
}

Plan gather(std::int64_t num_ranks) {
  building::check_ranks(num_ranks);
  return exchanges("gather", num_ranks, building::one_group(num_ranks));
}

Plan build_recursive_multiplying(const AlgorithmSpec& spec, std::int64_t num_ranks) {
  return recursive_multiplying(num_ranks, spec.factors);
}
Plan build_recursive_doubling(const AlgorithmSpec& /*spec*/, std::int64_t num_ranks) {
  return recursive_doubling(num_ranks);
}
Plan build_gather(const AlgorithmSpec& /*spec*/, std::int64_t num_ranks) { return gather(num_ranks); }

}  // namespace gar
