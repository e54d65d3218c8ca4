// Lower bounds and optimalities, by hand.
#include <gtest/gtest.h>

#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/topology.hpp"

namespace gar {
namespace {

const Node kServer{"server", 1, {0.25, 0.03125, 2}, {0.125, 0.0625}, {}};

// One path of 3; 2 (N-1)/N S beta; (N-1)/N S gamma + (N+1)/N S delta.
TEST(LowerBound, Star) {
  const Topology star("star", {kServer, {"root", 1, {}, {}, {{0, 4}}}}, 1);
  const LowerBound bound = lower_bound(star, 64);
  EXPECT_EQ(bound.alpha, 3);
  EXPECT_DOUBLE_EQ(bound.bandwidth, 2 * 0.75 * 64 * 0.25);
  EXPECT_DOUBLE_EQ(bound.calculation, 0.75 * 64 * 0.125 + 1.25 * 64 * 0.0625);
  EXPECT_EQ(bound.binding(), "link time of every server's own link");
  EXPECT_DOUBLE_EQ(bound.seconds(), 24);
  EXPECT_DOUBLE_EQ(bound.sequential_seconds(), 3 + 24 + 11);
  // CPS without incast reaches the last two and needs two paths.
  const Terms cost = PricedPlan(cps(4), star).cost(64);
  EXPECT_DOUBLE_EQ(cost.beta, bound.bandwidth);
  EXPECT_DOUBLE_EQ(cost.gamma + cost.delta, bound.calculation);
  EXPECT_EQ(cost.alpha, 2 * bound.alpha);
}

//        root 4            rack links 1; server links 1/4; S = 64
//      /        \          all servers: 2*3 S / (4 * 4) = 24     racks: 2*1 S / (1 + 1) = 64
//   rack 2    rack 2       path 1 + 2 + 4 + 2 + 1
TEST(LowerBound, SlowUplinks) {
  const Topology racks("racks", {kServer, {"rack", 2, {1, 0, 9}, {}, {{0, 2}}}, {"root", 4, {}, {}, {{1, 2}}}}, 2);
  const LowerBound bound = lower_bound(racks, 64);
  EXPECT_EQ(bound.alpha, 10);
  EXPECT_DOUBLE_EQ(bound.bandwidth, 64);
  EXPECT_EQ(bound.cut, "of the links between 2 parts of the network");
  EXPECT_DOUBLE_EQ(bound.calculation, 11);
}

// Two fast servers and one slow (link 1, gamma 1/2, delta 1/4), S = 64.
//   all three: 2*2 S / (4 + 4 + 1) < the slow link alone, S * 1
//   c = gamma + delta (N+1)/(N-1): 1/8 + 2/16 = 1/4 and 1/2 + 2/4 = 1; (N-1) S / (4 + 4 + 1)
//   longest path: slow (8), root (1), fast (1); it is alone, so not slow twice
TEST(LowerBound, UnequalServers) {
  const Topology unequal("unequal",
                         {kServer, {"slow", 8, {1, 0, 9}, {0.5, 0.25}, {}}, {"root", 1, {}, {}, {{0, 2}, {1, 1}}}}, 2);
  const LowerBound bound = lower_bound(unequal, 64);
  EXPECT_EQ(bound.alpha, 10);
  EXPECT_DOUBLE_EQ(bound.bandwidth, 64);
  EXPECT_EQ(bound.cut, "of the link above a slow");
  EXPECT_DOUBLE_EQ(bound.calculation, 2 * 64 / 9.0);
}

//        root                 S = 64. All servers: 2*4 S / (4 + 16).  The rack and the hub: 2 S / (2 + 16).
//      /      \               The servers of the rack and "all others" behind its link: 2*4 S / (4*1 + 2).
//   rack      hub 1/16
//   link 1/2
//   4 x link 1
TEST(LowerBound, TheStrongestCutMayLieAroundARack) {
  const Topology uneven("uneven",
                        {{"server", 0, {1, 0, 9}, {}, {}},
                         {"hub", 0, {0.0625, 0, 9}, {}, {}},
                         {"rack", 0, {0.5, 0, 9}, {}, {{0, 4}}},
                         {"root", 0, {}, {}, {{2, 1}, {1, 1}}}},
                        3);
  const LowerBound bound = lower_bound(uneven, 64);
  EXPECT_DOUBLE_EQ(bound.bandwidth, 8 * 64 / 6.0);
  EXPECT_EQ(bound.cut, "of the links between 5 parts of the network around a rack");
  EXPECT_EQ(bound.calculation, 0);
  EXPECT_EQ(bound.alpha, 0);
}

TEST(LowerBound, NothingToDo) {
  const Topology one("one", {kServer}, 0);
  EXPECT_EQ(lower_bound(one, 1e9).sequential_seconds(), 0);
  // Free links and free calculation.
  const Topology ideal("ideal", {{"server", 0, {}, {}, {}}, {"root", 0, {}, {}, {{0, 4}}}}, 1);
  EXPECT_EQ(lower_bound(ideal, 1e9).sequential_seconds(), 0);
}

// A bound per term, added up, holds for plans that finish one stage before the next. Sub-plans that run side by side
// can pay latency, bandwidth and calculation at the same time:
//
//              hub (all alpha 0, links 0)          S = 64
//     /          |            \                    far pair:   alpha 12 at one server, nothing else
//   far pair   slow pair    60 workers             slow pair:  link 3/16 at one server, 12 seconds for S
//                                                  workers:    gamma 1/4; the pairs' gamma is 1/16
//
// The pairs fold into their first server (1 -> 0 and 3 -> 2), the workers do CPS; the workers then own the results. The
// three groups take 12 + 4, 12 + 4 and 59/60 * 16 seconds, at the same time.
TEST(LowerBound, SubPlansSideBySideBeatTheSum) {
  const Topology topology("three groups",
                          {{"near", 0, {0, 0, 99}, {0.0625, 0}, {}},
                           {"far", 12, {0, 0, 99}, {0.0625, 0}, {}},
                           {"slow", 0, {0.1875, 0, 99}, {0.0625, 0}, {}},
                           {"worker", 0, {0, 0, 99}, {0.25, 0}, {}},
                           {"a", 0, {0, 0, 99}, {}, {{0, 1}, {1, 1}}},
                           {"b", 0, {0, 0, 99}, {}, {{0, 1}, {2, 1}}},
                           {"c", 0, {0, 0, 99}, {}, {{3, 60}}},
                           {"hub", 0, {}, {}, {{4, 1}, {5, 1}, {6, 1}}}},
                          7);
  Plan plan;
  plan.algorithm = "by hand";
  plan.num_ranks = 64;
  plan.num_units = 60;
  plan.subplans.push_back({{{kLeaf, 2}}, {{StageKind::kPlace, 1, 1, {{0, 60, 0}}}}, "fold"});
  plan.subplans.push_back({{{kLeaf, 60}}, {{StageKind::kDirect, 1, 60, {}}}, "workers"});
  Stage last{StageKind::kPlace, 1, 1, {}};
  for (std::int32_t w = 0; w < 60; ++w) last.target.push_back({w, w + 1, 4 + w});
  plan.subplans.push_back({{{0, 2}, {1, 1}}, {last}, "to the workers"});
  plan.root = 2;

  const LowerBound bound = lower_bound(topology, 64);
  EXPECT_EQ(bound.alpha, 12);
  EXPECT_EQ(bound.bandwidth, 12);
  EXPECT_DOUBLE_EQ(bound.calculation, 63 * 64 / (4 * 16.0 + 60 * 4));
  const double side_by_side = PricedPlan(plan, topology).cost(64).total();
  EXPECT_LT(side_by_side, bound.sequential_seconds());
  EXPECT_GE(side_by_side, bound.seconds());
  EXPECT_GE(cost_of_programs(plan, topology, 64).total(), bound.sequential_seconds());
}

// CPS on 4: 2 * 3/4 of the vector, 5/4 memory accesses, two steps; 3 senders (4 participants) beyond a threshold of 2.
TEST(Optimality, OfCpsAndRing) {
  const Topology star("star", {kServer, {"root", 1, {}, {}, {{0, 4}}}}, 1);
  const Optimality o = optimality(cps(4), star);
  EXPECT_DOUBLE_EQ(o.max_traffic, 1.5);
  EXPECT_DOUBLE_EQ(o.max_memory_access, 1.25);
  EXPECT_EQ(o.num_steps, 2);
  EXPECT_EQ(o.max_incast_excess, 2);
  EXPECT_TRUE(o.bandwidth && o.latency && o.memory_access);
  EXPECT_FALSE(o.incast);
  EXPECT_EQ(optimality(cps(4), star, IncastDegree::kSenders).max_incast_excess, 1);

  // Ring: three additions of two blocks of a quarter, 3 * 3/4.
  const Optimality r = optimality(ring(4), star);
  EXPECT_DOUBLE_EQ(r.max_memory_access, 2.25);
  EXPECT_EQ(r.num_steps, 6);
  EXPECT_TRUE(r.bandwidth && r.incast);
  EXPECT_FALSE(r.latency || r.memory_access);
}

// Racks a (near, far, far) and b (fast, slow). Everything is free but two things: far servers have a latency of 1, the
// slow one a link of 1. The plan pays both at the same time, in different racks, once on the way up and once on the way
// down.
TEST(LowerBound, LatencyAndBandwidthInDifferentBranches) {
  const std::vector<Node> nodes{{"near", 0, {0, 0, 9}, {0, 0}, {}},        {"far", 1, {0, 0, 9}, {0, 0}, {}},
                                {"fast", 0, {0, 0, 9}, {0, 0}, {}},        {"slow", 0, {1, 0, 9}, {0, 0}, {}},
                                {"a", 0, {0, 0, 9}, {}, {{0, 1}, {1, 2}}}, {"b", 0, {0, 0, 9}, {}, {{2, 1}, {3, 1}}},
                                {"root", 0, {}, {}, {{4, 1}, {5, 1}}}};
  const Topology topology("branches", nodes, 6);
  const Stage to_first{StageKind::kPlace, 1, 1, {{0, 1, 0}}};
  Plan plan;
  plan.num_ranks = 5;
  plan.subplans = {
      {{{kLeaf, 3}}, {to_first}, "a"}, {{{kLeaf, 2}}, {to_first}, "b"}, {{{0, 1}, {1, 1}}, {to_first}, "root"}};
  plan.root = 2;
  const double cost = PricedPlan(plan, topology).cost(1).total();
  EXPECT_EQ(cost, 2);
  EXPECT_GE(cost, lower_bound(topology, 1).seconds());
  EXPECT_LT(cost, lower_bound(topology, 1).sequential_seconds());
}

}  // namespace
}  // namespace gar
