// Trees of hosts, and ranks on given networks.
#include "topology/hosts.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gar/errors.hpp"

namespace gar {
namespace {

HostNodes named_nodes() {
  HostNodes out;
  out.rank.name = "rank";
  out.numa.name = "numa";
  out.host.name = "host";
  out.divided_host.name = "divided";
  out.network.name = "network";
  out.lone_rank.name = "lone";
  out.switches.resize(2);
  out.switches[0].name = "pod";
  out.switches[1].name = "rack";
  return out;
}

/// "network(2*host(3*rank))"
std::string shape(const Topology& topology, NodeId id) {
  std::string out = topology.node(id).name;
  if (topology.node(id).is_server()) return out;
  out += "(";
  for (const ChildRun& run : topology.node(id).children) {
    if (out.back() != '(') out += " ";
    out += std::to_string(run.count) + "*" + shape(topology, run.node);
  }
  return out + ")";
}

std::string tree(const std::vector<int>& host_of, const std::vector<int>& numa_of = {},
                 const std::vector<std::vector<int>>& switches_of = {}) {
  const Topology topology = topology_of_hosts("job", host_of, numa_of, named_nodes(), switches_of);
  EXPECT_EQ(topology.name(), "job");
  EXPECT_EQ(topology.num_servers(), static_cast<std::int64_t>(host_of.size()));
  return shape(topology, topology.root());
}

TEST(Hosts, FormATreeWithTheirRanks) {
  EXPECT_EQ(tree({0, 0, 0}), "host(3*rank)");
  EXPECT_EQ(tree({0, 0, 1, 1}), "network(2*host(2*rank))");
  EXPECT_EQ(tree({0, 0, 1, 1, 1}), "network(1*host(2*rank) 1*host(3*rank))");
  EXPECT_EQ(tree({0}), "host(1*rank)");
}

TEST(Hosts, AreDividedByNumaNodes) {
  EXPECT_EQ(tree({0, 0, 0, 0}, {0, 0, 1, 1}), "divided(2*numa(2*rank))");
  EXPECT_EQ(tree({0, 0, 1, 1, 1}, {0, 0, 1, 2, 2}), "network(1*host(2*rank) 1*divided(1*numa(1*rank) 1*numa(2*rank)))");
  EXPECT_EQ(tree({0, 0, 0, 0}, {0, 1, 0, 1}), "host(4*rank)");  // no subtree
}

TEST(Hosts, AreBelowTheSwitchesThatAreKnown) {
  EXPECT_EQ(tree({0, 1, 2, 2}, {}, {{0, 0, 1, 1}}), "network(1*pod(2*host(1*rank)) 1*pod(1*host(2*rank)))");
  EXPECT_EQ(tree({0, 1, 2, 3}, {}, {{0, 0, 0, 1}, {0, 0, 1, 2}}),
            "network(1*pod(1*rack(2*host(1*rank)) 1*rack(1*host(1*rank))) 1*pod(1*rack(1*host(1*rank))))");
}

TEST(Hosts, WhoseRanksDoNotFollowEachOtherAreNoSubtrees) { EXPECT_EQ(tree({0, 1, 0, 1}), "network(4*lone)"); }

TEST(ServersOfRanks, AreOnePerRankOrOnePerHost) {
  const std::vector<int> host_of{0, 0, 1, 1, 2, 2};
  EXPECT_EQ(servers_of_ranks(make_tree({6}), host_of), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(servers_of_ranks(make_tree({3}), host_of), (std::vector<std::int64_t>{0, 0, 1, 1, 2, 2}));
  try {
    (void)servers_of_ranks(make_tree({4}), host_of);
    FAIL();
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("has 4 servers, but there are 6 ranks on 3 hosts"), std::string::npos) << text;
  }
}

TEST(ServersOfRanks, MustNotFall) {
  EXPECT_NO_THROW(check_order(make_tree({3}), {0, 0, 2}));
  EXPECT_THROW(check_order(make_tree({3}), {0, 1, 0}), InvalidArgument);
}

}  // namespace
}  // namespace gar
