// GenTree on the paper's networks, with costs worked out by hand, and its switch prices against the general evaluator.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "gar/topology.hpp"
#include "gar/verify.hpp"
#include "planner/subtree.hpp"
#include "support/random_topology.hpp"
#include "support/terms.hpp"

namespace gar {
namespace {

using Factors = std::vector<std::int64_t>;

struct Expected {
  std::string name;
  std::int64_t count;
  std::string algorithm;
  Factors factors;
};

void expect_choices(const char* network, double size, const std::vector<Expected>& expected) {
  SCOPED_TRACE(std::string(network) + ", " + std::to_string(size) + " floats");
  const TreePlan tree = gentree(builtin_topology(network), size);
  EXPECT_TRUE(verify(tree.plan).ok);
  ASSERT_EQ(tree.switches.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(tree.switches[i].name, expected[i].name);
    EXPECT_EQ(tree.switches[i].count, expected[i].count) << expected[i].name;
    EXPECT_EQ(tree.switches[i].algorithm, expected[i].algorithm) << expected[i].name;
    EXPECT_EQ(tree.switches[i].factors, expected[i].factors) << expected[i].name;
  }
}

// CPS saves a stage (6 alpha), HCPS saves incast: 14 senders too many at 24 servers, 22 at 32.
TEST(GenTree, OneSwitchFlipsFromCpsToHcps) {
  expect_choices("ss24", 1e7, {{"root", 1, "cps", {24}}});
  expect_choices("ss24", 3.2e7, {{"root", 1, "hcps", {8, 3}}});
  expect_choices("ss24", 1e8, {{"root", 1, "hcps", {8, 3}}});
  expect_choices("ss32", 1e7, {{"root", 1, "hcps", {8, 4}}});
  expect_choices("ss32", 1e8, {{"root", 1, "hcps", {8, 4}}});
}

TEST(GenTree, SymmetricTreesChooseTheSameInEveryRack) {
  expect_choices("sym384", 1e7, {{"rack", 16, "cps", {24}}, {"root", 1, "cps", {16}}});
  expect_choices("sym384", 3.2e7, {{"rack", 16, "hcps", {8, 3}}, {"root", 1, "hcps", {4, 4}}});
  expect_choices("sym384", 1e8, {{"rack", 16, "hcps", {8, 3}}, {"root", 1, "hcps", {4, 4}}});
  expect_choices("sym512", 1e8, {{"rack", 16, "hcps", {8, 4}}, {"root", 1, "hcps", {4, 4}}});
}

TEST(GenTree, DifferentRacksMeetByAsymmetricCps) {
  expect_choices("asy384", 1e7, {{"rack0", 8, "hcps", {8, 4}}, {"rack8", 8, "cps", {16}}, {"root", 1, "acps", {16}}});
  expect_choices("asy384", 1e8,
                 {{"rack0", 8, "hcps", {8, 4}}, {"rack8", 8, "hcps", {8, 2}}, {"root", 1, "acps", {16}}});
}

// On one switch the candidates are the closed forms.
TEST(GenTree, OneSwitchCandidatesAreTheClosedForms) {
  const Topology ss24 = builtin_topology("ss24");
  const OneSwitch p = one_switch_params(ss24);
  const TreePlan tree = gentree(ss24, 1e8);
  ASSERT_EQ(tree.switches.size(), 1U);
  const SwitchChoice& root = tree.switches.front();
  bool has_ring = false;
  for (const SwitchCandidate& c : root.candidates) {
    has_ring = has_ring || c.algorithm == "ring";
    const Terms expected = c.algorithm == "cps"    ? closed_cps(24, 1e8, p)
                           : c.algorithm == "ring" ? closed_ring(24, 1e8, p)
                           : c.algorithm == "rhd"  ? closed_rhd(24, 1e8, p)
                                                   : closed_hcps(c.factors, 1e8, p);
    EXPECT_TRUE(test::sums_close(c.terms, expected)) << c.algorithm;
  }
  EXPECT_TRUE(has_ring);
  EXPECT_TRUE(std::is_sorted(root.candidates.begin(), root.candidates.end(),
                             [](const auto& a, const auto& b) { return a.terms.total() < b.terms.total(); }));
  EXPECT_EQ(root.candidates.front().terms, root.terms);
}

// sym384, 1e8 floats, the root's 4x4 over 16 racks whose 24 servers hold 1/24 each. Both stages see 24 * 3 = 72 senders
// on a rack's downlink, 63 more than it takes; pieces are 1/96 and 1/384:
//   2 * 2 * 5 alpha + S [2 (72/96 + 72/384) (beta_r + 63 eps_r) + (3 gamma + 5 delta) (1/96 + 1/384)]
TEST(GenTree, RootOfSym384ByHand) {
  const PaperParams p;
  const double size = 1e8;
  const TreePlan tree = gentree(builtin_topology("sym384"), size);
  const Terms& root = tree.switches.back().terms;
  EXPECT_NEAR(root.alpha, 20 * p.alpha, 1e-12);
  EXPECT_NEAR(root.beta, size * 2 * 0.9375 * p.inner_link.beta, 1e-9);
  EXPECT_NEAR(root.epsilon, size * 2 * 0.9375 * 63 * p.inner_link.epsilon, 1e-9);
  EXPECT_NEAR(root.gamma, size * 3 * 5.0 / 384 * p.server.gamma, 1e-9);
  EXPECT_NEAR(root.delta, size * 5 * 5.0 / 384 * p.server.delta, 1e-9);
  const double racks = closed_hcps({8, 3}, size, one_switch_params(builtin_topology("ss24"))).total();
  EXPECT_NEAR(PricedPlan(tree.plan, builtin_topology("sym384")).cost(size).total(), racks + root.total(), 1e-9);
}

// cdc384: the root's two links carry 2 / 6.4e-9 floats a second, the 8 racks of a data centre 8 / 6.4e-10: a ratio of
// 1/40, so 256 / 40 -> 7 and 128 / 40 -> 4 servers collect the results before they cross.
TEST(GenTree, Cdc384IsRearranged) {
  const Topology cdc384 = builtin_topology("cdc384");
  for (const double size : {1e7, 3.2e7, 1e8}) {
    const TreePlan with = gentree(cdc384, size);
    const TreePlan without = gentree(cdc384, size, {false, {}});
    const SwitchChoice& root = with.switches.back();
    EXPECT_EQ(root.algorithm, "acps");
    EXPECT_TRUE(root.is_rearranged);
    ASSERT_EQ(root.rearrangements.size(), 2U);
    EXPECT_EQ(root.rearrangements[0].subset, 7);
    EXPECT_EQ(root.rearrangements[1].subset, 4);
    for (const Rearrangement& r : root.rearrangements) {
      EXPECT_TRUE(r.is_applied) << r.reason;
      EXPECT_LT(r.seconds_with, r.seconds_without);
      EXPECT_FALSE(r.reason.empty());
    }
    EXPECT_FALSE(without.switches.back().is_rearranged);
    EXPECT_TRUE(without.switches.back().rearrangements.empty());
    EXPECT_LT(PricedPlan(with.plan, cdc384).cost(size).total(), PricedPlan(without.plan, cdc384).cost(size).total());
  }
}

// Racks of 24 servers whose uplinks carry ten times as much as a server: the root's links are wider than the racks'.
TEST(GenTree, NothingIsRearrangedWhereTheLinksAboveAreWide) {
  const TreePlan tree = gentree(builtin_topology("sym384"), 1e8);
  ASSERT_EQ(tree.switches.back().rearrangements.size(), 1U);
  EXPECT_FALSE(tree.switches.back().rearrangements.front().is_applied);
  EXPECT_EQ(tree.plan.subplans, gentree(builtin_topology("sym384"), 1e8, {false, {}}).plan.subplans);
}

// What a switch's candidates cost, counted by footprints, is what the evaluator finds for its sub-plan on its subtree.
TEST(GenTree, SwitchTermsAreThoseOfTheEvaluator) {
  int num_compared = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    test::RandomTopologyOptions options;
    options.min_servers = 2;
    options.max_servers = 96;
    options.uneven_probability = 0;
    options.chain_probability = 0;
    options.decades = 2;
    const Topology topology = test::random_topology(random, options);
    const ModelOptions model{seed % 3 == 0 ? ModelKind::kAbc : ModelKind::kGenModel,
                             seed % 2 == 0 ? IncastDegree::kSenders : IncastDegree::kParticipants};
    const TreePlan tree = gentree(topology, 1e6, {false, model});
    if (tree.plan.subplans.size() != tree.switches.size()) continue;  // a fold is a sub-plan of its own
    for (std::size_t i = 0; i < tree.switches.size(); ++i) {
      const SwitchChoice& choice = tree.switches[i];
      const Topology below = subtree(topology, choice.node);
      Plan plan = tree.plan;
      plan.subplans.resize(i + 1);
      plan.root = static_cast<SubPlanId>(i);
      plan.num_ranks = below.num_servers();
      const Stage first = plan.subplans[i].stages.front();
      for (const SwitchCandidate& c : choice.candidates) {
        std::int64_t stride = first.stride;
        plan.subplans[i].stages.clear();
        for (const std::int64_t f : c.factors) {
          plan.subplans[i].stages.push_back(
              {c.algorithm == "ring" ? StageKind::kRing : StageKind::kDirect, stride, f, {}});
          stride *= f;
        }
        if (stride != first.stride * topology.num_children(choice.node)) continue;  // RHD with a fold
        EXPECT_TRUE(test::sums_close(c.terms, PricedPlan(plan, below, model).own_cost(1e6))) << c.algorithm;
        ++num_compared;
      }
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(num_compared, 1000);
}

TEST(GenTree, CountsIdenticalSwitchesOnce) {
  const TreePlan tree = gentree(topology_from_spec("tree:4x5x6"), 1e6);
  ASSERT_EQ(tree.switches.size(), 3U);
  EXPECT_EQ(tree.switches[0].count, 20);
  EXPECT_EQ(tree.switches[1].count, 4);
  EXPECT_EQ(tree.switches[2].count, 1);
  EXPECT_EQ(tree.plan.num_ranks, 120);
}

TEST(GenTree, TrivialInputs) {
  const TreePlan one = gentree(topology_from_spec("star:1"), 1e6);
  EXPECT_EQ(one.plan.num_ranks, 1);
  EXPECT_TRUE(verify(one.plan).ok);
  for (const double size : {0.0, 1.0}) {
    const TreePlan tree = gentree(builtin_topology("asy384"), size);
    EXPECT_TRUE(verify(tree.plan).ok);
    EXPECT_EQ(tree.switches.back().algorithm, "acps");
  }
}

}  // namespace
}  // namespace gar
