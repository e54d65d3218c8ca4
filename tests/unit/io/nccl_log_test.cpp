// Logs of NCCL: what is read of them in all versions, and what is said about them.
#include "gar/nccl_log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "gar/errors.hpp"
#include "gar/explain_nccl.hpp"
#include "gar/results_io.hpp"
#include "gar/topology.hpp"

namespace gar {
namespace {

std::string text_of_file(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool says(const NcclExplanation& explained, bool is_problem, const std::string& words) {
  return std::any_of(explained.findings.begin(), explained.findings.end(), [&](const NcclFinding& finding) {
    return finding.is_problem == is_problem && finding.words.find(words) != std::string::npos;
  });
}

TEST(NcclLog, TwoHostsOverSockets) {
  const NcclLog log = read_nccl_log_files({"data/nccl/two-hosts.log"});
  EXPECT_EQ(log.version, "2.20.5+cuda12.4");
  EXPECT_EQ(log.network, "Socket");
  EXPECT_TRUE(log.has_no_infiniband);
  EXPECT_EQ(log.num_ranks, 4);
  EXPECT_EQ(log.num_nodes, 2);
  EXPECT_EQ(log.hosts.at(3), "node-b");
  EXPECT_EQ(log.num_channels, 2);
  EXPECT_EQ(log.ring, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(log.links.size(), 4U);
  ASSERT_EQ(log.tuning.size(), 6U);
  EXPECT_EQ(log.tuning[5].algorithm, "Ring");
  EXPECT_EQ(log.tuning[5].protocol, "Simple");
  EXPECT_NEAR(log.tuning[5].latency_s, 300e-6, 1e-12);
  EXPECT_NEAR(log.tuning[5].bytes_per_s, 0.8e9, 1);
  ASSERT_EQ(log.choices.size(), 3U);
  EXPECT_EQ(log.choices[0].count, 2);
  EXPECT_EQ(log.choices[0].algorithm, "Tree");
  EXPECT_EQ(log.choices[2].protocol, "Simple");
  EXPECT_NEAR(log.choices[2].seconds, 84186.1e-6, 1e-9);
  ASSERT_EQ(log.warnings.size(), 1U);
  EXPECT_EQ(log.warnings[0].host, "node-b");

  const NcclExplanation explained = explain_nccl_log(log);
  EXPECT_EQ(explained.summary, "NCCL 2.20.5+cuda12.4, 4 ranks on 2 hosts, 2 on each");
  EXPECT_TRUE(says(explained, true, "between hosts it uses TCP sockets"));
  EXPECT_TRUE(says(explained, true, "no InfiniBand or RoCE card"));
  EXPECT_TRUE(
      says(explained, true,
           "2 of 2 links inside of a host go through the host's memory (SHM), because NCCL_P2P_DISABLE is set"));
  EXPECT_TRUE(says(explained, true, "NCCL_P2P_DISABLE=1"));
  EXPECT_TRUE(says(explained, false, "NCCL_SOCKET_IFNAME=eth0"));
  EXPECT_TRUE(says(explained, true, "NCCL warns on node-b: socketProgress"));
  EXPECT_EQ(explained.network, "tree:2x2@48Gbit/s+9.6Gbit/s");
  EXPECT_EQ(topology_from_spec(explained.network).num_servers(), 4);
  ASSERT_GE(explained.ranges.size(), 2U);
  EXPECT_EQ(explained.ranges.front().protocol, "LL");
  EXPECT_EQ(explained.ranges.back().algorithm, "Ring");
  EXPECT_EQ(explained.ranges.back().protocol, "Simple");
}

TEST(NcclLog, BetweenTheRowsOfNcclTests) {
  const std::string text = text_of_file("tests/golden/data/nccl_mixed.txt");
  EXPECT_TRUE(has_results(text));
  EXPECT_TRUE(is_nccl_log(text));
  const Results results = parse_results(text, "mixed");
  ASSERT_EQ(results.rows.size(), 6U);
  EXPECT_EQ(results.num_ranks, 4);
  EXPECT_EQ(results.rows[0].algorithm, "");
  EXPECT_EQ(results.rows[0].label, "out of place, Tree/LL128");
  EXPECT_EQ(results.rows[2].algorithm, "ring");
  EXPECT_EQ(results.rows[3].label, "in place, Ring/Simple");
  ASSERT_TRUE(results.nccl);
  const NcclExplanation explained = explain_nccl_log(*results.nccl);
  EXPECT_TRUE(std::none_of(explained.findings.begin(), explained.findings.end(),
                           [](const NcclFinding& finding) { return finding.is_problem; }));
  EXPECT_EQ(explained.network, "tree:2x2@720Gbit/s+384Gbit/s");
}

TEST(NcclLog, OldVersionsAndTagsOfLaunchers) {
  const NcclLog log = parse_nccl_log(text_of_file("tests/fuzz/corpus/nccl_log/old.log"), "old");
  EXPECT_EQ(log.version, "2.8.3+cuda11.1");
  EXPECT_EQ(log.num_ranks, 2);
  ASSERT_EQ(log.tuning.size(), 4U);
  EXPECT_EQ(log.tuning[3].algorithm, "Ring");
  EXPECT_EQ(log.tuning[3].protocol, "LL");
  ASSERT_EQ(log.links.size(), 1U);
  EXPECT_EQ(log.links[0].transport, "NET");
  EXPECT_EQ(log.links[0].detail, "Socket/0");
  ASSERT_EQ(log.choices.size(), 1U);
  EXPECT_EQ(log.choices[0].algorithm, "Ring");
}

TEST(NcclLog, TimesAndSourcesBeforeALine) {
  const NcclLog log = parse_nccl_log(
      "[2025-03-01 10:00:00] gpu-1:7:9 [3] init.cc:12 NCCL INFO comm 0x1 rank 3 nRanks 8 nNodes 1 localRanks 8\n"
      "gpu-1:7:9 [3] NCCL INFO AllReduce: 8192 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..1}\n",
      "log");
  EXPECT_EQ(log.hosts.at(3), "gpu-1");
  EXPECT_EQ(log.choices.at(0).algorithm, "NVLSTree");
  EXPECT_EQ(log.choices.at(0).collective, "AllReduce");
}

TEST(NcclLog, EveryHostAJobOfItsOwn) {
  std::string text;
  for (const char* host : {"a", "b"}) {
    for (int rank = 0; rank < 2; ++rank) {
      text += std::string(host) + ":1:2 [0] NCCL INFO comm 0x1 rank " + std::to_string(rank) +
              " nRanks 2 nNodes 1 localRanks 2\n";
    }
  }
  EXPECT_TRUE(says(explain_nccl_log(parse_nccl_log(text, "log")), true, "rank 0 is on more than one host"));
}

TEST(NcclLog, WhatIsNoLogAndWhatIsHostile) {
  EXPECT_THROW((void)parse_nccl_log("", "x"), ParseError);
  EXPECT_THROW((void)parse_nccl_log("size time\n1 2\n", "x"), ParseError);
  EXPECT_THROW((void)read_nccl_log_files({"there is none"}), ParseError);
  EXPECT_THROW((void)parse_results(text_of_file("data/nccl/two-hosts.log"), "x"), ParseError);
  const NcclLog log = read_nccl_log_files({"tests/golden/data/nccl_hostile.log"});
  for (const NcclFinding& finding : explain_nccl_log(log).findings) {
    for (const char c : finding.words) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << finding.words;
  }
  EXPECT_LE(log.warnings.size(), 50U);
}

TEST(NcclLog, KeepsABoundedPartOfALongLog) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) {
    text += "h" + std::to_string(i) + ":1:2 [0] NCCL WARN warning " + std::to_string(i) + "\n";
    text += "h:1:2 [0] NCCL INFO " + std::to_string(i + 1) + " Bytes -> Algo 1 proto 2 time 1\n";
    text += "h:1:2 [0] NCCL INFO X" + std::to_string(i) + " set by environment to 1\n";
  }
  const NcclLog log = parse_nccl_log(text, "long");
  EXPECT_EQ(log.warnings.size(), 50U);
  EXPECT_EQ(log.choices.size(), 2'000U);
  EXPECT_EQ(log.settings.size(), 100U);
}

}  // namespace
}  // namespace gar
