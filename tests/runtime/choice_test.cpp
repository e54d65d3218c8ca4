// Which plan is chosen on a network with incast.
#include "runtime/choice.hpp"

#include <gtest/gtest.h>

#include "gar/topology.hpp"

namespace gar {
namespace {

/// 12 servers on one switch, 1e5 floats: beta alone takes 2 * 11/12 * 1e5 * 1.28e-6 s = 235 ms. Ranks of a ring pass 22
/// steps of 3 alpha each.
ChosenPlan choose(double alpha, double epsilon, double incast_threshold) {
  PaperParams params;
  params.alpha = alpha;
  params.server_link = {1.28e-6, epsilon, incast_threshold};
  params.server = {1e-10, 1e-10};
  Chooser chooser({}, make_tree({12}, params), 12, 1 << 20);
  return chooser.choose(Collective::kAllReduce, 400'000);
}

TEST(Choice, TakesARingWhereSendersThatMeetLoseData) {
  // 22 * 30 us = 0.7 ms: the ring is 0.2% behind plans with fewer steps.
  const ChosenPlan chosen = choose(1e-5, 9e-8, 1);
  EXPECT_EQ(chosen.name, "ring");
  EXPECT_NE(chosen.reason.find("no rank hears from a second sender"), std::string::npos) << chosen.reason;
}

TEST(Choice, TakesNoRingWhereItIsPredictedToBeMuchSlower) {
  // 22 * 3 ms = 66 ms, more than 5%.
  EXPECT_NE(choose(1e-3, 9e-8, 1).name, "ring");
}

TEST(Choice, FollowsThePredictionWithoutIncast) { EXPECT_NE(choose(1e-5, 0, 0).name, "ring"); }

}  // namespace
}  // namespace gar
