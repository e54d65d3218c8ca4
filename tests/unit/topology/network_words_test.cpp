// Networks in words: speeds, latencies that are end to end, named classes, and generators with them.
#include "gar/network_words.hpp"

#include <gtest/gtest.h>

#include <string>

#include "gar/errors.hpp"

namespace gar {
namespace {

std::string words_error(const std::string& spec) {
  try {
    (void)topology_from_spec(spec);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(NetworkWords, Bandwidths) {
  for (const char* text : {"100Gbit/s", "100 Gbit/s", "12.5GB/s", "100Gb/s", "100Gbps", "100000Mbit/s", "0.1Tbit/s"}) {
    ASSERT_TRUE(bandwidth_of(text)) << text;
    EXPECT_DOUBLE_EQ(*bandwidth_of(text), 3.2e-10) << text;
  }
  EXPECT_DOUBLE_EQ(*bandwidth_of("8bit/s"), 4);
  EXPECT_DOUBLE_EQ(*bandwidth_of("1B/s"), 4);
  for (const char* text : {"", "100", "100G", "Gbit/s", "0Gbit/s", "-1Gbit/s", "1e3Gbit/s", "100gbit/s", "1.2.3Gbit/s",
                           "100  Gbit/s", "100Gbit/s ", "1kkbit/s", "9999999999999999Gbit/s", "0.00001bit/s"}) {
    EXPECT_FALSE(bandwidth_of(text)) << text;
  }
}

TEST(NetworkWords, Latencies) {
  EXPECT_DOUBLE_EQ(*latency_of("2us"), 2e-6);
  EXPECT_DOUBLE_EQ(*latency_of("1.5 ms"), 1.5e-3);
  EXPECT_DOUBLE_EQ(*latency_of("300ns"), 3e-7);
  EXPECT_DOUBLE_EQ(*latency_of("1s"), 1);
  EXPECT_DOUBLE_EQ(*latency_of("0us"), 0);
  for (const char* text : {"", "2", "2 hours", "us", "-2us", "2e3us", "10000000s"})
    EXPECT_FALSE(latency_of(text)) << text;
}

TEST(NetworkWords, AStarHasTheLatencyOfAPingPong) {
  const Topology t = topology_from_spec("star:12@100Gbit/s,2us");
  EXPECT_EQ(t.name(), "star:12@100Gbit/s,2us");
  EXPECT_EQ(t.num_servers(), 12);
  EXPECT_DOUBLE_EQ(t.path_latency(0, 11), 2e-6);
  const Node& server = t.node(0);
  EXPECT_DOUBLE_EQ(server.uplink.beta, 3.2e-10);
  EXPECT_EQ(server.uplink.epsilon, 0);
  EXPECT_EQ(server.server, find_network_class("DDR5")->server());
}

// Servers below one rack 2 us apart, in different racks what is said, or half a microsecond more.
TEST(NetworkWords, ATreeHasTheLatencyOfEachLevel) {
  const Topology said = topology_from_spec("tree:4x12@100Gbit/s,2us+400Gbit/s,3us");
  EXPECT_DOUBLE_EQ(said.path_latency(0, 11), 2e-6);
  EXPECT_DOUBLE_EQ(said.path_latency(0, 12), 3e-6);
  EXPECT_DOUBLE_EQ(said.node(0).uplink.beta, 3.2e-10);
  EXPECT_DOUBLE_EQ(said.node(1).uplink.beta, 8e-11);

  const Topology usual = topology_from_spec("tree:2x2x2x2@100GbE");
  EXPECT_DOUBLE_EQ(usual.path_latency(0, 1), 20e-6);
  EXPECT_DOUBLE_EQ(usual.path_latency(0, 2), 20.5e-6);
  EXPECT_DOUBLE_EQ(usual.path_latency(0, 4), 21e-6);
  EXPECT_DOUBLE_EQ(usual.path_latency(0, 8), 21.5e-6);
  for (NodeId id = 0; id < usual.root(); ++id) EXPECT_DOUBLE_EQ(usual.node(id).uplink.beta, 3.2e-10);
}

TEST(NetworkWords, ParallelCablesAreOneLink) {
  const Topology leaf_spine = topology_from_spec("leafspine:4x2x8@100GbE+400GbE");
  EXPECT_DOUBLE_EQ(leaf_spine.node(0).uplink.beta, 3.2e-10);
  EXPECT_DOUBLE_EQ(leaf_spine.node(1).uplink.beta, 8e-11 / 4);
  const Topology fat_tree = topology_from_spec("fattree:8@100GbE");
  EXPECT_DOUBLE_EQ(fat_tree.node(1).uplink.beta, 3.2e-10 / 4);
  EXPECT_DOUBLE_EQ(fat_tree.node(2).uplink.beta, 3.2e-10 / 16);
}

TEST(NetworkWords, MemoryOfServers) {
  const Topology t = topology_from_spec("star:8@NVLink4,H200");
  EXPECT_DOUBLE_EQ(t.node(0).server.delta, 4 / 4.8e12);
  EXPECT_DOUBLE_EQ(t.node(0).uplink.beta, 4 / 450e9);
}

TEST(NetworkWords, ClassesAreDistinctAndSayWhereTheyAreFrom) {
  for (const NetworkClass& c : network_classes()) {
    EXPECT_EQ(find_network_class(c.name), &c) << c.name;
    EXPECT_FALSE(c.source.empty()) << c.name;
    EXPECT_GT(c.bandwidth, 0) << c.name;
    EXPECT_EQ(c.is_link, c.adds_per_s == 0) << c.name;
    EXPECT_FALSE(bandwidth_of(c.name)) << c.name;
    EXPECT_FALSE(latency_of(c.name)) << c.name;
  }
  EXPECT_EQ(find_network_class("100gbe"), nullptr);
  EXPECT_NE(find_network_class(kTypicalServer), nullptr);
}

TEST(NetworkWords, WhatIsRefused) {
  const auto expect = [](const std::string& spec, const std::string& part) {
    const std::string error = words_error(spec);
    EXPECT_NE(error.find(part), std::string::npos) << spec << ": " << error;
    EXPECT_NE(error.find(spec.substr(0, 10)), std::string::npos) << error;
  };
  expect("star:12@", "after '@', '' is not known");
  expect("star:12@fast", "after '@', 'fast' is not known");
  expect("star:12@2us", "after '@' it gives no link speed in '2us'");
  expect("star:12@1Gbit/s,2Gbit/s", "speed of one link twice");
  expect("star:12@1GbE,2us,3us", "latency of one level twice");
  expect("star:12@1GbE,DDR4,DDR5", "memory of the servers twice");
  expect("star:12@1GbE+10GbE", "says the links of 2 levels; expected at most 1");
  expect("tree:4x12@1GbE+10GbE,DDR5", "behind a '+'");
  expect("tree:4x12@1GbE,2us+10GbE,1us", "a latency is that of the whole way");
  expect("star:7y@1GbE", "not a whole number");
  EXPECT_EQ(words_error("ss24@100GbE").substr(0, 16), "unknown topology");
}

TEST(NetworkWords, ThePapersParametersAreRecognised) {
  for (const std::string_view name : builtin_topologies())
    EXPECT_TRUE(has_paper_parameters(builtin_topology(name))) << name;
  EXPECT_TRUE(has_paper_parameters(topology_from_spec("fattree:4")));
  EXPECT_FALSE(has_paper_parameters(topology_from_spec("star:12@5Gbit/s")));
  EXPECT_FALSE(has_paper_parameters(topology_from_spec("star:1")));
}

}  // namespace
}  // namespace gar
