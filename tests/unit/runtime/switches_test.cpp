// The tree of a job by what Slurm says about every task.
#include "runtime/switches.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/network_costs.hpp"

namespace gar {
namespace {

using Levels = std::vector<std::vector<int>>;

/// One host per address, in order; the same address twice is the same host.
Levels levels_of(const std::vector<std::string>& addresses, const std::vector<int>& host_of, bool may_share = false) {
  std::vector<SwitchPath> paths;
  for (const std::string& address : addresses) {
    std::string pattern;
    for (const char c : address) {
      if (c == '.') pattern += "switch.";
    }
    paths.push_back(switch_path(address, pattern + "node"));
  }
  return switch_levels(paths, host_of, may_share);
}

TEST(SwitchPath, NeedsAddressAndPatternThatFit) {
  const SwitchPath path = switch_path("root.rack0.node5", "switch.switch.node");
  EXPECT_NE(path.host, 0U);
  EXPECT_NE(path.switches[0], 0U);
  EXPECT_NE(path.switches[1], 0U);
  EXPECT_EQ(path.switches[2], 0U);
  EXPECT_EQ(path, switch_path("root.rack0.node5", "switch.switch.node"));
  EXPECT_NE(path.switches[1], switch_path("other.rack0.node5", "switch.switch.node").switches[1]);
  EXPECT_EQ(switch_path("root.node5.cluster.org", "switch.node").switches[1], 0U);  // a node's name may have dots
  EXPECT_NE(switch_path("root.node5.cluster.org", "switch.node").host, 0U);
  for (const auto& [address, pattern] :
       std::vector<std::pair<const char*, const char*>>{{"", ""},
                                                        {"node5", "node"},
                                                        {"root.node5", "switch.switch.node"},
                                                        {"root..node5", "switch.switch.node"},
                                                        {"root.rack.node5", "switch.block.node"},
                                                        {"root.node5", "switch.switch"}}) {
    EXPECT_EQ(switch_path(address, pattern), SwitchPath{}) << address;
  }
}

TEST(SwitchPath, KeepsTheLowestOfTooManySwitches) {
  const SwitchPath deep =
      switch_path("a.b.c.d.e.f.g.h.node", "switch.switch.switch.switch.switch.switch.switch.switch.node");
  const SwitchPath same_rack =
      switch_path("a.b.c.d.e.f.g.h.other", "switch.switch.switch.switch.switch.switch.switch.switch.node");
  EXPECT_NE(deep.switches.back(), 0U);
  EXPECT_EQ(deep.switches, same_rack.switches);
}

TEST(SwitchLevels, AreThoseThatDivideTheHosts) {
  EXPECT_EQ(levels_of({"root.r0.a", "root.r0.b", "root.r1.c", "root.r1.d"}, {0, 1, 2, 3}), (Levels{{0, 0, 1, 1}}));
  EXPECT_EQ(levels_of({"root.r0.a", "root.r0.a", "root.r0.b", "root.r1.c"}, {0, 0, 1, 2}), (Levels{{0, 0, 0, 1}}));
  EXPECT_EQ(
      levels_of({"x.p0.r0.a", "x.p0.r0.b", "x.p0.r1.c", "x.p0.r1.d", "x.p1.r2.e", "x.p1.r2.f"}, {0, 1, 2, 3, 4, 5}),
      (Levels{{0, 0, 0, 0, 1, 1}, {0, 0, 1, 1, 2, 2}}));
  EXPECT_EQ(levels_of({"root.a", "root.b"}, {0, 1}), Levels{});        // one switch
  EXPECT_EQ(levels_of({"root.r0.a", "root.r1.b"}, {0, 1}), Levels{});  // a host below each
  EXPECT_EQ(levels_of({"root.r0.a", "root.r0.a"}, {0, 0}), Levels{});  // one host
  EXPECT_EQ(levels_of({"p0.r0.a", "p0.r0.b", "p1.r1.c", "p1.r1.d"}, {0, 1, 2, 3}),
            (Levels{{0, 0, 1, 1}}));  // twice the same
}

TEST(SwitchLevels, AreNotGuessed) {
  EXPECT_EQ(levels_of({"root.r0.a", "root.r0.b", "root.r1.c", "d"}, {0, 1, 2, 3}), Levels{});    // one knows nothing
  EXPECT_EQ(levels_of({"root.r0.a", "root.r0.b", "root.c", "root.d"}, {0, 1, 2, 3}), Levels{});  // unlike depths
  EXPECT_EQ(levels_of({"root.r0.a", "root.r1.b", "root.r0.c", "root.r1.d"}, {0, 1, 2, 3}),
            Levels{});  // dealt out in turn
  EXPECT_EQ(levels_of({"root.r0.a", "root.r0.a", "root.r1.c", "root.r1.d"}, {0, 1, 2, 3}),
            Levels{});  // an address of elsewhere
  EXPECT_EQ(levels_of({"root.r0.a", "root.r0.a", "root.r1.c", "root.r1.d"}, {0, 1, 2, 3}, true),
            (Levels{{0, 0, 1, 1}}));
  EXPECT_EQ(levels_of({"root.r0.a", "root.r0.b", "root.r1.c"}, {0, 0, 1}), Levels{});  // a host at two places
}

TEST(NetworkTopology, HasTheSwitchesAboveTheHosts) {
  HostMap hosts;
  hosts.host_of = {0, 1, 2, 3};
  hosts.numa_of.assign(4, -1);
  hosts.cores_of.assign(4, 2);
  hosts.num_hosts = 4;
  hosts.switches_of = {{0, 0, 1, 1}};
  NetworkCosts costs;
  costs.rank = costs.host = {9e-6, 4e-9};
  costs.switches = {{25e-6, 1e-9}};
  const Topology tree = network_topology("tcp", hosts, costs);
  EXPECT_EQ(tree.height(tree.root()), 3);
  EXPECT_EQ(tree.num_children(tree.root()), 2);
  EXPECT_NEAR(tree.path_latency(0, 1), 9e-6, 1e-12);
  EXPECT_NEAR(tree.path_latency(0, 2), 25e-6, 1e-12);
  const Node& rack = tree.node(tree.node(tree.root()).children.front().node);
  EXPECT_EQ(rack.name, "switch");
  EXPECT_DOUBLE_EQ(rack.uplink.beta, 1e-9);
  EXPECT_DOUBLE_EQ(tree.node(rack.children.front().node).uplink.beta, 4e-9);
  // Below a switch that takes part of the time itself: the root adds what is left.
  costs.rank = {1e-6, 1e-9};
  const Topology slow = network_topology("tcp", hosts, costs);
  EXPECT_NEAR(slow.path_latency(0, 1), 9e-6, 1e-12);
  EXPECT_NEAR(slow.path_latency(0, 2), 25e-6, 1e-12);
}

}  // namespace
}  // namespace gar
