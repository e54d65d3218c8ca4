// Every builder makes a plan that is right, for every number of ranks, in all three forms.
#include <gtest/gtest.h>

#include <cmath>

#include "gar/algorithms.hpp"
#include "gar/verify.hpp"
#include "support/naive_run.hpp"

namespace gar {
namespace {

std::vector<std::int64_t> rank_counts() {
  std::vector<std::int64_t> out;
  for (std::int64_t n = 1; n <= 64; ++n) out.push_back(n);
  for (const std::int64_t n : {97, 127, 128, 255, 384, 512}) out.push_back(n);
  return out;
}

void expect_right(const Plan& plan) {
  const VerifyReport report = verify(plan);
  EXPECT_TRUE(report.ok) << plan.algorithm << " on " << plan.num_ranks << " ranks: " << report.problem;
  if (plan.num_ranks < 2 || plan.num_ranks > 12) return;
  const Plan explicit_plan = make_explicit(plan);
  EXPECT_EQ(test::naive_outcome(explicit_plan), test::Outcome::kRight)
      << plan.algorithm << " on " << plan.num_ranks << " ranks";
  const VerifyReport same = verify(explicit_plan);
  EXPECT_TRUE(same.ok) << plan.algorithm << " on " << plan.num_ranks << " ranks, explicit: " << same.problem;
  EXPECT_EQ(same.num_messages, report.num_messages);
  EXPECT_EQ(same.volume_units, report.volume_units);
  EXPECT_EQ(same.max_fan_in, report.max_fan_in);
  EXPECT_EQ(same.buffer_units, report.buffer_units);
}

void expect_right_in_all_forms(const Plan& plan) {
  expect_right(plan);
  expect_right(as_reduce_scatter(plan));
  expect_right(as_all_gather(plan));
}

/// Factors for uneven groups of n ranks in `groups` groups.
std::vector<std::int64_t> uneven_factors(std::int64_t n, std::int64_t groups) {
  return {(n + groups - 1) / groups, groups};
}

TEST(Builders, FlatAlgorithmsAreRight) {
  for (const std::int64_t n : rank_counts()) {
    expect_right_in_all_forms(reduce_broadcast(n));
    expect_right_in_all_forms(ring(n));
    expect_right_in_all_forms(rhd(n));
    expect_right_in_all_forms(cps(n));
  }
}

TEST(Builders, HierarchicalAlgorithmsAreRightForAllFactorisations) {
  for (const std::int64_t n : rank_counts()) {
    for (const auto& factors : ordered_factorisations(n, n <= 64 ? 100'000 : 8)) {
      expect_right_in_all_forms(hcps(n, factors));
      if (n <= 64) expect_right_in_all_forms(hierarchical_ring(n, factors));
    }
  }
}

TEST(Builders, HierarchicalRingIsRightOnManyRanks) {
  for (const auto& [n, factors] : std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>>{
           {128, {8, 16}}, {255, {3, 5, 17}}, {384, {24, 16}}, {512, {8, 8, 8}}})
    expect_right_in_all_forms(hierarchical_ring(n, factors));
}

TEST(Builders, UnevenGroupsAreRight) {
  for (const std::int64_t n : rank_counts()) {
    if (n < 4) continue;
    const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
    for (const std::int64_t groups : {std::int64_t{2}, root, root + 1, n / 2})
      expect_right_in_all_forms(uneven_hcps(n, uneven_factors(n, groups)));
  }
}

TEST(Builders, AsymmetricGroupsAreRight) {
  for (const std::int64_t n : rank_counts()) {
    if (n < 6) continue;
    expect_right_in_all_forms(acps({n - n / 3, n / 3}));
    expect_right_in_all_forms(acps({1, n / 2, n - n / 2 - 1}));
    expect_right_in_all_forms(acps({n / 2, n / 4, n - n / 2 - n / 4}));
  }
}

}  // namespace
}  // namespace gar
