// The network between the ranks of an MPI job as a topology with measured parameters.
#pragma once

#include <mpi.h>

#include <optional>

#include "gar/topology.hpp"
#include "runtime/transports/mpi/hosts.hpp"

namespace gar {

/// Collective. A tree of hosts, NUMA nodes (where ranks are bound to several) and ranks; parameters come from a
/// measurement of some milliseconds, the same on all ranks. `is_shared`: the ranks of a host use shared memory and not
/// messages.
Topology measure_network(MPI_Comm comm, const Hosts& hosts, bool is_shared);

/// Collective. A rank among others of its host, for a network that is given; measured where a host has several ranks,
/// the same on all ranks. gamma and delta are left open.
Node measure_rank(MPI_Comm comm, const Hosts& hosts, bool is_shared);

/// Collective. A network that is given, for short vectors: with what a step of short messages takes here, and what a
/// rank does for each, measured by all ranks at once. Nothing where the network says what a message costs, or where
/// there is one host.
std::optional<Topology> measure_messages(MPI_Comm comm, const Hosts& hosts, const Topology& network);

/// The tree alone: `levels[k]` for groups of level k (ranks, NUMA nodes, hosts).
struct LevelCosts {
  double latency = 0;  ///< seconds of a short message between two neighbours
  double beta = 0;     ///< seconds per float of a group's link while all groups use theirs
  double mu = 0;       ///< seconds of a rank for a message that it sends or receives
};
struct NetworkCosts {
  LevelCosts rank;
  LevelCosts numa;
  LevelCosts host;
  ServerParams server;
};
/// What was measured, with handling messages (mu of the hosts' level, or of the ranks' where there is one host) as a
/// part of the server instead of the latencies: a step with one message each way costs what it did.
NetworkCosts with_mu(NetworkCosts costs);
/// Consecutive ranks with the same host (and NUMA node) form a node of the tree.
Topology network_topology(const Hosts& hosts, const NetworkCosts& costs);

}  // namespace gar
