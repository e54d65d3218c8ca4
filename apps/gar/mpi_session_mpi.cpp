// MPI of gar-openmpi and gar-mpich.
#include "gar/mpi.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <string_view>
#include <thread>

#include "apps/gar/mpi_session.hpp"
#include "gar/errors.hpp"

namespace gar::cli {
namespace {

void check(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw TransportError(fmt::format("{}: {}", what, std::string_view(text.data(), static_cast<std::size_t>(length))));
}

// MPI_DATATYPE_NULL: the standard has no such type.
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

class Session : public MpiSession {
 public:
  Session() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &size_);
  }
  ~Session() override {
    MPI_Comm_free(&world_);
    MPI_Finalize();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  [[nodiscard]] std::string library_version() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    std::string_view line(text.data(), static_cast<std::size_t>(length));
    line = line.substr(0, line.find('\n'));
    if (line.starts_with("Open MPI v")) return fmt::format("Open MPI {}", line.substr(10, line.find(',') - 10));
    if (line.starts_with("MPICH Version:")) {
      line.remove_prefix(14);
      return fmt::format("MPICH {}", line.substr(std::min(line.find_first_not_of(" \t"), line.size())));
    }
    return std::string(line);
  }

  Communicator communicator(const CommunicatorOptions& options, SessionPath path) override {
    return mpi_communicator(world_, options,
                            path == SessionPath::kMessages ? MpiPath::kMessages
                            : path == SessionPath::kShared ? MpiPath::kShared
                                                           : MpiPath::kHierarchy);
  }

  [[nodiscard]] std::string why_not(DataType type, std::int64_t count) const override {
    if (mpi_type(type) == MPI_DATATYPE_NULL) return fmt::format("native has no {}", to_string(type));
    if (count > INT_MAX) return "native takes at most 2^31 - 1 elements";
    return "";
  }

  void native(const Call& call) override {
    const MPI_Datatype type = mpi_type(call.type);
    const MPI_Op op = mpi_op(call.op);
    const int count = static_cast<int>(call.count);
    const void* in = call.in == call.out ? MPI_IN_PLACE : call.in;
    switch (call.collective) {
      case Collective::kAllReduce:
        check(MPI_Allreduce(in, call.out, count, type, op, world_), "MPI_Allreduce");
        break;
      case Collective::kReduceScatter:
        check(MPI_Reduce_scatter_block(in, call.out, count, type, op, world_), "MPI_Reduce_scatter_block");
        break;
      case Collective::kAllGather: {
        const auto* own = static_cast<const std::byte*>(call.out) + rank_ * call.count * size_of(call.type);
        if (call.in == own) in = MPI_IN_PLACE;
        check(MPI_Allgather(in, count, type, call.out, count, type, world_), "MPI_Allgather");
        break;
      }
    }
  }

  void abort(int code) override {
    // MPICH waits in MPI_Abort for peers that cannot be reached any more.
    std::thread([code] {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      _exit(code);
    }).detach();
    MPI_Abort(world_, code);
  }

 private:
  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

std::optional<MpiLibrary> built_with() {
#ifdef OPEN_MPI
  return MpiLibrary::kOpenMpi;
#else
  return MpiLibrary::kMpich;
#endif
}

std::unique_ptr<MpiSession> start_mpi() { return std::make_unique<Session>(); }

}  // namespace gar::cli
