// Which plan is chosen on a network with incast.
#include "runtime/choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "gar/planner.hpp"
#include "gar/topology.hpp"

namespace gar {
namespace {

/// 12 servers on one switch, 1e5 floats: beta alone takes 2 * 11/12 * 1e5 * 1.28e-6 s = 235 ms. Ranks of a ring pass 22
/// steps of 3 alpha each.
ChosenPlan choose(double alpha, double epsilon, double overlap) {
  PaperParams params;
  params.alpha = alpha;
  params.server_link = {1.28e-6, epsilon, 1};
  params.server = {1e-10, 1e-10};
  CommunicatorOptions options;
  options.overlap = overlap;
  Chooser chooser(options, make_tree({12}, params), 12, 1 << 20);
  return chooser.choose(Collective::kAllReduce, 400'000);
}

TEST(Choice, TakesARingWhereOverlappingStagesWereMeasuredToCostMore) {
  // 22 * 30 us = 0.7 ms: the ring is 0.2% behind plans with fewer steps.
  const ChosenPlan chosen = choose(1e-5, 9e-8, 1.05);
  EXPECT_EQ(chosen.name, "ring");
  EXPECT_NE(chosen.reason.find("measured to take 5.0% longer"), std::string::npos) << chosen.reason;
}

TEST(Choice, TakesNoRingWhereItIsPredictedToBeMuchSlower) {
  // 22 * 3 ms = 66 ms, more than 5%.
  EXPECT_NE(choose(1e-3, 9e-8, 1.05).name, "ring");
}

TEST(Choice, FollowsThePredictionWhereNothingWasMeasured) { EXPECT_NE(choose(1e-5, 9e-8, 1).name, "ring"); }

// 8 ranks in one memory: a synchronisation takes 5 us, a float some nanoseconds.
TEST(Choice, GathersWhatIsShortAndExploresTheRest) {
  PaperParams params;
  params.alpha = 5e-6 / 3;
  params.server_link = {4e-10, 0, 1};
  params.server = {1e-11, 1.5e-10};
  const Topology memory = make_tree({8}, params);
  const QuickGather quick{.max_bytes = 36 << 10, .num_rounds = 1, .is_read_in_place = true};
  Chooser chooser({}, memory, 8, 1 << 20, {quick, {}});
  const ChosenPlan tiny = chooser.choose(Collective::kAllReduce, 8);
  EXPECT_EQ(tiny.name, "gather");
  EXPECT_TRUE(tiny.quick);
  EXPECT_NEAR(tiny.seconds(Collective::kAllReduce, 2), 5e-6, 1e-8);
  EXPECT_TRUE(chooser.choose(Collective::kAllGather, 64).quick);
  EXPECT_FALSE(chooser.choose(Collective::kReduceScatter, 64).quick);  // nobody needs more than a part of the others
  QuickGather with_overhead = quick;
  with_overhead.plan_seconds = 2e-7;
  EXPECT_TRUE(Chooser({}, memory, 8, 1 << 20, {with_overhead, {}}).choose(Collective::kReduceScatter, 64).quick);
  const ChosenPlan longer = chooser.choose(Collective::kAllReduce, 1 << 20);
  EXPECT_FALSE(longer.quick);
  EXPECT_FALSE(chooser.choose(Collective::kAllReduce, 16 << 10).quick);  // 24 KiB in a core, eight times
  const std::vector<ChosenPlan> others = chooser.others(16 << 10, 4, "");
  EXPECT_EQ(std::count_if(others.begin(), others.end(), [](const ChosenPlan& c) { return c.quick.has_value(); }), 1);
  EXPECT_EQ(chooser.num_special(16 << 10), 1);
  EXPECT_EQ(chooser.num_special(1 << 20), 0);
  // With a third of the costs, because caches hold the vectors, it pays there as well.
  params.server_link.beta *= 0.3;
  params.server = {3e-12, 4.5e-11};
  EXPECT_TRUE(
      Chooser({}, memory, 8, 1 << 20, {quick, make_tree({8}, params)}).choose(Collective::kAllReduce, 16 << 10).quick);
  // What the options say comes first.
  CommunicatorOptions never;
  never.latency_bytes = 0;
  EXPECT_FALSE(Chooser(never, memory, 8, 1 << 20, {quick, {}}).choose(Collective::kAllReduce, 8).quick);
  CommunicatorOptions given;
  given.algorithm = "cps";
  EXPECT_FALSE(Chooser(given, memory, 8, 1 << 20, {quick, {}}).choose(Collective::kAllReduce, 8).quick);
  given.algorithm = "gather";
  EXPECT_TRUE(Chooser(given, memory, 8, 1 << 20, {quick, {}}).choose(Collective::kAllReduce, 8).quick);
  EXPECT_FALSE(Chooser(given, memory, 8, 1 << 20, {quick, {}}).choose(Collective::kAllReduce, 1 << 20).quick);
}

// Eight servers with 25 Mbit/s, one of them with 5: the 400 kB must cross its cable once each way, 640 ms. In one piece
// nothing is better than a ring; a plan with shares that fit needs chunks, and on links like these 16 KiB are worth
// one.
TEST(Choice, CutsShortVectorsWhereLinksAreSlow) {
  const auto server = [](const char* name, double beta) {
    return Node{name, 1e-4, {beta, 1e-8, 4}, {1e-10, 1e-10, 1e-5}, {}};
  };
  const Topology star("slow cable",
                      {server("host", 1.28e-6), server("slow", 6.4e-6), {"root", 1e-4, {}, {}, {{0, 7}, {1, 1}}}}, 2);
  Chooser chooser({}, star, 8, 256 << 10);
  const ChosenPlan chosen = chooser.choose(Collective::kAllReduce, 400'000);
  EXPECT_GT(chosen.plan->plan.num_chunks, 4);
  EXPECT_LT(chosen.priced->cost(1e5).total(), 0.8);
}

}  // namespace
}  // namespace gar
