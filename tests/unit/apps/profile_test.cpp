// What `gar profile show` says in words, and which network -t and -p make together.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "apps/gar/cli/common.hpp"
#include "apps/gar/cli/network.hpp"
#include "apps/gar/views/profile_show.hpp"
#include "gar/errors.hpp"
#include "gar/explain_profile.hpp"
#include "gar/fit_report.hpp"

namespace gar::cli {
namespace {

const std::string kJune = GAR_SOURCE_DIR "/data/profiles/june.json";

TEST(Network, NeedsOne) { EXPECT_THROW((void)load_network({}), UsageError); }

TEST(Network, TopologyProfileOrBoth) {
  EXPECT_FALSE(load_network({"star:4", ""}).profile);
  const Network own = load_network({"", kJune});
  EXPECT_TRUE(own.profile);
  EXPECT_EQ(own.topology.num_servers(), 12);
  ::testing::internal::CaptureStderr();
  const Network both = load_network({"tree:2x3x4", kJune});
  const std::string note = std::regex_replace(::testing::internal::GetCapturedStderr(), std::regex("\n +"), " ");
  EXPECT_NE(note.find("knows 2 levels of links, tree:2x3x4 has 3; level 2 keeps"), std::string::npos) << note;
  EXPECT_EQ(both.topology.num_servers(), 24);
  EXPECT_DOUBLE_EQ(both.topology.path_latency(0, 4), 8e-5);
  ::testing::internal::CaptureStderr();
  (void)load_network({"tree:2x3x4", kJune}, Notes::kOmit);
  (void)load_network({"tree:3x4", kJune});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// Errors 0.5, 0, 0.1, 0.2, 0.3, 0.4, -0.6: sorted 0 .1 .2 .3 .4 .5 .6
TEST(ProfileShow, ResidualsInShort) {
  std::vector<Residual> residuals;
  for (const double fitted : {1.5, 1.0, 1.1, 1.2, 1.3, 1.4, 0.4}) residuals.push_back({"x", 1, fitted, 1});
  const ResidualSummary summary = summarise(residuals);
  EXPECT_NEAR(summary.median_error, 0.3, 1e-12);
  EXPECT_NEAR(summary.p95_error, 0.6, 1e-12);
  ASSERT_EQ(summary.worst.size(), 5U);
  EXPECT_EQ(summary.worst[0].fitted_s, 0.4);
  EXPECT_EQ(summary.worst[4].fitted_s, 1.2);
  EXPECT_TRUE(summarise({}).worst.empty());
}

}  // namespace
}  // namespace gar::cli
