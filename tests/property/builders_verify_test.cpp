// Every builder of the registry makes a plan that is right, for every number of ranks, in all three forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/verify.hpp"
#include "support/naive_run.hpp"
#include "support/plans.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

std::vector<std::int64_t> rank_counts() {
  std::vector<std::int64_t> out;
  for (std::int64_t n = 1; n <= test::in_slow_build(24, 64); ++n) out.push_back(n);
  for (const std::int64_t n : {64, 97, 127, 128, 255, 384, 512}) {
    if (n <= test::in_slow_build(128, 512) && n > out.back()) out.push_back(n);
  }
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
  if (!has_halves(plan)) return;
  expect_right(as_reduce_scatter(plan));
  expect_right(as_all_gather(plan));
}

/// Uneven groupings of n ranks: few large groups, many small ones, and two in between.
std::vector<AlgorithmSpec> uneven_specs(const std::string& name, std::int64_t n) {
  std::vector<AlgorithmSpec> out;
  if (n < 4) return out;
  const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  for (const std::int64_t groups : {std::int64_t{2}, root, root + 1, n / 2}) {
    out.push_back({name, {(n + groups - 1) / groups, groups}, true});
  }
  return out;
}

/// The parameters with which an algorithm is tried on n ranks.
std::vector<AlgorithmSpec> specs_for(const AlgorithmInfo& info, std::int64_t n) {
  const std::string name(info.name);
  std::vector<AlgorithmSpec> out;
  switch (info.parameters) {
    case AlgorithmParameters::kNone:
      return {{name, {}, false}};
    case AlgorithmParameters::kFactors:
      for (const auto& factors : ordered_factorisations(n, n <= 64 ? 100'000 : 4))
        out.push_back({name, factors, false});
      if (info.folds) {
        for (const std::int64_t p : {n / 3, n / 2, n - 1}) {
          for (const auto& factors : ordered_factorisations(p, 4)) out.push_back({name, factors, false});
        }
      }
      if (info.takes_uneven) {
        for (AlgorithmSpec& spec : uneven_specs(name, n)) out.push_back(std::move(spec));
      }
      return out;
    case AlgorithmParameters::kGroupSizes:
      if (n < 6) return out;
      return {{name, {n - n / 3, n / 3}, false},
              {name, {1, n / 2, n - n / 2 - 1}, false},
              {name, {n / 2, n / 4, n - n / 2 - n / 4}, false}};
  }
  return out;
}

class EveryBuilder : public ::testing::TestWithParam<AlgorithmInfo> {};

TEST_P(EveryBuilder, MakesRightPlans) {
  for (const std::int64_t n : rank_counts()) {
    for (const AlgorithmSpec& spec : specs_for(GetParam(), n)) {
      const Plan plan = build_plan(spec, n);
      EXPECT_EQ(plan.algorithm, to_string(spec));
      expect_right_in_all_forms(plan);
    }
  }
}

std::vector<AlgorithmInfo> all_builders() {
  std::vector<AlgorithmInfo> out;
  for (const AlgorithmInfo& info : algorithms()) {
    if (!info.needs_network()) out.push_back(info);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryBuilder, ::testing::ValuesIn(all_builders()), [](const auto& tested) {
  std::string name(tested.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Builders, ExchangesAboveScatteringStagesAreRight) {
  for (const std::int64_t n : rank_counts()) {
    if (n < 4 || n > 64) continue;
    std::mt19937_64 random(static_cast<std::uint64_t>(n));
    for (const Plan& plan : test::mixed_exchange_plans(random, n, 6)) {
      EXPECT_FALSE(has_halves(plan));
      expect_right(plan);
    }
  }
}

TEST(Builders, HierarchicalRingIsRightOnManyRanks) {
  for (const auto& [n, factors] : std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>>{
           {128, {8, 16}}, {255, {3, 5, 17}}, {384, {24, 16}}, {512, {8, 8, 8}}})
    expect_right_in_all_forms(hierarchical_ring(n, factors));
}

}  // namespace
}  // namespace gar
