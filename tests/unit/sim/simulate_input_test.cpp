// What the simulator refuses, how it is stopped, how it chooses its engine, and jitter.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/model.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"
#include "support/explicit_plan.hpp"
#include "support/small_simulations.hpp"
#include "support/terms.hpp"

namespace gar {
namespace {

using test::kEngines;
using test::plan_of;
using test::star;
using test::with;

class SimulateInput : public test::BothEngines {};
INSTANTIATE_TEST_SUITE_P(Engines, SimulateInput, ::testing::ValuesIn(kEngines), test::engine_name);

// --- what is refused

/// The text of the exception that `f` throws; fails when it throws none or another.
template <class E>
std::string thrown(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another exception: " << e.what();
    return "";
  }
  ADD_FAILURE() << "no exception";
  return "";
}

template <class E>
std::string refused(const Plan& plan, const Topology& topology, double size, const SimulationOptions& options) {
  return thrown<E>([&] { (void)simulate(plan, topology, size, options); });
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_P(SimulateInput, RefusesPlansThatDoNotFit) {
  EXPECT_FALSE(refused<PlanError>(cps(5), make_tree({4}), 1e6, with(GetParam())).empty());
  EXPECT_FALSE(refused<PlanError>(cps(3), make_tree({4}), 1e6, with(GetParam())).empty());
  Plan broken = cps(4);
  broken.num_chunks = 0;
  EXPECT_FALSE(refused<PlanError>(broken, make_tree({4}), 1e6, with(GetParam())).empty());
  // Sent but not received, received but not sent.
  Plan lost = test::idle_plan(2, 4);
  test::add_send(lost, {0, 0, 1, 0, 4, false});
  EXPECT_FALSE(refused<PlanError>(lost, make_tree({2}), 1e6, with(GetParam())).empty());
  Plan missing = test::idle_plan(2, 4);
  test::add_receive(missing, {0, 0, 1, 0, 4, false});
  EXPECT_FALSE(refused<PlanError>(missing, make_tree({2}), 1e6, with(GetParam())).empty());
  EXPECT_FALSE(refused<PlanError>(missing, make_tree({2}), 1e6, with(GetParam(), true)).empty());
}

TEST_P(SimulateInput, RefusesBadSizes) {
  for (const double size : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(refused<InvalidArgument>(cps(4), make_tree({4}), size, with(GetParam())).empty()) << size;
  }
}

TEST_P(SimulateInput, RefusesToCutOffARank) {
  const Topology tree = make_tree({8, 8});
  for (const auto& [up, down] : {std::pair(true, true), {true, false}, {false, true}}) {
    SimulationOptions options = with(GetParam());
    options.links = {{{37, 2}, up, down, 0, 0}};
    const std::string text = refused<InvalidArgument>(cps(64), tree, 1e6, options);
    EXPECT_TRUE(contains(text, "rank 37 cannot be reached")) << text;
  }
  SimulationOptions rack = with(GetParam());
  rack.links = {{{37, 1}, true, true, 0, 0}};
  const std::string text = refused<InvalidArgument>(hcps(64, {8, 8}), tree, 1e6, rack);
  EXPECT_TRUE(contains(text, "cannot be reached")) << text;
  // A plan that does not use the link does not mind.
  const Plan inside = plan_of(64, 1, {{0, 0, 1, 0, 1, false}});
  EXPECT_EQ(simulate(inside, tree, 1e6, rack).flows, 1);
}

TEST_P(SimulateInput, RefusesConditionsOutOfRange) {
  const Topology tree = make_tree({2, 2});
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<LinkCondition> links = {
      {{0, 2}, true, true, -0.5, 0}, {{0, 2}, true, true, nan, 0},  {{0, 2}, true, true, infinity, 0},
      {{0, 2}, true, true, 1, 1},    {{0, 2}, true, true, 1, -0.1}, {{0, 2}, true, true, 1, nan},
      {{0, 2}, true, true, 1, 1.5},  {{0, 0}, true, true, 0.5, 0},  {{0, 3}, true, true, 0.5, 0},
      {{0, -1}, true, true, 0.5, 0}, {{4, 1}, true, true, 0.5, 0},  {{-1, 1}, true, true, 0.5, 0},
  };
  for (std::size_t i = 0; i < links.size(); ++i) {
    SCOPED_TRACE("link " + std::to_string(i));
    SimulationOptions options = with(GetParam());
    options.links = {links[i]};
    EXPECT_FALSE(refused<InvalidArgument>(cps(4), tree, 1e6, options).empty());
  }
  const std::vector<SlowServer> servers = {{4, 2}, {-1, 2}, {0, -1}, {0, nan}, {0, infinity}};
  for (std::size_t i = 0; i < servers.size(); ++i) {
    SCOPED_TRACE("server " + std::to_string(i));
    SimulationOptions options = with(GetParam());
    options.slow_servers = {servers[i]};
    EXPECT_FALSE(refused<InvalidArgument>(cps(4), tree, 1e6, options).empty());
  }
  for (const double jitter : {-0.1, nan, infinity}) {
    SCOPED_TRACE("jitter " + std::to_string(jitter));
    SimulationOptions options = with(GetParam());
    options.jitter = jitter;
    EXPECT_FALSE(refused<InvalidArgument>(cps(4), tree, 1e6, options).empty());
  }
}

// --- watching and stopping

TEST_P(SimulateInput, StopsWhenAsked) {
  const Topology tree = make_tree({8, 8});
  SimulationOptions options = with(GetParam());
  options.slow_servers = {{5, 1.5}};
  const Plan plan = ring(64);
  const Simulation whole = simulate(plan, tree, 1e7, options);
  int calls = 0;
  double time = 0;
  options.clock = [&] { return time; };
  options.progress = [&](const SimulationProgress& p) {
    EXPECT_LE(p.flows_done, p.flows);
    EXPECT_EQ(p.flows, whole.flows);
    EXPECT_LE(p.seconds, whole.seconds);
    time += 0.1;  // so it will be called again
    return ++calls < 3;
  };
  const Simulation part = simulate(plan, tree, 1e7, options);
  EXPECT_FALSE(part.is_complete);
  EXPECT_EQ(calls, 3);
  EXPECT_LT(part.seconds, whole.seconds);
  EXPECT_LT(part.flows_done, whole.flows);
  EXPECT_EQ(part.flows, whole.flows);

  options.progress = [](const SimulationProgress&) { return false; };
  const Simulation nothing = simulate(plan, tree, 1e7, options);
  EXPECT_FALSE(nothing.is_complete);
  EXPECT_LT(nothing.flows_done, whole.flows);

  options.progress = [](const SimulationProgress&) { return true; };
  const Simulation again = simulate(plan, tree, 1e7, options);
  EXPECT_TRUE(again.is_complete);
  EXPECT_EQ(again.seconds, whole.seconds);
  EXPECT_EQ(again.flows_done, again.flows);
}

// The clock goes on by 1/64 s between two moments, so 0.05 s have passed at every fourth of them.
TEST_P(SimulateInput, ReportsProgressAtIntervals) {
  const Topology tree = make_tree({8, 8});
  SimulationOptions options = with(GetParam());
  options.slow_servers = {{5, 1.5}};
  std::int64_t readings = 0;
  std::int64_t calls = 0;
  options.clock = [&] { return static_cast<double>(readings++) / 64; };
  options.progress = [&](const SimulationProgress&) {
    ++calls;
    return true;
  };
  const Simulation s = simulate(ring(64), tree, 1e7, options);
  EXPECT_EQ(readings, 1 + s.events) << "once at the start, once at every moment";
  EXPECT_EQ(calls, 1 + s.events / 4);

  calls = 0;
  options.clock = [] { return 5.0; };
  (void)simulate(ring(64), tree, 1e7, options);
  EXPECT_EQ(calls, 1) << "at the start only: the clock stands still";
}

TEST_P(SimulateInput, TheSameTwice) {
  const Topology tree = make_tree({3, 5});
  const Simulation a = simulate(cps(15), tree, 1e7, with(GetParam()));
  const Simulation b = simulate(cps(15), tree, 1e7, with(GetParam()));
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.terms, b.terms);
  EXPECT_EQ(a.events, b.events);
  EXPECT_EQ(a.links.size(), b.links.size());
}

TEST_P(SimulateInput, ThePathIsLeftOutWhenNotWanted) {
  SimulationOptions options = with(GetParam());
  const Simulation kept = simulate(ring(6), make_tree({2, 3}), 1e7, options);
  EXPECT_FALSE(kept.path.empty());
  options.keep_path = false;
  const Simulation s = simulate(ring(6), make_tree({2, 3}), 1e7, options);
  EXPECT_TRUE(s.path.empty());
  EXPECT_EQ(s.seconds, kept.seconds);
  EXPECT_EQ(s.terms, kept.terms);
}

TEST_P(SimulateInput, LinksComeBusiestFirst) {
  const Simulation s = simulate(cps(15), make_tree({3, 5}), 1e7, with(GetParam()));
  ASSERT_GT(s.links.size(), 1u);
  for (std::size_t i = 1; i < s.links.size(); ++i) EXPECT_GE(s.links[i - 1].busy_seconds, s.links[i].busy_seconds);
}

// A ring on one switch never has two senders on a link, however the times are rounded.
TEST_P(SimulateInput, MomentsAreNotSplitByRounding) {
  const Topology topology = star(24, 0.1, {1.0 / 3, 0.1, 1}, {0.7, 0.3});
  const Simulation s = simulate(ring(24), topology, 1000.0 / 7, with(GetParam()));
  for (const LinkUse& use : s.links) EXPECT_EQ(use.max_senders, 1);
  EXPECT_TRUE(test::is_close(s.seconds, closed_ring(24, 1000.0 / 7, one_switch_params(topology)).total(), 1e-9));
}

TEST(SimulateAuto, TakesClassesWhereTheySave) {
  const Simulation s = simulate(cps(64), make_tree({64}), 1e7);
  EXPECT_EQ(s.engine, SimulationEngine::kClasses);
  EXPECT_EQ(s.rank_classes, 1);
  EXPECT_LE(s.flow_classes, 2);
  EXPECT_EQ(s.flows, 2 * 64 * 63);
  // Inside racks, then between them: every server does the same.
  EXPECT_EQ(simulate(hcps(64, {8, 8}), make_tree({8, 8}), 1e7).rank_classes, 1);
  // A ring over racks: the place in the rack matters.
  EXPECT_EQ(simulate(ring(64), make_tree({8, 8}), 1e7).rank_classes, 8);
}

// --- jitter

TEST(SimulateJitter, FollowsTheSeed) {
  const Topology tree = make_tree({4, 4});
  for (const Plan& plan : {cps(16), ring(16), hcps(16, {4, 4})}) {
    SCOPED_TRACE(plan.algorithm);
    SimulationOptions options = with(SimulationEngine::kFlows);
    const double without = simulate(plan, tree, 1e7, options).seconds;
    options.seed = 7;
    EXPECT_EQ(simulate(plan, tree, 1e7, options).seconds, without) << "no jitter, another seed";
    options.jitter = 0.1;
    const double seven = simulate(plan, tree, 1e7, options).seconds;
    EXPECT_EQ(simulate(plan, tree, 1e7, options).seconds, seven);
    EXPECT_GT(seven, without);
    EXPECT_LT(seven, 3 * without);
    options.engine = SimulationEngine::kClasses;
    EXPECT_TRUE(test::is_close(simulate(plan, tree, 1e7, options).seconds, seven, 1e-9));
    options.engine = SimulationEngine::kAuto;
    EXPECT_TRUE(test::is_close(simulate(plan, tree, 1e7, options).seconds, seven, 1e-9));
    options.engine = SimulationEngine::kFlows;
    options.seed = 8;
    EXPECT_NE(simulate(plan, tree, 1e7, options).seconds, seven);
  }
}

TEST(SimulateJitter, TermsStillAddUp) {
  Plan plan = hcps(16, {4, 4});
  plan.num_chunks = 3;
  for (const bool barrier : {false, true}) {
    SimulationOptions options = with(SimulationEngine::kFlows, barrier);
    options.jitter = 0.3;
    const Simulation s = simulate(plan, make_tree({4, 4}), 1e7, options);
    EXPECT_TRUE(test::is_close(s.terms.total(), s.seconds, 1e-9));
  }
}

}  // namespace
}  // namespace gar
