// Hierarchical CPS: CPS among neighbours first, then between groups, one level per factor.
//
// One direct digit per factor: m steps with fan-ins f_0 ... f_{m-1} when the factors multiply to N. Other N form groups
// as even as possible (uneven_hcps): a level whose groups are equal is a digit, and a level whose groups differ by one
// rank is an Asymmetric CPS.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "plan/algorithms/building.hpp"

namespace gar {

namespace {

/// `count` groups of `size` ranks.
struct GroupRun {
  std::int64_t size = 0;
  std::int64_t count = 0;
};

// Groups of ranks as even as possible, the larger ones first.
std::vector<GroupRun> even_groups(std::int64_t n, std::int64_t groups) {
  const std::int64_t small = n / groups;
  const std::int64_t num_large = n % groups;
  std::vector<GroupRun> out;
  if (num_large > 0) out.push_back({small + 1, num_large});
  out.push_back({small, groups - num_large});
  return out;
}

// Builds the levels of uneven_hcps; sub-plans of the same size and level are shared.
class UnevenBuilder {
 public:
  UnevenBuilder(Plan& plan, const std::vector<std::int64_t>& factors) : plan_(plan), factors_(factors) {}

  SubPlanId build(std::int64_t n, std::size_t level) {
    if (n == 1) return kLeaf;
    const auto key = std::make_pair(n, level);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
    SubPlan sp;
    if (level == 0) {
      sp.children = {{kLeaf, n}};
      sp.stages = {{StageKind::kDirect, 1, n, {}}};
      sp.label = fmt::format("groups of {}", n);
    } else {
      const std::int64_t groups = std::min(factors_[level], n);
      const std::vector<GroupRun> runs = even_groups(n, groups);
      for (const GroupRun& run : runs) sp.children.push_back({build(run.size, level - 1), run.count});
      if (runs.size() == 1) {
        sp.stages = {{StageKind::kDirect, runs[0].size, groups, {}}};
      } else {
        sp.stages = {{StageKind::kPlace, 1, 1, acps_target(placements(sp, runs), n, plan_.num_units)}};
      }
      sp.label = fmt::format("between {} groups", groups);
    }
    return known_[key] = building::add(plan_, std::move(sp));
  }

 private:
  std::vector<std::vector<Piece>> placements(const SubPlan& sp, const std::vector<GroupRun>& runs) const {
    std::vector<std::vector<Piece>> held;
    std::int64_t first = 0;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const std::vector<Piece> one = building::placement_of(plan_, sp.children[r].subplan, runs[r].size);
      for (std::int64_t c = 0; c < runs[r].count; ++c) {
        held.push_back(one);
        for (Piece& p : held.back()) p.owner += static_cast<std::int32_t>(first);
        first += runs[r].size;
      }
    }
    return held;
  }

  Plan& plan_;
  const std::vector<std::int64_t>& factors_;
  std::map<std::pair<std::int64_t, std::size_t>, SubPlanId> known_;
};

}  // namespace

Plan hcps(std::int64_t num_ranks, const std::vector<std::int64_t>& factors) {
  return building::digits_plan(fmt::format("hcps:{}", factor_words(factors)), num_ranks, factors, StageKind::kDirect);
}

Plan uneven_hcps(std::int64_t num_ranks, const std::vector<std::int64_t>& factors) {
  building::check_ranks(num_ranks);
  if (factors.empty()) throw InvalidArgument("uneven hcps needs at least one factor, as in hcps:~9x11");
  std::vector<std::int64_t> divisors;
  std::int64_t largest = num_ranks;
  for (std::size_t level = factors.size(); level-- > 0;) {
    if (factors[level] < 2 || (level > 0 && factors[level] > largest)) {
      throw InvalidArgument(fmt::format("hcps:~{}: factor {} does not fit {} servers; expected 2 to {}",
                                        factor_words(factors), factors[level], largest, largest));
    }
    divisors.push_back(largest);
    divisors.push_back(std::max<std::int64_t>(largest - 1, 1));
    divisors.push_back(factors[level]);
    if (level > 0) largest = (largest + factors[level] - 1) / factors[level];
  }
  if (factors[0] != largest) {
    throw InvalidArgument(
        fmt::format("hcps:~{}: the innermost groups of {} servers have up to {}, so the first factor must be {}",
                    factor_words(factors), num_ranks, largest, largest));
  }
  Plan plan = building::empty_plan(fmt::format("hcps:~{}", factor_words(factors)), num_ranks,
                                   building::units_for(num_ranks, divisors));
  plan.root = UnevenBuilder(plan, factors).build(num_ranks, factors.size() - 1);
  return plan;
}

Plan build_hcps(const AlgorithmSpec& spec, std::int64_t num_ranks) {
  return spec.uneven ? uneven_hcps(num_ranks, spec.factors) : hcps(num_ranks, spec.factors);
}

}  // namespace gar
