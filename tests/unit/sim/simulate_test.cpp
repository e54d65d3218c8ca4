// Small simulations by hand, what is refused, and what a caller can watch and stop.
#include "gar/simulate.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/model.hpp"
#include "gar/topology.hpp"
#include "support/explicit_plan.hpp"
#include "support/small_simulations.hpp"
#include "support/terms.hpp"

namespace gar {
namespace {

using test::find_link;
using test::kEngines;
using test::plan_of;
using test::star;
using test::two_racks;
using test::with;

class Simulate : public test::BothEngines {};
INSTANTIATE_TEST_SUITE_P(Engines, Simulate, ::testing::ValuesIn(kEngines), test::engine_name);

// --- by hand

// Three nodes of latency 1 on the way, then 5 floats at 2 s each.
TEST_P(Simulate, LatencyThenTransfer) {
  Node leaf;
  leaf.alpha = 1;
  leaf.uplink.beta = 2;
  Node root;
  root.alpha = 1;
  root.children = {{0, 2}};
  const Topology pair("pair", {leaf, root}, 1);
  const Simulation s = simulate(plan_of(2, 5, {{0, 0, 1, 0, 5, false}}), pair, 5, with(GetParam()));
  EXPECT_DOUBLE_EQ(s.seconds, 13);
  EXPECT_DOUBLE_EQ(s.terms.alpha, 3);
  EXPECT_DOUBLE_EQ(s.terms.beta, 10);
  EXPECT_EQ(s.flows, 1);
  EXPECT_EQ(s.flows_done, 1);
  EXPECT_TRUE(s.is_complete);
  const LinkUse* up = find_link(s, 0, 1, false);
  ASSERT_NE(up, nullptr);
  EXPECT_DOUBLE_EQ(up->busy_seconds, 10);
  EXPECT_DOUBLE_EQ(up->floats, 5);
  EXPECT_EQ(up->max_senders, 1);
  EXPECT_DOUBLE_EQ(up->utilisation, 10.0 / 13);
  EXPECT_EQ(find_link(s, 0, 1, true), nullptr) << "carried nothing";
  ASSERT_EQ(s.path.size(), 1u);
  EXPECT_TRUE(s.path[0].is_message);
  EXPECT_EQ(s.path[0].from, 0);
  EXPECT_EQ(s.path[0].rank, 1);
}

// Rank 0 works 2 * 3 s on its two messages, then both of 5 floats share its uplink for 20 s; each receiver works 3 s on
// its one.
TEST_P(Simulate, MessagesAreHandledAtBothEnds) {
  const Plan plan = plan_of(3, 10, {{0, 0, 1, 0, 5, false}, {0, 0, 2, 5, 10, false}});
  const Topology network = star(3, 1, {2, 0, 9}, {0, 0, 3});
  const Simulation s = simulate(plan, network, 10, with(GetParam()));
  EXPECT_DOUBLE_EQ(s.seconds, 6 + 1 + 20 + 3);
  EXPECT_DOUBLE_EQ(s.terms.mu, 9);
  EXPECT_DOUBLE_EQ(s.terms.total(), s.seconds);
  EXPECT_DOUBLE_EQ(s.handling_seconds(), 9);
  ASSERT_EQ(s.path.size(), 1u);
  EXPECT_DOUBLE_EQ(s.path[0].terms.mu, 9);
  EXPECT_DOUBLE_EQ(s.path[0].terms.total(), s.path[0].end - s.path[0].begin);
  SimulationOptions paper = with(GetParam());
  paper.model = ModelKind::kPaper;
  EXPECT_DOUBLE_EQ(simulate(plan, network, 10, paper).seconds, 1 + 20);
  // A slow server handles messages slowly, too.
  SimulationOptions slow = with(GetParam());
  slow.slow_servers = {{2, 10}};
  EXPECT_DOUBLE_EQ(simulate(plan, network, 10, slow).seconds, 6 + 1 + 20 + 30);
}

// Rank 0 sends in step 0 and receives in step 1; rank 1 answers when it has handled what it got. What rank 0 has sent
// must have left before it looks at anything: 2 messages of 4 s each, though rank 2's is there after 4 + 1.
TEST_P(Simulate, WhatArrivesEarlyWaitsForTheProcessor) {
  const Plan plan = plan_of(3, 3, {{0, 0, 1, 0, 1, false}, {0, 0, 2, 1, 2, false}, {0, 2, 0, 2, 3, false}});
  const Simulation s = simulate(plan, star(3, 1, {0, 0, 9}, {0, 0, 4}), 3, with(GetParam()));
  EXPECT_DOUBLE_EQ(s.seconds, 8 + 1 + 4);  // at ranks 1 and 2; rank 0 has finished after 8 + 4
  EXPECT_DOUBLE_EQ(s.terms.mu, 12);
  EXPECT_DOUBLE_EQ(s.terms.alpha, 1);
}

// 4 floats from rank 0 and 8 from rank 1 to rank 2: at 1/2 each until 8, then the last 4 of rank 1 alone.
TEST_P(Simulate, TwoFlowsShareALink) {
  const Plan plan = plan_of(3, 12, {{0, 0, 2, 0, 4, false}, {0, 1, 2, 4, 12, false}});
  const Simulation s = simulate(plan, star(3, 0, {1, 0, 9}), 12, with(GetParam()));
  EXPECT_DOUBLE_EQ(s.seconds, 12);
  ASSERT_NE(find_link(s, 2, 1, true), nullptr);
  EXPECT_DOUBLE_EQ(find_link(s, 2, 1, true)->busy_seconds, 12);
  EXPECT_EQ(find_link(s, 2, 1, true)->max_senders, 2);
  EXPECT_DOUBLE_EQ(find_link(s, 0, 1, false)->busy_seconds, 8);
  EXPECT_DOUBLE_EQ(find_link(s, 1, 1, false)->busy_seconds, 12);
  EXPECT_DOUBLE_EQ(find_link(s, 1, 1, false)->utilisation, 8.0 / 12);
}

// The same when every second sender costs another second per float: at 1/4 each until 16, then 4 floats at 1.
TEST_P(Simulate, IncastFallsAsSendersFinish) {
  const Plan plan = plan_of(3, 12, {{0, 0, 2, 0, 4, false}, {0, 1, 2, 4, 12, false}});
  const Simulation s = simulate(plan, star(3, 0, {1, 1, 1}), 12, with(GetParam()));
  EXPECT_DOUBLE_EQ(s.seconds, 20);
  EXPECT_DOUBLE_EQ(s.terms.total(), 20);
  ASSERT_NE(find_link(s, 2, 1, true), nullptr);
  EXPECT_DOUBLE_EQ(find_link(s, 2, 1, true)->busy_seconds, 20);
  EXPECT_DOUBLE_EQ(find_link(s, 2, 1, true)->incast_seconds, 8);
  SimulationOptions abc = with(GetParam());
  abc.model = ModelKind::kAbc;
  EXPECT_DOUBLE_EQ(simulate(plan, star(3, 0, {1, 1, 1}), 12, abc).seconds, 12);
  // One more counts: 3 senders until 24, then 2 for the last 4 floats.
  SimulationOptions participants = with(GetParam());
  participants.degree = IncastDegree::kParticipants;
  EXPECT_DOUBLE_EQ(simulate(plan, star(3, 0, {1, 1, 1}), 12, participants).seconds, 32);
}

// Rank 0 sends 6 floats into the other rack, rank 1 6 floats to its neighbour rank 0. Their links do not meet: both
// take 6 s although the rack's uplink could carry more. With a slow uplink of the rack, 3 s per float, the first takes
// 18 s.
TEST_P(Simulate, RatesAreMaxMinFair) {
  const Plan plan = plan_of(4, 12, {{0, 0, 2, 0, 6, false}, {0, 1, 0, 6, 12, false}});
  EXPECT_DOUBLE_EQ(simulate(plan, two_racks({1, 0, 9}, {0.5, 0, 9}), 12, with(GetParam())).seconds, 6);
  EXPECT_DOUBLE_EQ(simulate(plan, two_racks({1, 0, 9}, {3, 0, 9}), 12, with(GetParam())).seconds, 18);
  // Rank 0 sends 2 floats to rank 2 and 12 to rank 1, rank 3 sends 2 to rank 1. The racks' uplinks give the short ones
  // 1/3, so that 2/3 are left for the long one. At 6 it has 8 floats left and the link for itself.
  const Plan three = plan_of(4, 16, {{0, 0, 2, 0, 2, false}, {0, 0, 1, 2, 14, false}, {0, 3, 1, 14, 16, false}});
  EXPECT_DOUBLE_EQ(simulate(three, two_racks({1, 0, 9}, {3, 0, 9}), 16, with(GetParam())).seconds, 14);
}

// One server at the root, one below a rack (4 s per float) below a pod (1 s): a float each way in both halves.
TEST_P(Simulate, LinksOfAChainAreNotAlike) {
  Node rack;
  rack.name = "rack";
  rack.uplink.beta = 4;
  rack.children = {{0, 1}};
  Node pod;
  pod.name = "pod";
  pod.uplink.beta = 1;
  pod.children = {{1, 1}};
  Node root;
  root.children = {{0, 1}, {2, 1}};
  const Topology chain("chain", {Node{}, rack, pod, root}, 3);
  EXPECT_DOUBLE_EQ(simulate(cps(2), chain, 2, with(GetParam())).seconds, 8);
}

// Two racks whose servers, or which themselves, differ in a single parameter: both engines see it.
TEST(Classes, SeeEveryParameter) {
  const double incast = 0.3;
  Node server{"server", 0.1, {1, incast, 2}, {0.5, 0.25}, {}};
  const auto seconds = [&](const Node& other, const Node& other_rack, SimulationEngine engine) {
    Node rack{"rack", 0.2, {2, incast, 1}, {}, {{0, 3}}};
    Node changed = other_rack;
    changed.children = {{1, 3}};
    Node root;
    root.children = {{2, 1}, {3, 1}};
    const Topology topology("two", {server, other, rack, changed, root}, 4);
    double sum = 0;
    for (const Plan& plan : {cps(6), ring(6), hcps(6, {3, 2})})
      sum += simulate(plan, topology, 60, with(engine)).seconds;
    return sum;
  };
  const Node rack{"rack", 0.2, {2, incast, 1}, {}, {}};
  const double equal = seconds(server, rack, SimulationEngine::kFlows);
  EXPECT_DOUBLE_EQ(seconds(server, rack, SimulationEngine::kClasses), equal);
  for (const bool is_rack : {false, true}) {
    for (const int parameter : {0, 1, 2, 3, 4, 5}) {
      if (is_rack && parameter > 3) continue;  // a switch does not calculate
      Node changed = is_rack ? rack : server;
      double* const values[] = {&changed.alpha,          &changed.uplink.beta,
                                &changed.uplink.epsilon, &changed.uplink.incast_threshold,
                                &changed.server.gamma,   &changed.server.delta};
      *values[parameter] += parameter == 3 ? -1 : 1;  // slower in any case
      const Node& s = is_rack ? server : changed;
      const Node& r = is_rack ? changed : rack;
      const double flows = seconds(s, r, SimulationEngine::kFlows);
      EXPECT_NE(flows, equal) << "parameter " << parameter << " of " << changed.name;
      EXPECT_NEAR(seconds(s, r, SimulationEngine::kClasses), flows, 1e-9 * flows)
          << "parameter " << parameter << " of " << changed.name;
    }
  }
}

// Rank 0 sends 10 floats to each of ranks 1 to 5, 1/5 float/s each. From 3 on, ranks 6 to 8 send a float to rank 1,
// whose downlink carries 0.6, and one to rank 2: rank 0 has 0.15 left to rank 1 and (1 - 0.15) / 4 to each of the
// others, 0.25 to rank 2 would be more than its share. At 29/3 the last of the small messages is there, at 49 7/12 the
// large ones but that to rank 1, 5/12 of which follow at 0.6.
TEST_P(Simulate, RatesStayFairWhenTheSumStays) {
  std::vector<test::Transfer> transfers;
  std::int64_t unit = 0;
  const auto send = [&](std::int64_t step, std::int32_t from, std::int32_t to, std::int64_t floats) {
    transfers.push_back({step, from, to, unit, unit + floats, false});
    unit += floats;
  };
  for (std::int32_t to = 1; to <= 5; ++to) send(0, 0, to, 10);
  for (std::int32_t to = 6; to <= 8; ++to) send(0, 9, to, 1);
  for (std::int32_t from = 6; from <= 8; ++from) {
    for (std::int32_t to = 1; to <= 2; ++to) send(1, from, to, 1);
  }
  SimulationOptions options = with(GetParam());
  options.links = {{{1, 1}, false, true, 0.6, 0}};
  const Plan plan = plan_of(10, unit, transfers);
  const Simulation s = simulate(plan, star(10, 0, {1, 0, 9}), static_cast<double>(unit), options);
  EXPECT_NEAR(s.seconds, 49 + 7.0 / 12 + 5.0 / 12 / 0.6, 1e-9);
}

// Every transfer takes 1 s, every reduction 1 s, at rank 0 4 s. Messages that come before their step are kept.
// Rank 1 may send its last two messages at 7, rank 0 at 9: one after the other. By symmetry it does not matter which
// way round the ring runs.
TEST_P(Simulate, RingWithOneSlowServer) {
  const Topology three = star(3, 0, {1, 0, 9}, {1, 0});
  SimulationOptions options = with(GetParam());
  EXPECT_DOUBLE_EQ(simulate(ring(3), three, 3, options).seconds, 6);
  for (const std::int64_t slow : {0, 1, 2}) {
    options.slow_servers = {{slow, 4}};
    const Simulation s = simulate(ring(3), three, 3, options);
    EXPECT_DOUBLE_EQ(s.seconds, 11) << "rank " << slow;
    EXPECT_DOUBLE_EQ(s.terms.total(), 11);
  }
  // Behind a barrier: two reductions of 4 s and four transfers.
  options.barrier = true;
  EXPECT_DOUBLE_EQ(simulate(ring(3), three, 3, options).seconds, 12);
  options.slow_servers = {{1, 1}};
  EXPECT_DOUBLE_EQ(simulate(ring(3), three, 3, options).seconds, 6);
}

// Two chunks of 2 floats that rank 1 reduces at 1 s per float. The second one waits behind the first and flows from 2
// to 4, while the first is reduced.
TEST_P(Simulate, TransferAndReductionOverlap) {
  Plan plan = plan_of(2, 4, {{0, 0, 1, 0, 4, true}});
  plan.num_chunks = 2;
  const Topology pair = star(2, 0, {1, 0, 9}, {1, 0});
  EXPECT_DOUBLE_EQ(simulate(plan, pair, 4, with(GetParam())).seconds, 6);
  EXPECT_DOUBLE_EQ(simulate(plan, pair, 4, with(GetParam(), true)).seconds, 8) << "chunk by chunk";
}

class StepTimes : public SimulationObserver {
 public:
  void on_rank(std::int64_t, std::int64_t) override {}
  void on_link(const LinkId&, std::int64_t) override {}
  void on_step(const StepEvent& event) override { done[{event.rank, event.chunk, event.step}] = event.done; }
  void on_flow(const FlowEvent& event) override {
    flows[{event.from, event.chunk, event.step}] = event.flowing;
    arrivals[{event.from, event.chunk, event.step}] = event.end;
  }
  void on_load(const LoadEvent&) override {}
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, double> done, flows, arrivals;  // rank, chunk, step
};

// Rank 2 reduces what rank 0 sends in step 0 and rank 1 in step 1, two chunks of 2 floats at 3 s each. The first
// chunk's messages share its downlink until 4, the second one's from 4 to 8. It calculates
//   step 0 of chunk 0: alone from 4 to 8, with another until 12;   step 1 of chunk 0: from 12, with another, until 24;
//   step 0 of chunk 1: from 8, with another, until 20;             step 1 of chunk 1: from 20, alone from 24 to 28.
TEST_P(Simulate, ReductionsOfSeveralChunksShareTheServer) {
  Plan plan = plan_of(3, 4, {{0, 0, 2, 0, 4, true}, {1, 1, 2, 0, 4, true}});
  plan.num_chunks = 2;
  StepTimes times;
  SimulationOptions options = with(GetParam());
  options.observer = &times;
  const Simulation s = simulate(plan, star(3, 0, {1, 0, 9}, {3, 0}), 4, options);
  EXPECT_DOUBLE_EQ(s.seconds, 28);
  EXPECT_DOUBLE_EQ(s.terms.total(), 28);
  EXPECT_EQ(s.flows, 4);
  EXPECT_DOUBLE_EQ((times.done[{2, 0, 0}]), 12);
  EXPECT_DOUBLE_EQ((times.done[{2, 1, 0}]), 20);
  EXPECT_DOUBLE_EQ((times.done[{2, 0, 1}]), 24);
  EXPECT_DOUBLE_EQ((times.done[{2, 1, 1}]), 28);
  EXPECT_DOUBLE_EQ((times.flows[{0, 0, 0}]), 0);
  EXPECT_DOUBLE_EQ((times.flows[{0, 1, 0}]), 4);
}

// Chain 0 -> 1 -> 2 of two chunks of 2 floats, copied without reducing; rank 1 forwards in step 1. Its downlink is busy
// until 4, its uplink from 2 to 6.
TEST_P(Simulate, ForwardedChunksFollowEachOther) {
  Plan plan = plan_of(3, 4, {{0, 0, 1, 0, 4, false}, {1, 1, 2, 0, 4, false}});
  plan.num_chunks = 2;
  EXPECT_DOUBLE_EQ(simulate(plan, star(3, 0, {1, 0, 9}), 4, with(GetParam())).seconds, 6);
}

// Rank 0 receives nothing and sends 4 floats in each of two steps at once. The second message pays its latency while
// the first one flows, then follows it. Rank 1 reduces each of them in 2 s.
TEST_P(Simulate, MessagesOfTwoStepsKeepTheirOrder) {
  const Plan plan = plan_of(2, 8, {{0, 0, 1, 0, 4, true}, {1, 0, 1, 4, 8, true}});
  for (const double alpha : {0.0, 3.0}) {
    StepTimes times;
    SimulationOptions options = with(GetParam());
    options.observer = &times;
    const Simulation s = simulate(plan, star(2, alpha, {1, 0, 9}, {0.5, 0}), 8, options);
    EXPECT_DOUBLE_EQ((times.flows[{0, 0, 0}]), alpha);
    EXPECT_DOUBLE_EQ((times.arrivals[{0, 0, 0}]), alpha + 4);
    EXPECT_DOUBLE_EQ((times.done[{1, 0, 0}]), alpha + 6);
    EXPECT_DOUBLE_EQ((times.flows[{0, 0, 1}]), alpha + 4);
    EXPECT_DOUBLE_EQ((times.arrivals[{0, 0, 1}]), alpha + 8);
    EXPECT_DOUBLE_EQ(s.seconds, alpha + 10);
    EXPECT_DOUBLE_EQ(s.terms.total(), alpha + 10);
    EXPECT_DOUBLE_EQ(s.terms.alpha, alpha);
    EXPECT_DOUBLE_EQ(s.terms.beta, 8);
  }
}

// Only messages to the same rank wait: those of step 0 to rank 1 and of step 1 to rank 2 share rank 0's uplink until 8.
TEST_P(Simulate, MessagesToOthersDoNotWait) {
  const Plan plan = plan_of(3, 8, {{0, 0, 1, 0, 4, false}, {1, 0, 2, 4, 8, false}});
  StepTimes times;
  SimulationOptions options = with(GetParam());
  options.observer = &times;
  simulate(plan, star(3, 0, {1, 0, 9}), 8, options);
  EXPECT_DOUBLE_EQ((times.arrivals[{0, 0, 0}]), 8);
  EXPECT_DOUBLE_EQ((times.flows[{0, 0, 1}]), 0);
  EXPECT_DOUBLE_EQ((times.arrivals[{0, 0, 1}]), 8);
}

// Two chunks of two messages of 2 floats. A message waits for the same step of the chunk before and for the step before
// of its own chunk, so from 2 to 6 step 1 of chunk 0 and step 0 of chunk 1 share the link.
TEST_P(Simulate, StepsAndChunksKeepTheirOrder) {
  Plan plan = plan_of(2, 4, {{0, 0, 1, 0, 2, false}, {1, 0, 1, 2, 4, false}});
  plan.num_chunks = 2;
  StepTimes times;
  SimulationOptions options = with(GetParam());
  options.observer = &times;
  simulate(plan, star(2, 0, {1, 0, 9}), 8, options);
  EXPECT_DOUBLE_EQ((times.arrivals[{0, 0, 0}]), 2);
  EXPECT_DOUBLE_EQ((times.flows[{0, 0, 1}]), 2);
  EXPECT_DOUBLE_EQ((times.flows[{0, 1, 0}]), 2);
  EXPECT_DOUBLE_EQ((times.arrivals[{0, 0, 1}]), 6);
  EXPECT_DOUBLE_EQ((times.arrivals[{0, 1, 0}]), 6);
  EXPECT_DOUBLE_EQ((times.flows[{0, 1, 1}]), 6);
  EXPECT_DOUBLE_EQ((times.arrivals[{0, 1, 1}]), 8);
}

// f = 3 operands of 4 floats: 2 * 4 gamma + 4 * 4 delta. Two messages that replace what was there are 2 operands, one
// is none at all.
TEST_P(Simulate, CalculationCountsOperands) {
  const Topology three = star(3, 0, {0, 0, 0}, {10, 1});
  const auto seconds = [&](const Plan& plan) { return simulate(plan, three, 4, with(GetParam())).seconds; };
  EXPECT_DOUBLE_EQ(seconds(plan_of(3, 4, {{0, 0, 2, 0, 4, true}, {0, 1, 2, 0, 4, true}})), 80 + 16);
  EXPECT_DOUBLE_EQ(seconds(plan_of(3, 4, {{0, 0, 2, 0, 4, false}, {0, 1, 2, 0, 4, false}})), 40 + 12);
  EXPECT_LT(seconds(plan_of(3, 4, {{0, 0, 2, 0, 4, false}})), 1e-100);
  // Half of the interval from both: f = 3 on [1,3), 2 on the rest.
  EXPECT_DOUBLE_EQ(seconds(plan_of(3, 4, {{0, 0, 2, 0, 3, true}, {0, 1, 2, 1, 4, true}})), 40 + 8 + 20 + 6);
}

TEST_P(Simulate, DegradedAndSharedLinks) {
  const Plan plan = plan_of(2, 4, {{0, 0, 1, 0, 4, false}});
  const auto seconds = [&](const LinkCondition& condition) {
    SimulationOptions options = with(GetParam());
    options.links = {condition};
    return simulate(plan, star(2, 0, {1, 1, 1}), 4, options).seconds;
  };
  EXPECT_DOUBLE_EQ(seconds({{0, 1}, true, true, 0.5, 0}), 8);
  EXPECT_DOUBLE_EQ(seconds({{0, 1}, true, false, 0.5, 0}), 8);
  EXPECT_DOUBLE_EQ(seconds({{0, 1}, false, true, 0.5, 0}), 4) << "the other direction";
  EXPECT_DOUBLE_EQ(seconds({{1, 1}, false, true, 0.25, 0}), 16);
  EXPECT_DOUBLE_EQ(seconds({{1, 1}, true, true, 2, 0}), 4) << "the other link is as it was";
  // Three quarters of the capacity left, and a second sender: 4 floats at 2 s each and a third more.
  EXPECT_DOUBLE_EQ(seconds({{0, 1}, true, true, 1, 0.25}), 8 / 0.75);
}

// Step numbers say what comes first and nothing else.
TEST_P(Simulate, StepNumbersMayHaveGaps) {
  const std::int64_t far = std::int64_t{1} << 59;
  const Plan plan = plan_of(3, 4, {{7, 0, 1, 0, 4, false}, {far, 1, 2, 0, 4, false}});
  for (const bool barrier : {false, true}) {
    EXPECT_DOUBLE_EQ(simulate(plan, star(3, 2, {1, 0, 9}), 4, with(GetParam(), barrier)).seconds, 12);
  }
}

TEST_P(Simulate, NothingToDo) {
  const Simulation one = simulate(cps(1), Topology("one", {Node{}}, 0), 1e6, with(GetParam()));
  EXPECT_EQ(one.seconds, 0);
  EXPECT_TRUE(one.is_complete);
  EXPECT_EQ(one.flows, 0);
  EXPECT_EQ(one.terms, Terms{});
  EXPECT_EQ(simulate(ring(1), star(1, 1, {1, 0, 0}), 1e6, with(GetParam())).seconds, 0);

  // Empty messages still take their way.
  const Simulation empty = simulate(ring(4), star(4, 3, {1, 1, 0}, {1, 1}), 0, with(GetParam()));
  EXPECT_DOUBLE_EQ(empty.seconds, 18);
  EXPECT_EQ(empty.flows, 24);
  EXPECT_DOUBLE_EQ(empty.terms.alpha, 18);
  // Links without cost: nothing that anybody could measure.
  EXPECT_LT(simulate(ring(4), star(4, 0, {0, 0, 0}), 1e6, with(GetParam())).seconds, 1e-100);
}

}  // namespace
}  // namespace gar
