// A collective call that the runtime takes over from the MPI library.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "gar/communicator.hpp"

namespace gar::preload {

struct Operation {
  CollectiveCall call;
  bool is_blocking = true;
  /// The same in the words of MPI, for the comparison with the library's own result. An AllGather is one of bytes.
  int mpi_count = 0;
  MPI_Datatype mpi_type = MPI_BYTE;
  MPI_Op mpi_op = MPI_OP_NULL;
  /// Where the call's input is, when the program's shares memory with its output.
  std::shared_ptr<std::vector<std::byte>> copied;
};

/// "MPI_Allreduce", ...
std::string_view name_of(const Operation& operation);

}  // namespace gar::preload
