// Results against the links of a network that somebody describes.
#include "gar/link_limit.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "gar/errors.hpp"
#include "gar/topology_io.hpp"

namespace gar {
namespace {

/// A row that has this busbw between n ranks, in bytes per second.
ResultRow row_of(std::int64_t n, double bytes, double busbw, const std::string& algorithm = "") {
  const auto ranks = static_cast<double>(n);
  return {.bytes = bytes, .seconds = 2 * (ranks - 1) / ranks * bytes / busbw, .algorithm = algorithm};
}

LimitDiagnosis judge(const std::string& network, const std::vector<ResultRow>& rows, std::int64_t n = 12) {
  return diagnose_by_links(load_topology(network), rows, n);
}

// 12 hosts at 100 Gbit/s = 12.5 GB/s.
TEST(LinkLimit, SaysWhatShareIsReached) {
  const LimitDiagnosis slow = judge("star:12@100Gbit/s,2us", {row_of(12, 64e6, 3e9), row_of(12, 128e6, 3e9)});
  EXPECT_FALSE(slow.is_normal);
  EXPECT_TRUE(slow.is_judged);
  EXPECT_EQ(slow.words[0], "3 GB/s busbw for 128 MB is 24% of what 100 Gbit/s allows (12.5 GB/s)");
  EXPECT_NEAR(slow.rows[0].share(), 0.24, 1e-9);
  EXPECT_EQ(slow.rows[0].verdict, Verdict::kSlow);
  const auto has = [&](const char* part) {
    return std::any_of(slow.words.begin(), slow.words.end(),
                       [&](const std::string& words) { return words.find(part) != std::string::npos; });
  };
  EXPECT_TRUE(has("25GbE would explain that")) << "24 Gbit/s";
  EXPECT_TRUE(has("gar bench --algo native,ring"));
  const LimitDiagnosis good = judge("star:12@100Gbit/s,2us", {row_of(12, 128e6, 11e9)});
  EXPECT_TRUE(good.is_normal);
  EXPECT_EQ(good.words.back(), "70% and more is normal");
}

// A cut in the middle: 3 racks of 4 hosts at 100 Gbit/s, each rack behind 100 Gbit/s. All four of a rack share its
// uplink, but an AllReduce inside the racks first sends one vector over each uplink both ways, 2 (3 - 1) / 3 of it at
// least.
TEST(LinkLimit, KnowsTheStrongestCut) {
  const LimitDiagnosis d = judge("tree:3x4@100Gbit/s+10Gbit/s", {row_of(12, 128e6, 1e9)});
  EXPECT_NEAR(d.rows[0].limit_s, 4.0 / 3 * 128e6 * 8 / 10e9, 1e-3 * d.rows[0].limit_s);
  EXPECT_NE(d.words[0].find("of what the stated network allows"), std::string::npos) << d.words[0];
  EXPECT_NE(d.words[0].find("the limit is that of the links between 3 parts"), std::string::npos) << d.words[0];
}

TEST(LinkLimit, JudgesTheLongestAlone) {
  std::vector<ResultRow> rows{row_of(12, 8, 1e3), row_of(12, 1e6, 1e9), row_of(12, 32e6, 10e9),
                              row_of(12, 128e6, 11e9)};
  rows[0].seconds = 34e-6;
  const LimitDiagnosis d = judge("star:12@100Gbit/s,2us", rows);
  EXPECT_TRUE(d.is_normal);
  EXPECT_FALSE(d.rows[0].is_judged);
  EXPECT_FALSE(d.rows[1].is_judged) << "much shorter than the longest";
  EXPECT_TRUE(d.rows[2].is_judged);
  EXPECT_NE(d.words[1].find("8 B take 34.0 us, 17.0 times the stated latency"), std::string::npos) << d.words[1];
  rows.resize(1);
  const LimitDiagnosis too_short = judge("star:12@100Gbit/s,2us", rows);
  EXPECT_FALSE(too_short.is_judged);
  EXPECT_FALSE(too_short.is_normal);
}

// Reduce-broadcast needs 2 (N - 1) vectors at the root, N times what is possible: that is its own fault, not the
// network's.
TEST(LinkLimit, JudgesAnAlgorithmByWhatItNeeds) {
  const double seconds = 2 * 11 * 128e6 * 8 / 100e9;
  ResultRow row{.bytes = 128e6, .seconds = 1.1 * seconds, .algorithm = "reduce-broadcast"};
  const LimitDiagnosis d = judge("star:12@100Gbit/s,2us", {row});
  EXPECT_TRUE(d.is_normal) << d.words.back();
  EXPECT_NEAR(d.rows[0].expected_s, seconds, 0.01 * seconds);
  EXPECT_LT(d.rows[0].share(), 0.1);
  row.seconds *= 2;
  EXPECT_FALSE(judge("star:12@100Gbit/s,2us", {row}).is_normal);
}

TEST(LinkLimit, NoticesWhatCannotBe) {
  const LimitDiagnosis d = judge("star:12@10Gbit/s", {row_of(12, 128e6, 3e9)});
  EXPECT_FALSE(d.is_normal);
  EXPECT_EQ(d.rows[0].verdict, Verdict::kFast);
  EXPECT_NE(d.words.back().find("faster than these links can be"), std::string::npos) << d.words.back();
  EXPECT_THROW((void)judge("star:12@10Gbit/s", {}), InvalidArgument);
}

// Fewer ranks than servers: the first ones.
TEST(LinkLimit, TakesTheFirstServers) {
  const LimitDiagnosis d = judge("star:12@100Gbit/s", {row_of(4, 128e6, 11e9)}, 4);
  EXPECT_TRUE(d.is_normal);
  EXPECT_NEAR(d.rows[0].limit_s, 1.5 * 128e6 * 8 / 100e9, 1e-9);
}

}  // namespace
}  // namespace gar
