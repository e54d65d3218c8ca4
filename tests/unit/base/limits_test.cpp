#include "gar/limits.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "base/clock.hpp"
#include "gar/environment.hpp"
#include "gar/errors.hpp"
#include "gar/format.hpp"

namespace gar {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
constexpr auto kSmallest = std::numeric_limits<std::int64_t>::min();

TEST(Limits, WholeNumbersEndAtTheirRange) {
  EXPECT_EQ(to_whole(2.5), 3);
  EXPECT_EQ(to_whole(-2.5), -3);
  EXPECT_EQ(to_whole(0x1p62), std::int64_t{1} << 62);
  EXPECT_EQ(to_whole(0x1p63), kLargest);
  EXPECT_EQ(to_whole(1e300), kLargest);
  EXPECT_EQ(to_whole(kInfinite), kLargest);
  EXPECT_EQ(to_whole(-0x1p63), kSmallest);
  EXPECT_EQ(to_whole(-1e300), kSmallest);
  EXPECT_EQ(to_whole(kNoNumber), 0);
}

TEST(Limits, FiniteNumbersPass) {
  EXPECT_EQ(require_finite(1e300, "x"), 1e300);
  EXPECT_THROW(require_finite(kInfinite, "x"), InvalidArgument);
  EXPECT_THROW(require_finite(-kInfinite, "x"), InvalidArgument);
  EXPECT_THROW(require_finite(kNoNumber, "x"), InvalidArgument);
}

std::string refusal(double amount) {
  try {
    check_work(WorkLimit{"eggs", 1000}, amount, "the basket");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Limits, AllStandInTheDocumentation) {
  const std::string sentence = environment::kLimit.sentence;
  for (const WorkLimit& limit : {kNodeLimit, kRankLimit, kPricingLimit, kMessageLimit, kExplicitLimit, kFlowLimit,
                                 kLaneLimit, kTableLimit, kResultLimit}) {
    const std::string words = " " + format_count(to_whole(limit.most)) + " " + std::string(limit.things);
    EXPECT_NE(sentence.find(words), std::string::npos) << words << " is not in: " << sentence;
  }
}

TEST(Limits, WorkIsRefusedInWordsAndCanBeAllowed) {
  ASSERT_EQ(unsetenv("GAR_LIMIT"), 0);
  EXPECT_EQ(refusal(1000), "");
  EXPECT_EQ(refusal(2500),
            "the basket asks for 2.5e+03 eggs or more, and the limit is 1e+03; GAR_LIMIT=3 or more in the environment "
            "allows it, if there "
            "is the memory and the time");
  ASSERT_EQ(setenv("GAR_LIMIT", "3", 1), 0);
  EXPECT_EQ(refusal(2500), "");
  EXPECT_NE(refusal(3001), "");
  ASSERT_EQ(setenv("GAR_LIMIT", "0.5", 1), 0);
  EXPECT_NE(refusal(501), "");
  ASSERT_EQ(setenv("GAR_LIMIT", "many", 1), 0);
  EXPECT_NE(refusal(1).find("GAR_LIMIT=many"), std::string::npos);
  ASSERT_EQ(unsetenv("GAR_LIMIT"), 0);
}

// A steady clock counts nanoseconds in 63 bits: 1e10 s are too many.
TEST(Limits, TimesFromNowNeverOverflow) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point before = Clock::now();
  for (const double seconds : {1e9, 9.3e9, 1e10, 1e19, 1e300, kInfinite}) {
    EXPECT_GE(seconds_from_now(seconds), before + std::chrono::hours(200'000)) << seconds;
    EXPECT_EQ(milliseconds_until(seconds_from_now(seconds)), 86'400'000) << seconds;
  }
  for (const double seconds : {0.0, -1.0, -1e300, -kInfinite, kNoNumber}) {
    const Clock::time_point then = seconds_from_now(seconds);
    EXPECT_GE(then, before);
    EXPECT_LE(then, Clock::now());
    EXPECT_EQ(milliseconds_until(then), 0);
  }
  EXPECT_GE(seconds_from_now(1.5), before + std::chrono::milliseconds(1500));
}

TEST(Escaped, KeepsTextAndShowsTheRest) {
  EXPECT_EQ(escaped("rack3/server5 'x' \\n"), "rack3/server5 'x' \\n");
  EXPECT_EQ(escaped("M\xc3\xbcnchen \xe6\x9d\xb1\xe4\xba\xac \xf0\x9f\x9a\x80"),
            "M\xc3\xbcnchen \xe6\x9d\xb1\xe4\xba\xac \xf0\x9f\x9a\x80");
  EXPECT_EQ(escaped("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(escaped("a\nb\tc\rd\x7f"), "a\\x0ab\\x09c\\x0dd\\x7f");
  EXPECT_EQ(escaped(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escaped("\xc2\x9b"
                    "31m"),
            "\\xc2\\x9b31m");  // U+009B, the one-character form of ESC [
  EXPECT_EQ(escaped("a\xe2\x80\xae"
                    "b"),
            "a\\xe2\\x80\\xaeb");                                  // U+202E turns the direction of writing
  EXPECT_EQ(escaped("\xff\xfe"), "\\xff\\xfe");                    // no UTF-8
  EXPECT_EQ(escaped("\xc0\x9b"), "\\xc0\\x9b");                    // too long a form
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a pair
  EXPECT_EQ(escaped("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");  // beyond Unicode
  EXPECT_EQ(escaped("\xe6\x9d"), "\\xe6\\x9d");                    // cut off
  EXPECT_EQ(escaped(escaped("a\x1b")), escaped("a\x1b"));
}

}  // namespace
}  // namespace gar
