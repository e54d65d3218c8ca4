// A collective call that the runtime takes over from the MPI library.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string_view>

#include "gar/plan.hpp"
#include "gar/reduction.hpp"

namespace gar::preload {

struct Operation {
  Collective collective = Collective::kAllReduce;
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t count = 0;  ///< elements; of a block, for ReduceScatter and AllGather
  DataType type = DataType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  bool is_blocking = true;
  /// The same in the words of MPI, for the comparison with the library's own. An AllGather is one of bytes.
  int mpi_count = 0;
  MPI_Datatype mpi_type = MPI_BYTE;
  MPI_Op mpi_op = MPI_OP_NULL;

  [[nodiscard]] std::int64_t in_bytes(int num_ranks) const {
    return count * size_of(type) * (collective == Collective::kReduceScatter ? num_ranks : 1);
  }
  [[nodiscard]] std::int64_t out_bytes(int num_ranks) const {
    return count * size_of(type) * (collective == Collective::kAllGather ? num_ranks : 1);
  }
  /// Of the whole vector.
  [[nodiscard]] std::int64_t bytes(int num_ranks) const {
    return count * size_of(type) * (collective == Collective::kAllReduce ? 1 : num_ranks);
  }
};

/// "MPI_Allreduce", ...
std::string_view name_of(const Operation& operation);

}  // namespace gar::preload
