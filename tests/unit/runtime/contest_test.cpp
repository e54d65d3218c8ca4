// The contest of candidates, with times that are made up: what a call takes is base[candidate] * (1 + noise), where the
// noise is never negative, as with ranks that come late.
#include "runtime/contest.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>

namespace gar {
namespace {

/// What happened in a number of calls.
struct Outcome {
  std::vector<std::int64_t> num_calls;  ///< per candidate
  double seconds = 0;
  double least_seconds = 0;  ///< had all calls been made with the fastest
};

/// Runs whole turns until at least `num_calls` calls are over.
Outcome run(
    Contest& contest, const std::vector<double>& base, std::int64_t num_calls,
    const std::function<double()>& noise = [] { return 0.0; }) {
  Outcome out;
  out.num_calls.assign(base.size(), 0);
  const double least = *std::min_element(base.begin(), base.end());
  std::int64_t done = 0;
  while (done < num_calls) {
    const Turn turn = contest.turn();
    for (std::int64_t i = 0; i < turn.num_calls; ++i, ++done) {
      const double factor = 1 + noise();
      const double seconds = base[static_cast<std::size_t>(turn.candidate)] * factor;
      if (i + 1 < turn.num_calls) {
        contest.add(seconds);
      } else {
        contest.next();
        contest.add_carrier(seconds);
      }
      ++out.num_calls[static_cast<std::size_t>(turn.candidate)];
      out.seconds += seconds;
      out.least_seconds += least * factor;
    }
  }
  return out;
}

TEST(Turn, SurvivesTheWire) {
  for (int candidate = 0; candidate < kMostCandidates; ++candidate) {
    for (const std::int64_t length : {1, 3, 4, 8, 16, 64, 1024}) {
      for (const bool is_settled : {false, true}) {
        const Turn turn{candidate, length, is_settled};
        EXPECT_LT(encode(turn), 1U << kTurnBits);
        EXPECT_EQ(decode(encode(turn)), turn);
      }
    }
  }
  for (unsigned bits = 0; bits < 1U << kTurnBits; ++bits) {
    EXPECT_GE(decode(bits).num_calls, 1);
    EXPECT_LT(decode(bits).candidate, kMostCandidates);
  }
}

TEST(Contest, FindsTheFastestWhereverItStands) {
  for (int fastest = 0; fastest < 4; ++fastest) {
    std::vector<double> base{10e-6, 11e-6, 12e-6, 10.6e-6};
    base[static_cast<std::size_t>(fastest)] = 8e-6;
    Contest contest(4, 0, {}, {});
    run(contest, base, 4000);
    EXPECT_TRUE(contest.is_settled()) << fastest;
    EXPECT_EQ(contest.incumbent(), fastest);
    EXPECT_NEAR(contest.standing(fastest).seconds, 8e-6, 1e-12);
    EXPECT_TRUE(contest.turn().is_settled);
  }
}

TEST(Contest, FindsTheFastestInNoise) {
  int num_right = 0;
  constexpr int kTries = 100;
  for (int seed = 0; seed < kTries; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::exponential_distribution<double> late(4);  // a quarter longer on average, now and then much more
    Contest contest(3, 0, {}, {});
    run(contest, {1.3, 1.0, 1.6}, 3000, [&] { return late(random); });
    num_right += contest.incumbent() == 1 ? 1 : 0;
  }
  EXPECT_GE(num_right, 97);
}

TEST(Contest, StaysWithTheModelWhereNothingIsGained) {
  Contest contest(2, 0, {}, {.share = 0.02, .margin = 0.03});
  run(contest, {1.0, 0.98}, 2000);
  EXPECT_TRUE(contest.is_settled());
  EXPECT_EQ(contest.incumbent(), 0);  // 2% are within the margin
}

// The bound: what looks have cost beyond the first ones (six calls each) stays within the share, at the end of any
// turn.
TEST(Contest, KeepsTheCostOfLookingWithinItsShare) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> ratio(1, 4);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> base{1};
    for (int i = 1; i < 4; ++i) base.push_back(ratio(random));
    Contest contest(4, 0, {}, {});
    const double first_looks = 6 * (std::accumulate(base.begin(), base.end(), 0.0) - 4);
    for (int i = 0; i < 60; ++i) {
      run(contest, base, 1);
      EXPECT_LE(contest.extra_seconds(), first_looks + 0.02 * contest.seconds() + 1e-3) << round;
    }
    const Outcome outcome = run(contest, base, 20000);
    EXPECT_LE(contest.extra_seconds(), first_looks + 0.02 * contest.seconds() + 1e-3) << round;
    EXPECT_LE(outcome.seconds, 1.02 * outcome.least_seconds) << round;
  }
}

TEST(Contest, LooksFewTimesAtWhatIsHopeless) {
  Contest contest(2, 0, {}, {});
  const Outcome outcome = run(contest, {1, 50}, 100);
  EXPECT_EQ(outcome.num_calls[1], 6);  // two looks, and nothing to pay for another one
  Contest shorter(2, 0, {}, {});
  run(shorter, {1, 1}, 8);
  EXPECT_EQ(shorter.standing(1).num_looks, 0);  // the incumbent comes first
}

TEST(Contest, TurnsToWhatSeemsFasterBeforeTheUnknown) {
  Contest contest(5, 0, {}, {});
  const Outcome outcome = run(contest, {1, 0.3, 1, 1, 1}, 30);
  EXPECT_EQ(contest.incumbent(), 1);
  EXPECT_EQ(outcome.num_calls[3] + outcome.num_calls[4], 0);
}

TEST(Contest, IsSettledAboutTheAbsurdAfterTwoLooks) {
  Contest contest(2, 0, {}, {});
  run(contest, {1, 50}, 200);
  EXPECT_TRUE(contest.is_settled());
  EXPECT_EQ(contest.incumbent(), 0);
}

TEST(Contest, CountsCallsThatNobodyHasTimed) {
  Contest contest(2, 0, {}, {});
  run(contest, {1, 2}, 3000);
  const std::int64_t calls = contest.num_calls();
  const double seconds = contest.seconds();
  contest.add_untimed(100);
  EXPECT_EQ(contest.num_calls(), calls + 100);
  EXPECT_NEAR(contest.seconds(), seconds + 100, 1e-6);
}

TEST(Contest, AShareOfZeroAllowsTheFirstLooksOnly) {
  Contest contest(3, 0, {}, {.share = 0});
  const Outcome outcome = run(contest, {1, 1.1, 1.5}, 5000);
  EXPECT_LE(outcome.num_calls[1], 6);
  EXPECT_EQ(outcome.num_calls[2], 6);
}

// The first look at the faster candidate meets a moment in which the machine does something else for a thousand calls.
TEST(Contest, DoesNotJudgeByOneBadMoment) {
  Contest contest(2, 0, {}, {});
  bool was_bad = false;
  for (std::int64_t done = 0; done < 3000;) {
    const Turn turn = contest.turn();
    for (std::int64_t i = 0; i < turn.num_calls; ++i, ++done) {
      const bool is_bad = turn.candidate == 1 && !was_bad;
      const double seconds = is_bad ? 1000 : turn.candidate == 1 ? 0.5 : 1.0;
      if (i + 1 < turn.num_calls) {
        contest.add(seconds);
      } else {
        was_bad = was_bad || is_bad;
        contest.next();
        contest.add_carrier(seconds);
      }
    }
  }
  EXPECT_EQ(contest.incumbent(), 1);
  EXPECT_TRUE(contest.is_settled());
}

TEST(Contest, StartsWithWhatAnEarlierJobFound) {
  Contest contest(3, 2, {2.0, 3.0, 1.0}, {});
  EXPECT_TRUE(contest.is_settled());
  const Outcome outcome = run(contest, {2, 3, 1}, 3000);
  EXPECT_EQ(outcome.num_calls[0] + outcome.num_calls[1], 0);
  EXPECT_EQ(contest.incumbent(), 2);
}

TEST(Contest, DoesNotBelieveAnEarlierJobForEver) {
  Contest contest(3, 2, {2.0, 3.0, 1.0}, {});
  run(contest, {1, 3, 2}, 5000);
  EXPECT_EQ(contest.num_reopened(), 1);
  EXPECT_TRUE(contest.is_settled());
  EXPECT_EQ(contest.incumbent(), 0);
}

TEST(Contest, LooksAgainWhenTheTimesDrift) {
  Contest contest(3, 0, {}, {});
  run(contest, {1.0, 1.2, 1.4}, 3000);
  ASSERT_TRUE(contest.is_settled());
  ASSERT_EQ(contest.incumbent(), 0);
  run(contest, {2.0, 1.2, 1.4}, 20000);
  EXPECT_GE(contest.num_reopened(), 1);
  EXPECT_TRUE(contest.is_settled());
  EXPECT_EQ(contest.incumbent(), 1);
}

// A program may end just then, and says and keeps what was measured.
TEST(Contest, KnowsWhatItKnewWhenItIsOpenedAgain) {
  Contest contest(3, 0, {}, {});
  run(contest, {1.0, 1.2, 1.4}, 3000);
  ASSERT_TRUE(contest.is_settled());
  for (int call = 0; call < 20'000 && contest.num_reopened() == 0; ++call) run(contest, {2.0, 1.2, 1.4}, 1);
  ASSERT_EQ(contest.num_reopened(), 1);
  for (int candidate = 0; candidate < 3; ++candidate) {
    EXPECT_GT(contest.standing(candidate).seconds, 0) << candidate;
    EXPECT_GT(contest.standing(candidate).num_known, 0) << candidate;
  }
}

TEST(Contest, OneSlowTurnIsNoDrift) {
  Contest contest(2, 0, {}, {});
  run(contest, {1.0, 1.2}, 3000);
  ASSERT_TRUE(contest.is_settled());
  run(contest, {5.0, 6.0}, 1);
  run(contest, {1.0, 1.2}, 5000);
  EXPECT_EQ(contest.num_reopened(), 0);
}

TEST(Contest, OfOneCandidateIsSettled) {
  Contest contest(1, 0, {}, {});
  EXPECT_TRUE(contest.is_settled());
  const Outcome outcome = run(contest, {1}, 5000);
  EXPECT_EQ(contest.extra_seconds(), 0);
  EXPECT_GE(outcome.num_calls[0], 5000);
}

}  // namespace
}  // namespace gar
