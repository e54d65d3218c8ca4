// Communicators on top of MPI: shared memory between the ranks of a host, MPI messages between hosts.
// Link gar::mpi_openmpi or gar::mpi_mpich, whichever the program's MPI is. See docs/runtime.md.
#pragma once

#include <mpi.h>

#include "gar/communicator.hpp"

namespace gar {

/// Collective over `comm`, which is duplicated; ranks are those of `comm`. The communicator and its requests must be
/// gone before MPI_Finalize. With MPI_THREAD_MULTIPLE non-blocking operations run on a thread of their own, otherwise
/// inside test and wait.
Communicator mpi_communicator(MPI_Comm comm, const CommunicatorOptions& options = {},
                              MpiPath path = MpiPath::kHierarchy);

}  // namespace gar
