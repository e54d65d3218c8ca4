// Input and output that share memory, although the program has not said so with MPI_IN_PLACE.
//
// MPI forbids it, and MPI libraries refuse some of it: each has its own rule for the same address twice. Whether this
// one does is tried when the library starts, on a communicator of one rank. Where they let it pass, so do we.
#pragma once

#include <mpi.h>

#include <array>

#include "apps/preload/operation.hpp"

namespace gar::preload {

class Aliases {
 public:
  /// When MPI has just started: MPI_COMM_WORLD's error handler is replaced meanwhile, because some errors go there
  /// whatever the communicator. `self` has one rank.
  void find(MPI_Comm self);

  /// False: the MPI library refuses this call. `own` is where the input would lie in place. Input that overlaps the
  /// output in part is replaced by a copy.
  bool settle(Operation& operation, int num_ranks, const void* own) const;

 private:
  /// Of MPI_Allreduce, MPI_Iallreduce, MPI_Reduce_scatter_block and MPI_Allgather: with one element, and with more.
  std::array<std::array<bool, 2>, 4> is_refused_{};
};

}  // namespace gar::preload
