#include "runtime/transports/mpi/native.hpp"

#include <fmt/format.h>

#include <limits>

#include "runtime/transports/mpi/mpi_call.hpp"

namespace gar {

namespace {

/// MPI's functions for the three collectives: the blocking ones, or those whose last argument is a request.
template <class Reduce, class Gather>
struct Functions {
  Reduce all_reduce;
  Reduce reduce_scatter;
  Gather all_gather;
};
template <class Reduce, class Gather>
Functions(Reduce, Reduce, Gather) -> Functions<Reduce, Gather>;

template <class Reduce, class Gather, class... Request>
void call_mpi(const Functions<Reduce, Gather>& functions, const NativeCall& call, MPI_Comm comm, Request*... request) {
  const auto& [collective, in, out, count, type, op] = call;
  switch (collective) {
    case Collective::kAllReduce:
      check_mpi(functions.all_reduce(in, out, count, type, op, comm, request...), "MPI_Allreduce");
      break;
    case Collective::kReduceScatter:
      check_mpi(functions.reduce_scatter(in, out, count, type, op, comm, request...), "MPI_Reduce_scatter_block");
      break;
    case Collective::kAllGather:
      check_mpi(functions.all_gather(in, count, type, out, count, type, comm, request...), "MPI_Allgather");
      break;
  }
}

}  // namespace

MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return MPI_INT8_T;
    case DataType::kUint8:
      return MPI_UINT8_T;
    case DataType::kInt16:
      return MPI_INT16_T;
    case DataType::kUint16:
      return MPI_UINT16_T;
    case DataType::kInt32:
      return MPI_INT32_T;
    case DataType::kUint32:
      return MPI_UINT32_T;
    case DataType::kInt64:
      return MPI_INT64_T;
    case DataType::kUint64:
      return MPI_UINT64_T;
    case DataType::kFloat32:
      return MPI_FLOAT;
    case DataType::kFloat64:
      return MPI_DOUBLE;
    case DataType::kFloat16:
    case DataType::kBfloat16:
      break;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return MPI_SUM;
    case ReduceOp::kProd:
      return MPI_PROD;
    case ReduceOp::kMin:
      return MPI_MIN;
    case ReduceOp::kMax:
      return MPI_MAX;
    case ReduceOp::kBand:
      return MPI_BAND;
    case ReduceOp::kBor:
      return MPI_BOR;
    case ReduceOp::kBxor:
      return MPI_BXOR;
    case ReduceOp::kLand:
      return MPI_LAND;
    case ReduceOp::kLor:
      return MPI_LOR;
    case ReduceOp::kLxor:
      break;
  }
  return MPI_LXOR;
}

std::string why_not_native(DataType type, std::int64_t count) {
  if (mpi_type(type) == MPI_DATATYPE_NULL) return fmt::format("native has no {}", to_string(type));
  if (count > std::numeric_limits<int>::max()) return "native takes at most 2^31 - 1 elements";
  return {};
}

NativeCall native_call(const CollectiveCall& call, int rank) {
  const bool gathers = call.collective == Collective::kAllGather;
  const auto* own = static_cast<const std::byte*>(call.out) + (gathers ? rank * in_bytes(call, 1) : 0);
  return {.collective = call.collective,
          .in = call.in == own ? MPI_IN_PLACE : call.in,
          .out = call.out,
          .count = static_cast<int>(call.count),
          .type = mpi_type(call.type),
          .op = mpi_op(call.op)};
}

void run_native(const NativeCall& call, MPI_Comm comm) {
  call_mpi(Functions{&MPI_Allreduce, &MPI_Reduce_scatter_block, &MPI_Allgather}, call, comm);
}

MPI_Request start_native(const NativeCall& call, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  call_mpi(Functions{&MPI_Iallreduce, &MPI_Ireduce_scatter_block, &MPI_Iallgather}, call, comm, &request);
  return request;
}

}  // namespace gar
