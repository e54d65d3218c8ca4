// Properties of the planners on seeded random trees: uneven, several levels, parameters over four decades, sizes from
// one float to 1e9. Every plan is proved, nothing beats gentree+, nothing beats the lower bound, and planning twice
// gives the same plan.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "gar/topology.hpp"
#include "gar/verify.hpp"
#include "support/random_topology.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

constexpr double kTie = 1e-12;   // relative: what rounding may cost
constexpr double kBound = 1e-9;  // relative: sums in different orders
constexpr int kNumBatches = 8;   // tests of their own: a failure says where, the rest still runs
int num_trees() { return test::drawn(48, 250, 1000); }

struct Input {
  Topology topology;
  double size;
};

Input draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  test::RandomTopologyOptions options;
  options.min_servers = 2;
  options.max_servers = random() % 4 == 0 ? 24 : 200;
  options.max_levels = static_cast<int>(1 + random() % 5);
  options.uneven_probability = 0.25 * static_cast<double>(random() % 4);
  options.decades = 2;
  options.same_per_level = random() % 2 == 0;
  Topology topology = test::random_topology(random, options);
  const double exponent = 9 * static_cast<double>(random() >> 11) * 0x1.0p-53;
  return {std::move(topology), std::floor(std::pow(10.0, exponent))};
}

std::string words(const Topology& t) {
  return std::to_string(t.num_servers()) + " servers, " + std::to_string(t.height(t.root())) + " levels";
}

/// The algorithms that take no planner, each with its best factors. Settling hcps is slow on large trees.
std::vector<AlgorithmSpec> flat_algorithms(bool with_hcps) {
  std::vector<AlgorithmSpec> out;
  for (const char* name : {"cps", "ring", "rhd", "reduce-broadcast", "hring"}) out.push_back({name, {}, false});
  if (with_hcps) out.push_back({"hcps", {}, false});
  return out;
}

void expect_proved(const Plan& plan) {
  const VerifyReport report = verify(plan);
  EXPECT_TRUE(report.ok) << plan.algorithm << ": " << report.problem;
}

/// What is checked beyond the proofs and gentree.
struct Extras {
  bool hcps = true;
  bool twice = true;  ///< plan again with gentree+
};

void check(const Topology& topology, double size, const Extras& extras = {}) {
  const double bound = lower_bound(topology, size).seconds() * (1 - kBound);
  ModelOptions options;
  options.simulates = extras.twice;  // takes most of the time; chunks_property_test.cpp is about it
  const TreePlan plus = gentree_plus(topology, size, options);
  expect_proved(plus.plan);
  EXPECT_EQ(plus.plan.algorithm, "gentree+");
  EXPECT_EQ(plus.plan.num_ranks, topology.num_servers());
  if (extras.twice) {
    EXPECT_EQ(plus.plan, gentree_plus(topology, size, options).plan) << "another plan the second time";
  }
  const double least = PricedPlan(plus.plan, topology).cost(size).total();
  EXPECT_GE(least, bound) << "gentree+ in " << plus.plan.num_chunks << " chunks";

  for (const bool rearrange : {true, false}) {
    const GenTreeOptions planner{rearrange, {}};
    const TreePlan tree = gentree(topology, size, planner);
    expect_proved(tree.plan);
    EXPECT_EQ(tree.plan, gentree(topology, size, planner).plan) << "another plan the second time";
    const double seconds = PricedPlan(tree.plan, topology).cost(size).total();
    EXPECT_LE(least, seconds * (1 + kTie)) << tree.plan.algorithm;
    EXPECT_GE(seconds, bound) << tree.plan.algorithm;
  }
  for (const Prediction& p : Predictor(topology, flat_algorithms(extras.hcps)).at(size)) {
    EXPECT_LE(least, p.seconds() * (1 + kTie)) << p.algorithm();
    EXPECT_GE(p.seconds(), bound) << p.algorithm();
  }
}

int num_failed_parts() { return ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count(); }

class PlannerProperty : public ::testing::TestWithParam<int> {};

TEST_P(PlannerProperty, HoldsOnRandomTrees) {
  int failures = 0;
  for (int i = GetParam(); i < num_trees() && failures < 5; i += kNumBatches) {
    const auto seed = static_cast<std::uint64_t>(i + 1);
    const Input input = draw(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + words(input.topology) + ", " + std::to_string(input.size) +
                 " floats");
    const int before = num_failed_parts();
    const bool in_full = i / kNumBatches % 5 == 0;
    check(input.topology, input.size, {in_full || input.topology.num_servers() <= 48, in_full});
    failures += num_failed_parts() > before ? 1 : 0;
  }
}
INSTANTIATE_TEST_SUITE_P(Batches, PlannerProperty, ::testing::Range(0, kNumBatches));

/// Sub-plans of different kinds side by side? Then one may wait for the other.
bool has_different_siblings(const Plan& plan) {
  for (const SubPlan& sp : plan.subplans) {
    SubPlanId other = kLeaf;
    for (const SubPlanRun& run : sp.children) {
      if (run.subplan != kLeaf && other != kLeaf && run.subplan != other) return true;
      other = run.subplan == kLeaf ? other : run.subplan;
    }
  }
  return false;
}

// Where all children of every switch are alike nobody waits, so the cost by sub-plans is that of all ranks in lockstep:
// real shares are what the planner priced.
TEST(PlannerShares, OnEvenTreesAreThoseThatWerePriced) {
  for (std::uint64_t seed = 1; seed <= test::drawn(40U, 100U, 400U); ++seed) {
    std::mt19937_64 random(seed);
    test::RandomTopologyOptions options;
    options.min_servers = 2;
    options.max_servers = 60;
    options.max_levels = 3;
    options.uneven_probability = 0;
    options.chain_probability = 0;
    options.decades = 2;
    const Topology topology = test::random_topology(random, options);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + words(topology));
    constexpr double kSize = 1e6;
    for (Plan plan : {gentree(topology, kSize).plan, gentree_plus(topology, kSize).plan}) {
      if (has_different_siblings(plan)) continue;
      plan.num_chunks = 1;
      const double seconds = PricedPlan(plan, topology).cost(kSize).total();
      EXPECT_NEAR(seconds, cost_of_programs(plan, topology, kSize).total(), 1e-6 * seconds) << plan.algorithm;
    }
    ASSERT_FALSE(HasFailure());
  }
}

// --- Degenerate networks ---------------------------------------------------------------------------------------------

Node server() {
  const PaperParams p;
  return {"server", p.alpha, p.server_link, p.server, {}};
}
Node switch_of(const std::string& name, std::vector<ChildRun> children) {
  const PaperParams p;
  return {name, p.alpha, p.inner_link, {}, std::move(children)};
}

/// Node 0 is a server, the others are given, the last one is the root.
Topology tree_of(std::vector<Node> switches) {
  std::vector<Node> nodes{server()};
  for (Node& s : switches) nodes.push_back(std::move(s));
  const auto root = static_cast<NodeId>(nodes.size() - 1);
  return Topology("test", std::move(nodes), root);
}

constexpr double kAllSizes[] = {0, 1, 2, 1000, 1e6, 1e9};

void check_all_sizes(const Topology& topology) {
  for (const double size : kAllSizes) {
    SCOPED_TRACE(words(topology) + ", " + std::to_string(size) + " floats");
    check(topology, size);
  }
}

TEST(PlannerDegenerate, OneServer) {
  for (const Topology& t : {tree_of({}), tree_of({switch_of("root", {{0, 1}})}),
                            tree_of({switch_of("rack", {{0, 1}}), switch_of("root", {{1, 1}})})}) {
    for (const double size : kAllSizes) {
      for (const Plan& plan : {gentree(t, size).plan, gentree(t, size, {false, {}}).plan, gentree_plus(t, size).plan}) {
        expect_proved(plan);
        EXPECT_EQ(plan.num_ranks, 1);
        EXPECT_EQ(PricedPlan(plan, t).cost(size).total(), 0);
      }
    }
  }
}

TEST(PlannerDegenerate, TwoServers) {
  check_all_sizes(tree_of({switch_of("root", {{0, 2}})}));
  check_all_sizes(tree_of({switch_of("rack", {{0, 1}}), switch_of("root", {{1, 2}})}));
  check_all_sizes(tree_of({switch_of("rack", {{0, 1}}), switch_of("root", {{0, 1}, {1, 1}})}));
}

TEST(PlannerDegenerate, Stars) {
  for (const std::int64_t n : {3, 4, 7, 8, 13, 24}) check_all_sizes(make_tree({n}));
}

//   root - zone - pod - rack - 6 servers      and      root - zone - {pod - rack - 4 servers, 3 times}
TEST(PlannerDegenerate, UnaryChains) {
  check_all_sizes(tree_of({switch_of("rack", {{0, 6}}), switch_of("pod", {{1, 1}}), switch_of("zone", {{2, 1}}),
                           switch_of("root", {{3, 1}})}));
  check_all_sizes(tree_of({switch_of("rack", {{0, 4}}), switch_of("pod", {{1, 1}}), switch_of("zone", {{2, 3}}),
                           switch_of("root", {{3, 1}})}));
}

// As many servers below each of the root's children, 6, in three shapes: one rack, 2 racks of 3, racks of 4 and 2.
TEST(PlannerDegenerate, SameCountsInDifferentShapes) {
  check_all_sizes(tree_of({switch_of("six", {{0, 6}}), switch_of("three", {{0, 3}}), switch_of("four", {{0, 4}}),
                           switch_of("two", {{0, 2}}), switch_of("even", {{2, 2}}),
                           switch_of("uneven", {{3, 1}, {4, 1}}), switch_of("root", {{1, 1}, {5, 1}, {6, 1}})}));
}

TEST(PlannerDegenerate, ServersBesideRacks) {
  check_all_sizes(tree_of({switch_of("rack", {{0, 5}}), switch_of("root", {{0, 2}, {1, 2}, {0, 1}})}));
  check_all_sizes(tree_of({switch_of("rack", {{0, 16}}), switch_of("root", {{0, 1}, {1, 1}})}));
}

// Links, servers or everything free.
TEST(PlannerDegenerate, ZeroParameters) {
  for (const int free : {0, 1, 2, 3, 4}) {
    PaperParams p;
    if (free == 0 || free == 4) p.server_link.beta = p.inner_link.beta = 0;
    if (free == 1 || free == 4) p.server_link.epsilon = p.inner_link.epsilon = 0;
    if (free == 2 || free == 4) p.server = {0, 0};
    if (free == 3 || free == 4) p.alpha = 0;
    check_all_sizes(make_tree({6}, p));
    check_all_sizes(make_tree({3, 5}, p));
  }
}

}  // namespace
}  // namespace gar
