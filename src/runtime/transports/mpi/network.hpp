// The network between the ranks of an MPI job as a topology with measured parameters (runtime/network_costs.hpp).
#pragma once

#include <mpi.h>

#include <optional>

#include "gar/topology.hpp"
#include "runtime/network_costs.hpp"
#include "runtime/transports/mpi/hosts.hpp"

namespace gar {

/// As measure_network and measure_rank of a probe, between the ranks of `comm`. Collective.
Topology measure_network(MPI_Comm comm, const Hosts& hosts, bool is_shared);
Node measure_rank(MPI_Comm comm, const Hosts& hosts, bool is_shared);

/// See runtime/network_costs.hpp.
std::optional<Topology> measure_messages(MPI_Comm comm, const Hosts& hosts, const Topology& network);

}  // namespace gar
