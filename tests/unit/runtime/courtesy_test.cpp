// When a waiting thread stops giving its core away, with a clock of the test's own.
#include "runtime/courtesy.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace gar {
namespace {

std::int64_t now = 0;
std::int64_t taken = 0;  // by each yield

Courtesy make() {
  return Courtesy([] { return now; }, [] { now += taken; });
}

/// Waits that sleep before one may yield again.
int num_sleeping(Courtesy& courtesy) {
  int out = 0;
  while (!courtesy.may_yield()) ++out;
  return out;
}

TEST(Courtesy, YieldsWhileThatIsCheap) {
  Courtesy courtesy = make();
  taken = 1000;
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(courtesy.may_yield());
    ASSERT_TRUE(courtesy.yield());
  }
}

TEST(Courtesy, SleepsLongerEachTimeThatStrangersTakeTheCore) {
  Courtesy courtesy = make();
  taken = 4'000'000;
  for (int expected = Courtesy::kFewest; expected < 4 * Courtesy::kMost; expected *= 2) {
    ASSERT_TRUE(courtesy.may_yield());
    EXPECT_FALSE(courtesy.yield());
    EXPECT_EQ(num_sleeping(courtesy), std::min(expected, Courtesy::kMost));
  }
}

TEST(Courtesy, ForgetsStrangersThatAreGone) {
  Courtesy courtesy = make();
  taken = 4'000'000;
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(courtesy.yield());
    num_sleeping(courtesy);
  }
  taken = 1000;
  for (int i = 0; i < Courtesy::kMost; ++i) EXPECT_TRUE(courtesy.yield());
  taken = 4'000'000;
  EXPECT_FALSE(courtesy.yield());
  EXPECT_EQ(num_sleeping(courtesy), Courtesy::kFewest);
}

}  // namespace
}  // namespace gar
