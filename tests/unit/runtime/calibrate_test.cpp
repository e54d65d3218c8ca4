// gamma and delta from the seconds per float of two fan-ins:
//     T_2 = gamma + 3 delta,   T_8 = 7 gamma + 9 delta
#include "runtime/calibrate.hpp"

#include <gtest/gtest.h>

namespace gar {
namespace {

ServerParams from(double gamma, double delta) {
  return reduction_costs(gamma + 3 * delta, 7 * gamma + 9 * delta, 1e-13);
}

TEST(ReductionCosts, SolvesTheTwoEquations) {
  const ServerParams costs = from(2e-11, 1.5e-10);
  EXPECT_NEAR(costs.gamma, 2e-11, 1e-20);
  EXPECT_NEAR(costs.delta, 1.5e-10, 1e-20);
}

TEST(ReductionCosts, StaysPositive) {
  EXPECT_EQ(from(0, 1e-10).gamma, 1e-13);                        // all of the time is memory
  EXPECT_EQ(from(1e-10, 0).delta, 1e-13);                        // all of it is adding
  EXPECT_EQ(reduction_costs(1e-10, 8e-10, 1e-13).delta, 1e-13);  // T_8 > 7 T_2: noise
}

// A step with m messages each way takes alpha + 2 m mu.
TEST(MessageCosts, SplitsStepsAndKeepsWhatTheyTake) {
  const MessageCosts steps = split_steps(10e-6 + 2 * 1e-6, 10e-6 + 16 * 1e-6, 8);
  EXPECT_NEAR(steps.alpha, 10e-6, 1e-15);
  EXPECT_NEAR(steps.mu, 1e-6, 1e-15);
  const MessageCosts step = split_step(10e-6 + 6 * 1e-6, 3, 1e-6);
  EXPECT_NEAR(step.alpha, 10e-6, 1e-15);
  EXPECT_NEAR(step.mu, 1e-6, 1e-15);
}

// Whatever is measured, a step of one message costs what it took, and at least half of it is latency.
TEST(MessageCosts, NoiseDoesNotChangeWhatAStepCosts) {
  for (const double many : {0.0, 1e-6, 9e-6, 10e-6, 11e-6, 1e-4, 1.0}) {
    const MessageCosts costs = split_steps(10e-6, many, 8);
    EXPECT_NEAR(costs.alpha + 2 * costs.mu, 10e-6, 1e-15) << many;
    EXPECT_GE(costs.alpha, 5e-6) << many;
    EXPECT_GE(costs.mu, 0) << many;
  }
}

TEST(MessageCosts, OfThisHostAreInBounds) {
  const LocalCosts costs = measure_costs();
  EXPECT_GE(costs.mu, 0);
  EXPECT_LT(costs.mu, 1);
  const Topology host = memory_topology("host", 4, 2, costs);
  EXPECT_EQ(host.node(0).server.mu, 2 * costs.mu);
}

}  // namespace
}  // namespace gar
