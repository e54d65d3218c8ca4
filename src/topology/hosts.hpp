// Ranks on hosts, as trees: what the runtime and `gar fit` make of "rank r runs on host host_of[r]".
//
// Hosts are numbered from 0 in the order of their first ranks. Ranks number the leaves of a tree from left to right, so
// a host is a subtree only if its ranks follow each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gar/topology.hpp"

namespace gar {

/// The nodes of a tree of hosts without their children: names and parameters, one node for each role.
struct HostNodes {
  Node rank;
  Node numa;                   ///< a NUMA node, above its ranks
  Node host;                   ///< a host, above its ranks
  Node divided_host;           ///< a host, above its NUMA nodes
  Node network;                ///< above several hosts, and above all switches
  std::vector<Node> switches;  ///< of each level of `switches_of`
  Node lone_rank;              ///< a rank below the network itself, where the ranks of a host do not follow each other
};

/// A tree of hosts and ranks. `numa_of` numbers the NUMA nodes of all hosts; a host whose ranks are in several, each in
/// one run, is divided by them. Empty: there is no such level. One host is its own root; the network is above several.
/// `switches_of` numbers the switches between network and hosts, level by level from the top; the ranks of each follow
/// each other, and so do those of the hosts.
Topology topology_of_hosts(std::string name, const std::vector<int>& host_of, const std::vector<int>& numa_of,
                           const HostNodes& nodes, const std::vector<std::vector<int>>& switches_of = {});

/// The server of every rank on a network that has one server per rank or one per host. Throws InvalidArgument when it
/// has neither.
std::vector<std::int64_t> servers_of_ranks(const Topology& network, const std::vector<int>& host_of);

/// Throws InvalidArgument when the servers of the ranks do not follow each other from left to right.
void check_order(const Topology& network, const std::vector<std::int64_t>& server_of);

}  // namespace gar
