// Where the ranks of a communicator run: hosts by what MPI says about shared memory, NUMA nodes and cores by hwloc.
#pragma once

#include <mpi.h>

#include <vector>

#include "runtime/transports/mpi/polite.hpp"

namespace gar {

struct Hosts {
  std::vector<int> host_of;      ///< of every rank: numbers from 0 in the order of their first ranks
  std::vector<int> numa_of;      ///< of every rank: NUMA node of its host that it is bound to; -1: none, or not known
  std::vector<double> cores_of;  ///< of every rank: cores that its host offers to this job, the pretended hosts' share
  int num_hosts = 1;
  std::vector<int> members;  ///< ranks of this rank's host, ascending
  OwnedComm host_comm;       ///< the members, in that order
};

/// GAR_FAKE_HOSTS, a test aid that lets one machine run what several would: the ranks of every host are divided into so
/// many pretended hosts of consecutive ranks. 1 when it is not set. Throws InvalidArgument.
int fake_hosts_from_environment();

/// Collective.
Hosts find_hosts(MPI_Comm comm, int num_fakes);

}  // namespace gar
