// MPI of gar-openmpi and gar-mpich.
#include "gar/mpi.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <map>
#include <string_view>
#include <thread>

#include "gar/environment.hpp"
#include "gar/errors.hpp"
#include "gar/measure/mpi_session.hpp"

namespace gar::measure {
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

MpiPath mpi_path(TransportKind transport) {
  return transport == TransportKind::kMpi   ? MpiPath::kMessages
         : transport == TransportKind::kShm ? MpiPath::kShared
                                            : MpiPath::kHierarchy;
}

void native_on(MPI_Comm comm, const Call& call) {
  const MPI_Datatype type = mpi_type(call.type);
  const MPI_Op op = mpi_op(call.op);
  const int count = static_cast<int>(call.count);
  const void* in = call.in == call.out ? MPI_IN_PLACE : call.in;
  switch (call.collective) {
    case Collective::kAllReduce:
      check(MPI_Allreduce(in, call.out, count, type, op, comm), "MPI_Allreduce");
      break;
    case Collective::kReduceScatter:
      check(MPI_Reduce_scatter_block(in, call.out, count, type, op, comm), "MPI_Reduce_scatter_block");
      break;
    case Collective::kAllGather: {
      int rank = 0;
      MPI_Comm_rank(comm, &rank);
      const auto* own = static_cast<const std::byte*>(call.out) + rank * call.count * size_of(call.type);
      if (call.in == own) in = MPI_IN_PLACE;
      check(MPI_Allgather(in, count, type, call.out, count, type, comm), "MPI_Allgather");
      break;
    }
  }
}

/// MPI_Waitall may spin, and keep a core from the rank that everybody waits for.
void wait_for(std::vector<MPI_Request>& requests) {
  for (int is_done = 0; is_done == 0;) {
    check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &is_done, MPI_STATUSES_IGNORE),
          "MPI_Testall");
    if (is_done == 0) sched_yield();
  }
}

class Group : public MpiGroup {
 public:
  explicit Group(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~Group() override { MPI_Comm_free(&comm_); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  Communicator communicator(const CommunicatorOptions& options, TransportKind transport) override {
    return mpi_communicator(comm_, options, mpi_path(transport));
  }
  void native(const Call& call) override { native_on(comm_, call); }
  void gather_to_first(const void* in, void* out, std::int64_t bytes) override {
    const int count = static_cast<int>(bytes);
    std::vector<MPI_Request> requests;
    if (rank_ == 0) {
      for (int peer = 1; peer < size_; ++peer) {
        auto* place = static_cast<std::byte*>(out) + (peer - 1) * bytes;
        check(MPI_Irecv(place, count, MPI_BYTE, peer, 0, comm_, &requests.emplace_back()), "MPI_Irecv");
      }
    } else {
      check(MPI_Isend(in, count, MPI_BYTE, 0, 0, comm_, &requests.emplace_back()), "MPI_Isend");
    }
    wait_for(requests);
  }

 private:
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
};

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

  Communicator communicator(const CommunicatorOptions& options, TransportKind transport) override {
    return mpi_communicator(world_, options, mpi_path(transport));
  }

  [[nodiscard]] std::string why_not(DataType type, std::int64_t count) const override {
    if (mpi_type(type) == MPI_DATATYPE_NULL) return fmt::format("native has no {}", to_string(type));
    if (count > INT_MAX) return "native takes at most 2^31 - 1 elements";
    return "";
  }

  void native(const Call& call) override { native_on(world_, call); }

  std::unique_ptr<MpiGroup> group(const std::vector<int>& ranks) override {
    if (std::find(ranks.begin(), ranks.end(), rank_) == ranks.end()) return nullptr;
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    check(MPI_Comm_group(world_, &all), "MPI_Comm_group");
    check(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some), "MPI_Group_incl");
    check(MPI_Comm_create_group(world_, some, 0, &comm), "MPI_Comm_create_group");
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return std::make_unique<Group>(comm);
  }

  void exchange(int partner, const void* in, void* out, std::int64_t bytes) override {
    const int count = static_cast<int>(bytes);
    std::vector<MPI_Request> requests(2, MPI_REQUEST_NULL);
    check(MPI_Irecv(out, count, MPI_BYTE, partner, 1, world_, &requests[0]), "MPI_Irecv");
    check(MPI_Isend(in, count, MPI_BYTE, partner, 1, world_, &requests[1]), "MPI_Isend");
    wait_for(requests);
  }

  std::vector<int> hosts() override {
    MPI_Comm host = MPI_COMM_NULL;
    check(MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
    int local_rank = 0;
    int local_size = 1;
    MPI_Comm_rank(host, &local_rank);
    MPI_Comm_size(host, &local_size);
    std::array<int, 2> place{rank_, 0};  // first rank of the host; which of its pretended ones
    check(MPI_Bcast(place.data(), 1, MPI_INT, 0, host), "MPI_Bcast");
    place[1] =
        static_cast<int>(local_rank * environment::whole_number(environment::kFakeHosts).value_or(1) / local_size);
    MPI_Comm_free(&host);
    std::vector<std::array<int, 2>> all(static_cast<std::size_t>(size_));
    check(MPI_Allgather(place.data(), 2, MPI_INT, all.data(), 2, MPI_INT, world_), "MPI_Allgather");
    std::vector<int> out;
    std::map<std::array<int, 2>, int> numbers;
    for (const auto& p : all) out.push_back(numbers.try_emplace(p, static_cast<int>(numbers.size())).first->second);
    return out;
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

}  // namespace gar::measure
