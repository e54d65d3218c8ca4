#include "runtime/transports/mpi/native.hpp"

#include <fmt/format.h>

#include <limits>

#include "gar/mpi_library.hpp"
#include "runtime/transports/mpi/mpi_call.hpp"
#include "runtime/transports/mpi/polite.hpp"

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

/// Does every MPI combine this as we do? Some saturate short integers, compare unsigned ones as signed, or take one of
/// NaN and a number by its place (docs/preload.md); results must not depend on which library computes them.
bool combines_alike(DataType type, ReduceOp op) {
  const bool is_order = op == ReduceOp::kMin || op == ReduceOp::kMax;
  switch (type) {
    case DataType::kInt32:
    case DataType::kInt64:
      return true;
    case DataType::kUint32:
    case DataType::kUint64:
    case DataType::kFloat32:
    case DataType::kFloat64:
      return !is_order;
    default:
      return false;
  }
}

/// The PMPI_ functions: whoever stands between us and MPI is not meant. Our own preload library has taken some of these
/// names, too, and gives us what it found behind them.
class MpiAllReduce final : public NativeAllReduce {
 public:
  MpiAllReduce(MPI_Comm comm, bool is_blocking, decltype(&PMPI_Allreduce) blocking)
      : comm_(duplicate_plainly(comm)), is_blocking_(is_blocking), blocking_(blocking) {}
  ~MpiAllReduce() override {
    int is_finalized = 0;
    MPI_Finalized(&is_finalized);
    // Too late to free it, or a rank has failed while others were inside: MPI keeps it.
    if (is_finalized != 0 || request_ != MPI_REQUEST_NULL) static_cast<void>(comm_.release());
  }
  MpiAllReduce(const MpiAllReduce&) = delete;
  MpiAllReduce& operator=(const MpiAllReduce&) = delete;

  [[nodiscard]] std::string library() const override { return mpi_library(); }
  [[nodiscard]] bool takes(const CollectiveCall& call) const override {
    constexpr std::int64_t kMore = 64;  // elements that we may add
    return call.collective == Collective::kAllReduce && combines_alike(call.type, call.op) &&
           why_not_native(call.type, call.count + kMore).empty();
  }
  [[nodiscard]] bool is_blocking() const override { return is_blocking_; }
  void start(const CollectiveCall& call) override {
    const NativeCall native = native_call(call, 0);
    const auto& [collective, in, out, count, type, op] = native;
    if (is_blocking_) {
      check_mpi(blocking_(in, out, count, type, op, comm_.get()), "MPI_Allreduce");
    } else {
      check_mpi(PMPI_Iallreduce(in, out, count, type, op, comm_.get(), &request_), "MPI_Iallreduce");
    }
  }
  bool test() override {
    if (request_ == MPI_REQUEST_NULL) return true;
    int is_done = 0;
    check_mpi(PMPI_Test(&request_, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    return is_done != 0;
  }

 private:
  OwnedComm comm_;
  bool is_blocking_;
  decltype(&PMPI_Allreduce) blocking_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace

std::unique_ptr<NativeAllReduce> native_all_reduce(MPI_Comm comm, bool is_blocking,
                                                   decltype(&PMPI_Allreduce) blocking) {
  return std::make_unique<MpiAllReduce>(comm, is_blocking, blocking == nullptr ? &PMPI_Allreduce : blocking);
}

std::string mpi_library() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(version, &length);
  return mpi_library_name(std::string_view(version, static_cast<std::size_t>(length)));
}

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
