// Where the ranks of a communicator run: hosts by what MPI says about shared memory, NUMA nodes and cores by hwloc.
#pragma once

#include <mpi.h>

#include "runtime/network_costs.hpp"
#include "runtime/transports/mpi/polite.hpp"

namespace gar {

struct Hosts : HostMap {
  OwnedComm host_comm;  ///< the members, in that order
};

/// Collective.
Hosts find_hosts(MPI_Comm comm, int num_fakes);

}  // namespace gar
