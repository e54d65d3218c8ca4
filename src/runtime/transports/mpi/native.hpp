// MPI's own collectives, for measurements and comparisons with ours.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "gar/communicator.hpp"
#include "runtime/native_all_reduce.hpp"

namespace gar {

/// MPI_DATATYPE_NULL where the MPI standard has no such type.
MPI_Datatype mpi_type(DataType type);
MPI_Op mpi_op(ReduceOp op);

/// A collective in MPI's words.
struct NativeCall {
  Collective collective = Collective::kAllReduce;
  const void* in = nullptr;  ///< or MPI_IN_PLACE
  void* out = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;
  MPI_Op op = MPI_OP_NULL;
};

/// Why MPI cannot run a call of this type and count; empty: it can.
std::string why_not_native(DataType type, std::int64_t count);
/// In place: AllReduce and ReduceScatter where `in` is `out` (MPI leaves ReduceScatter's result at the front of the
/// input), AllGather where `in` is the block of `rank` in `out`.
NativeCall native_call(const CollectiveCall& call, int rank);

/// Blocking. Throws TransportError.
void run_native(const NativeCall& call, MPI_Comm comm);
/// Non-blocking. Throws TransportError.
MPI_Request start_native(const NativeCall& call, MPI_Comm comm);

/// MPI's own AllReduce as a candidate, on a communicator of its own. Collective. `is_blocking`: nothing of ours has to
/// go on while a rank is inside of it, because other threads may call MPI, or no operation of ours is ever under way.
/// `blocking` is MPI's function; null: PMPI_Allreduce.
std::unique_ptr<NativeAllReduce> native_all_reduce(MPI_Comm comm, bool is_blocking,
                                                   decltype(&PMPI_Allreduce) blocking = nullptr);
/// "Open MPI 4.1.4": the MPI library that this program runs with.
std::string mpi_library();

}  // namespace gar
