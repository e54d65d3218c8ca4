// What the builders of plans share: empty plans, stages over digits, resolutions that divide evenly.
#include "plan/algorithms/building.hpp"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/topology.hpp"

namespace gar::building {

namespace {

// Fine enough that rounding never matters, small enough for exact doubles and readable files.
constexpr std::int64_t kManyUnits = std::int64_t{1} << 50;

// Least common multiple, or 0 when it is beyond kManyUnits.
std::int64_t bounded_lcm(std::int64_t a, std::int64_t b) {
  if (a == 0) return 0;
  const std::int64_t q = b / std::gcd(a, b);
  return q > kManyUnits / a ? 0 : a * q;
}

// The product of the factors, or -1 as soon as it cannot be n any more.
std::int64_t product_up_to(std::int64_t n, const std::vector<std::int64_t>& factors) {
  std::int64_t product = 1;
  for (const std::int64_t f : factors) {
    if (f < 2 || f > n || product > n / f) return -1;
    product *= f;
  }
  return product;
}

}  // namespace

void check_ranks(std::int64_t n) {
  if (n < 1 || n > kMaxServers) {
    throw InvalidArgument(fmt::format("{} ranks; expected 1 to {}", n, kMaxServers));
  }
}

Plan empty_plan(std::string algorithm, std::int64_t n, std::int64_t units) {
  check_ranks(n);
  Plan plan;
  plan.algorithm = std::move(algorithm);
  plan.num_ranks = n;
  plan.num_units = units;
  return plan;
}

SubPlanId add(Plan& plan, SubPlan subplan) {
  plan.subplans.push_back(std::move(subplan));
  return static_cast<SubPlanId>(plan.subplans.size()) - 1;
}

Plan digits_plan(std::string algorithm, std::int64_t n, const std::vector<std::int64_t>& factors, StageKind kind) {
  check_ranks(n);
  if (product_up_to(n, factors) != n) {
    throw InvalidArgument(
        fmt::format("factors {} do not multiply to {} servers; expected factors of at least 2 with product {}, or "
                    "uneven groups as in hcps:~{}",
                    factor_words(factors), n, n, factor_words(factors)));
  }
  Plan plan = empty_plan(std::move(algorithm), n, n);
  if (n == 1) return plan;
  SubPlan sp;
  sp.children = {{kLeaf, n}};
  std::int64_t stride = 1;
  for (const std::int64_t f : factors) {
    sp.stages.push_back({kind, stride, f, {}});
    stride *= f;
  }
  plan.root = add(plan, std::move(sp));
  return plan;
}

std::vector<std::int64_t> one_group(std::int64_t n) {
  return n == 1 ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{n};
}

std::int64_t units_for(std::int64_t n, const std::vector<std::int64_t>& divisors) {
  std::int64_t units = n;
  for (const std::int64_t d : divisors) units = bounded_lcm(units, d);
  return units != 0 ? units : kManyUnits / n * n;
}

std::vector<Piece> placement_of(const Plan& plan, SubPlanId id, std::int64_t n) {
  if (id == kLeaf) return {{0, plan.num_units, 0}};
  const auto last = plan.subplans.begin() + id;
  if (!last->stages.empty() && !is_digit(last->stages.back())) return last->stages.back().target;
  Plan part;  // up to this sub-plan: those after it are none of its children
  part.algorithm = plan.algorithm;
  part.num_ranks = n;
  part.num_units = plan.num_units;
  part.subplans.assign(plan.subplans.begin(), last + 1);
  part.root = id;
  return PlanIndex(part).placement_after(id);
}

}  // namespace gar::building
