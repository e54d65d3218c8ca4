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

}  // namespace
}  // namespace gar
