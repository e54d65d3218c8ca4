// GenModel on small trees, by hand. Parameters are powers of two, so that values are exact where sizes allow it.
#include "gar/model.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/topology.hpp"
#include "support/terms.hpp"

namespace gar {
namespace {

const ModelOptions kByParticipants{ModelKind::kGenModel, IncastDegree::kParticipants};
const ModelOptions kAbc{ModelKind::kAbc, IncastDegree::kSenders};

const Node kPlainServer{"server", 1, {0.25, 0.03125, 2}, {0.125, 0.0625}, {}};

// Servers alpha 1, link 1/4 + 1/32 beyond 2 senders, gamma 1/8, delta 1/16; switch alpha 1: 3 per path.
Topology star(std::int64_t n) { return Topology("star", {kPlainServer, {"root", 1, {}, {}, {{0, n}}}}, 1); }

//              root, alpha 4
//             /             \        rack links: 1/2 + 1/16 beyond 1 sender
//      rack0, alpha 2    rack1       4 per path in a rack, 10 across
//      /  ...  \          ...
//   server0                          as above
Topology two_racks(std::int64_t servers_each) {
  return Topology("two racks",
                  {kPlainServer, {"rack", 2, {0.5, 0.0625, 1}, {}, {{0, servers_each}}}, {"root", 4, {}, {}, {{1, 2}}}},
                  2);
}

// CPS on 3: pieces of 16. Link: 2*16/4, w = 2 senders. gamma 2*16/8, delta 4*16/16.
TEST(PricedPlan, StarOfThree) {
  const PricedPlan priced(cps(3), star(3));
  EXPECT_TRUE(test::terms_close(priced.cost(48), {6, 16, 4, 4, 0}));
  EXPECT_EQ(priced.max_incast_excess(), 0);
  // All participants: w = 3, so 2 * 2*16 * (3 - 2) / 32 more.
  const PricedPlan participants(cps(3), star(3), kByParticipants);
  EXPECT_TRUE(test::terms_close(participants.cost(48), {6, 16, 4, 4, 2}));
  EXPECT_EQ(participants.max_incast_excess(), 1);
  EXPECT_TRUE(test::terms_close(PricedPlan(cps(3), star(3), kAbc).cost(48), {6, 16, 4, 0, 0}));
}

// Everything to server0 (2 senders on its downlink, 2*64 floats) and back (one sender on its uplink).
TEST(PricedPlan, NamesTheBottleneck) {
  const PricedPlan priced(reduce_broadcast(3), star(3));
  EXPECT_EQ(priced.cost(64), (Terms{6, 64, 16, 16, 0}));
  const std::vector<StageCost> stages = priced.critical_stages(64);
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(stages[0].link, "downlink of server0");
  EXPECT_EQ(stages[0].senders, 2);
  EXPECT_EQ(stages[0].volume, 2);
  EXPECT_EQ(stages[0].incast_threshold, 2);
  EXPECT_EQ(stages[0].fan_in, 3);
  EXPECT_FALSE(stages[0].is_gather);
  EXPECT_EQ(stages[1].link, "uplink of server0");
  EXPECT_EQ(stages[1].senders, 1);
  EXPECT_EQ(stages[1].fan_in, 1);
  EXPECT_TRUE(stages[1].is_gather);
  EXPECT_EQ(stages[0].label, "straight to the owners");
  EXPECT_EQ(stages[1].label, "straight to the owners");
}

// Flat CPS, S = 64, pieces of 16. A rack's uplink carries 4 pieces of 2 senders: 64/2 and 64*(2-1)/16.
// A server's downlink: 3 pieces of 3 senders, 48/4 + 48/32, less. gamma 3*16/8, delta 5*16/16.
TEST(PricedPlan, FlatCpsOnTwoRacksOfTwo) {
  const PricedPlan priced(cps(4), two_racks(2));
  EXPECT_EQ(priced.cost(64), (Terms{20, 64, 6, 5, 8}));
  EXPECT_EQ(priced.max_incast_excess(), 1);
  const StageCost stage = priced.critical_stages(64).front();
  EXPECT_EQ(stage.link, "uplink of rack0");
  EXPECT_EQ(stage.senders, 2);
  EXPECT_EQ(stage.volume, 1);
  EXPECT_EQ(stage.incast_threshold, 1);
  EXPECT_EQ(stage.label, "4-way exchange");
  EXPECT_EQ(cost_of_programs(cps(4), two_racks(2), 64), (Terms{20, 64, 6, 5, 8}));
}

// HCPS 2x2: in the rack pieces of 32 (32/4, path 4, gamma 32/8, delta 3*32/16), then across pieces of 16: the rack's
// uplink carries 2 of them from 2 senders (32/2 and 32/16, path 10, gamma 16/8, delta 3*16/16).
TEST(PricedPlan, HcpsOnTwoRacksOfTwo) {
  const PricedPlan priced(hcps(4, {2, 2}), two_racks(2));
  EXPECT_EQ(priced.cost(64), (Terms{2 * (4 + 10), 2 * (8 + 16), 4 + 2, 6 + 3, 2 * 2}));
  EXPECT_EQ(PricedPlan(hcps(4, {2, 2}), two_racks(2), kAbc).cost(64), (Terms{28, 48, 6, 0, 0}));
  std::vector<std::string> labels;
  for (const StageCost& s : priced.critical_stages(64)) labels.push_back(s.link);
  EXPECT_EQ(labels, (std::vector<std::string>{"uplink of rack0/server0", "uplink of rack0", "uplink of rack0",
                                              "uplink of rack0/server0"}));
}

// Ring: 3 steps each way; in each the rack's uplink carries one piece of 16 (16/2) of one sender over a path of 10.
TEST(PricedPlan, RingOnTwoRacksOfTwo) {
  const PricedPlan priced(ring(4), two_racks(2));
  EXPECT_EQ(priced.cost(64), (Terms{60, 48, 6, 9, 0}));
  EXPECT_EQ(priced.critical_stages(64).front().num_steps, 3);
  EXPECT_EQ(priced.critical_stages(64).front().label, "ring of 4");
}

// RHD on 6 = 4 + 2:   rack0 {0 1 2}   rack1 {3 4 5}, S = 64
//   fold 1 -> 0 inside rack0 (4 + 64/4 + 8 + 12) and 3 -> 2 across (10 + 64/2 + 8 + 12): the second is critical
//   0-2, 4-5 halves of 32 inside the racks:  4 + 32/4 + 4 + 6
//   0-4, 2-5 quarters of 16, two across:    10 + 32/2 + 32*(2-1)/16 + 2 + 3
TEST(PricedPlan, RhdOnTwoRacksOfThree) {
  const Terms expected{2 * (10 + 4 + 10), 2 * (32 + 8 + 16), 8 + 4 + 2, 12 + 6 + 3, 2 * 2};
  EXPECT_EQ(PricedPlan(rhd(6), two_racks(3)).cost(64), expected);
  EXPECT_EQ(cost_of_programs(rhd(6), two_racks(3), 64), expected);
}

//              root, alpha 4
//             /             \              rack link 1/2 + 1/8 beyond 1
//      rack, alpha 2      slow, alpha 8    slow: link 1 + 1/4 beyond 1, gamma 1/2, delta 1/4
//      /        \                          servers as above
//  server0   server1
Topology two_and_one() {
  return Topology("2+1",
                  {kPlainServer,
                   {"rack", 2, {0.5, 0.125, 1}, {}, {{0, 2}}},
                   {"slow", 8, {1, 0.25, 1}, {0.5, 0.25}, {}},
                   {"root", 4, {}, {}, {{1, 1}, {2, 1}}}},
                  3);
}

// ACPS 2+1, S = 48 = 6 units of 8. After the rack: rank 0 holds [0,3), rank 1 [3,6), rank 2 all.
// Target: rank 0 [0,2), rank 2 [2,3), rank 1 [3,5), rank 2 [5,6).
//   rack stage   4 + 24/4 + 24/8 + 3*24/16
//   root, there  path 1+2+4+8; slow sends 4 units to two ranks: 32*1 (its downlink: 16 + 16*(2-1)/4 from two senders);
//                slow reduces 16 floats: 16/2 + 3*16/4
//   root, back   slow receives 32 floats of two senders: 32 + 32*(2-1)/4
//   rack, back   4 + 24/4
TEST(PricedPlan, AsymmetricOnUnequalServers) {
  const Topology topology = two_and_one();
  const PricedPlan priced(acps({2, 1}), topology);
  EXPECT_TRUE(test::terms_close(priced.cost(48), {38, 76, 11, 16.5, 8}));
  const std::vector<StageCost> stages = priced.critical_stages(48);
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(stages[0].link, "uplink of rack/server0");
  EXPECT_EQ(stages[0].label, "group of 2, 2-way exchange");
  EXPECT_EQ(stages[1].link, "uplink of slow");
  EXPECT_EQ(stages[1].label, "between 2 groups, straight to the owners");
  EXPECT_EQ(stages[2].link, "downlink of slow");
  EXPECT_EQ(stages[2].senders, 2);
  EXPECT_EQ(stages[2].label, "between 2 groups, straight to the owners");
  EXPECT_EQ(stages[3].label, "group of 2, 2-way exchange");
  // Without the slow server's gamma and incast: what is left of the same links.
  EXPECT_TRUE(test::terms_close(PricedPlan(acps({2, 1}), topology, kAbc).cost(48), {38, 76, 11, 0, 0}));
}

// Servers that spend 2 on every message that they send or receive, and a slow one that spends 8.
Topology with_mu(const Topology& topology, double slow = 2) {
  std::vector<Node> nodes;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    nodes.push_back(topology.node(id));
    if (nodes.back().is_server()) nodes.back().server.mu = nodes.back().name == "slow" ? slow : 2;
  }
  return Topology(topology.name(), nodes, topology.root());
}

double mu_of(const Plan& plan, const Topology& topology, const ModelOptions& options = {}) {
  const double mu = PricedPlan(plan, topology, options).cost(64).mu;
  EXPECT_EQ(cost_of_programs(plan, topology, 64, options).mu, mu) << plan.algorithm;
  EXPECT_EQ(PricedPlan(plan, topology, options).cost(1e9).mu, mu) << plan.algorithm << ": not a matter of the size";
  return mu;
}

// Every step costs the server that sends most messages and the one that receives most, 2 for each of them.
TEST(Handling, IsPaidForEveryMessageAtBothEnds) {
  const Topology four = with_mu(star(4));
  EXPECT_EQ(mu_of(cps(4), four), 2 * (3 + 3) * 2);
  EXPECT_EQ(mu_of(hcps(4, {2, 2}), four), 2 * 2 * (1 + 1) * 2);
  EXPECT_EQ(mu_of(ring(4), four), 2 * 3 * (1 + 1) * 2);
  EXPECT_EQ(mu_of(rhd(4), four), 2 * 2 * (1 + 1) * 2);
  EXPECT_EQ(mu_of(rhd(6), with_mu(star(6))), 2 * 3 * (1 + 1) * 2);  // one step more, for the fold
  EXPECT_EQ(mu_of(reduce_broadcast(4), four), 2 * (1 + 3) * 2);     // three send one each, one receives three
  EXPECT_EQ(mu_of(as_reduce_scatter(cps(4)), four), (3 + 3) * 2);   // one half
  EXPECT_EQ(mu_of(as_all_gather(ring(4)), four), 3 * (1 + 1) * 2);
  EXPECT_EQ(mu_of(cps(4), with_mu(two_racks(2))), 2 * (3 + 3) * 2);  // links do not matter
  EXPECT_EQ(mu_of(cps(4), four, {ModelKind::kPaper}), 0);
  EXPECT_EQ(mu_of(cps(4), four, kAbc), 0);
  EXPECT_EQ(mu_of(cps(4), star(4)), 0);
}

// ACPS 2+1: inside the rack one message each way, at 2; then slow sends to two others and receives from both, at 8.
TEST(Handling, OfUnequalServersIsThatOfTheSlowest) {
  const Topology topology = with_mu(two_and_one(), 8);
  EXPECT_EQ(mu_of(acps({2, 1}), topology), 2 * (2 + 2) + 2 * (16 + 16));
  EXPECT_EQ(mu_of(cps(3), topology), 2 * (16 + 16));
}

// Several intervals for one rank are one message.
TEST(Handling, WhatGoesToOneRankIsOneMessage) {
  Plan plan = cps(2);
  plan.num_units = 4;
  plan.subplans[0].stages = {{StageKind::kPlace, 1, 1, {{0, 1, 0}, {1, 2, 1}, {2, 3, 0}, {3, 4, 1}}}};
  EXPECT_EQ(mu_of(plan, with_mu(star(2))), 2 * (1 + 1) * 2);
}

// Labels follow their stages in the mirror image too: a rearrangement after a digit stage comes first on the way back.
TEST(PricedPlan, LabelsOfMixedStages) {
  Plan plan = cps(2);
  plan.subplans[0].stages.push_back({StageKind::kPlace, 1, 1, {{0, 2, 0}}});
  std::vector<std::string> labels;
  for (const StageCost& s : PricedPlan(plan, star(2)).critical_stages(64)) labels.push_back(s.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"2-way exchange", "straight to the owners", "straight to the owners",
                                              "2-way exchange"}));
}

//            root                 far: alpha 32, links 1/4      slow: alpha 1, links 4
//      /            \             no calculation, no incast
//   far x 2       slow x 2        (each pair below its own switch of alpha 0)
//
// ACPS 2+2, S = 64: the pairs exchange 32 floats at the same time, far in 64 + 8 seconds, slow in 2 + 128. They do not
// wait for each other, so the slow pair's 130 count; in lockstep it is 64 + 128.
// Between the pairs (path 32 + 1): every rank sends and receives 16 floats, 16*4 on the slow links.
TEST(PricedPlan, SiblingsDoNotWaitForEachOther) {
  const Topology topology("far and slow",
                          {{"far", 32, {0.25, 0, 9}, {}, {}},
                           {"slow", 1, {4, 0, 9}, {}, {}},
                           {"a", 0, {0, 0, 9}, {}, {{0, 2}}},
                           {"b", 0, {0, 0, 9}, {}, {{1, 2}}},
                           {"root", 0, {}, {}, {{2, 1}, {3, 1}}}},
                          4);
  EXPECT_EQ(PricedPlan(acps({2, 2}), topology).cost(64), (Terms{2 * (2 + 33), 2 * (128 + 64), 0, 0, 0}));
  EXPECT_EQ(cost_of_programs(acps({2, 2}), topology, 64), (Terms{2 * (64 + 33), 2 * (128 + 64), 0, 0, 0}));
  // For a small vector the far pair is the critical one: 64 + 1 seconds against 2 + 16.
  EXPECT_EQ(PricedPlan(acps({2, 2}), topology).cost(8), (Terms{2 * (64 + 33), 2 * (1 + 8), 0, 0, 0}));
}

// Groups {0 1 2} and {3 4 5} on racks of two: both cross the links of the middle rack at once.
//   rack0 {0 1}  rack1 {2 3}  rack2 {4 5}
// Exchange among 3, pieces of 16 (S = 48): rack1's uplink carries 2 pieces of rank 2 and 2 of rank 3: 64/2 and, with
// two senders, 64/16; its downlink 2 pieces each from ranks 0 1 and 4 5: w = 4, 64/2 + 64*3/16.
TEST(PricedPlan, GroupsThatShareALinkAddUp) {
  const Topology topology(
      "three racks", {kPlainServer, {"rack", 2, {0.5, 0.0625, 1}, {}, {{0, 2}}}, {"root", 4, {}, {}, {{1, 3}}}}, 2);
  const std::vector<StageCost> stages = PricedPlan(acps({3, 3}), topology).critical_stages(48);
  ASSERT_FALSE(stages.empty());
  EXPECT_EQ(stages[0].link, "downlink of rack1");
  EXPECT_EQ(stages[0].senders, 4);
  EXPECT_TRUE(test::terms_close(stages[0].at(48), {10, 32, 2 * 16 / 8.0, 4 * 16 / 16.0, 12}));
}

TEST(PricedPlan, HalvesAddUp) {
  const Topology topology = two_racks(2);
  const Terms scatter = PricedPlan(as_reduce_scatter(cps(4)), topology).cost(64);
  const Terms gather = PricedPlan(as_all_gather(cps(4)), topology).cost(64);
  EXPECT_EQ(scatter, (Terms{10, 32, 6, 5, 4}));
  EXPECT_EQ(gather, (Terms{10, 32, 0, 0, 4}));
  EXPECT_EQ(scatter + gather, PricedPlan(cps(4), topology).cost(64));
  EXPECT_EQ(cost_of_programs(as_reduce_scatter(cps(4)), topology, 64), scatter);
  EXPECT_EQ(cost_of_programs(as_all_gather(cps(4)), topology, 64), gather);
}

TEST(PricedPlan, OneServerCostsNothing) {
  const PricedPlan priced(cps(1), star(1));
  EXPECT_EQ(priced.cost(1e9), Terms{});
  EXPECT_TRUE(priced.critical_stages(1e9).empty());
}

TEST(PricedPlan, NeedsAsManyRanksAsServers) {
  try {
    const PricedPlan priced(cps(3), star(4));
    FAIL() << "must throw";
  } catch (const PlanError& e) {
    EXPECT_STREQ(e.what(), "the plan has 3 ranks, the topology 'star' has 4 servers");
  }
  EXPECT_THROW((void)cost_of_programs(cps(3), star(4), 1), PlanError);
}

}  // namespace
}  // namespace gar
