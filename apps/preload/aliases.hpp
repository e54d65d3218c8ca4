// Input and output that share memory, although the program has not said so with MPI_IN_PLACE.
//
// MPI forbids it, and MPI libraries refuse some of it: each has its own rule for the same address twice. Whether this
// one does is tried when the library starts, on a communicator of one rank. Where they let it pass, so do we. A rank
// may do so alone: what is refused goes to the MPI library, which returns at once; handing it a call that it then runs
// would leave the other ranks, whose calls are ours, waiting. So in doubt a call is ours.
#pragma once

#include <mpi.h>

#include <array>

#include "apps/preload/operation.hpp"

namespace gar::preload {

/// What MPI_Allgather is called with. To the runtime these are bytes, whatever they mean.
struct GatherArguments {
  const void* in = nullptr;
  int in_count = 0;
  MPI_Datatype in_type = MPI_DATATYPE_NULL;
  void* out = nullptr;
  int out_count = 0;
  MPI_Datatype out_type = MPI_DATATYPE_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
};

class Aliases {
 public:
  /// When MPI has just started: MPI_COMM_WORLD's error handler is replaced meanwhile, because some errors go there
  /// whatever the communicator. `self` has one rank.
  void find(MPI_Comm self);

  /// Does the MPI library refuse this call of rank `rank`? The types are valid, and the input is not MPI_IN_PLACE.
  [[nodiscard]] bool refuses_gather(const GatherArguments& given, int rank) const;

  /// False: the MPI library refuses this call; of an AllGather, see above. `own` is where the input would lie in place.
  /// Input that overlaps the output in part is replaced by a copy.
  bool settle(Operation& operation, int num_ranks, const void* own) const;

 private:
  /// Of MPI_Allreduce, MPI_Iallreduce, MPI_Reduce_scatter_block and MPI_Allgather: with one element, and with more.
  std::array<std::array<bool, 2>, 4> is_refused_{};
};

}  // namespace gar::preload
