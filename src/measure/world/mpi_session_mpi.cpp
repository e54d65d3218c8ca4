// MPI of gar-openmpi and gar-mpich.
#include "gar/mpi.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "gar/measure/mpi_session.hpp"
#include "gar/mpi_library.hpp"
#include "runtime/transports/mpi/hosts.hpp"
#include "runtime/transports/mpi/native.hpp"
#include "runtime/transports/mpi/polite.hpp"

namespace gar::measure {
namespace {

MpiPath mpi_path(TransportKind transport) {
  return transport == TransportKind::kMpi   ? MpiPath::kMessages
         : transport == TransportKind::kShm ? MpiPath::kShared
                                            : MpiPath::kHierarchy;
}

class CommGroup : public MpiGroup {
 public:
  explicit CommGroup(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~CommGroup() override { MPI_Comm_free(&comm_); }
  CommGroup(const CommGroup&) = delete;
  CommGroup& operator=(const CommGroup&) = delete;

  Communicator communicator(const CommunicatorOptions& options, TransportKind transport) override {
    return mpi_communicator(comm_, options, mpi_path(transport));
  }
  void native(const CollectiveCall& call) override { run_native(native_call(call, rank_), comm_); }
  void gather_to_first(const void* in, void* out, std::int64_t bytes) override {
    const int count = static_cast<int>(bytes);
    std::vector<MPI_Request> requests;
    if (rank_ == 0) {
      for (int peer = 1; peer < size_; ++peer) {
        auto* place = static_cast<std::byte*>(out) + (peer - 1) * bytes;
        check_mpi(MPI_Irecv(place, count, MPI_BYTE, peer, 0, comm_, &requests.emplace_back()), "MPI_Irecv");
      }
    } else {
      check_mpi(MPI_Isend(in, count, MPI_BYTE, 0, 0, comm_, &requests.emplace_back()), "MPI_Isend");
    }
    wait_politely(requests);
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
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "MPI_Comm_dup");
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

  [[nodiscard]] std::string library_version() const override { return mpi_library(); }

  Communicator communicator(const CommunicatorOptions& options, TransportKind transport) override {
    return mpi_communicator(world_, options, mpi_path(transport));
  }

  [[nodiscard]] std::string why_not(DataType type, std::int64_t count) const override {
    return why_not_native(type, count);
  }

  void native(const CollectiveCall& call) override { run_native(native_call(call, rank_), world_); }

  std::unique_ptr<MpiGroup> group(const std::vector<int>& ranks) override {
    if (std::find(ranks.begin(), ranks.end(), rank_) == ranks.end()) return nullptr;
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    check_mpi(MPI_Comm_group(world_, &all), "MPI_Comm_group");
    check_mpi(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some), "MPI_Group_incl");
    check_mpi(MPI_Comm_create_group(world_, some, 0, &comm), "MPI_Comm_create_group");
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return std::make_unique<CommGroup>(comm);
  }

  void exchange(int partner, const void* in, void* out, std::int64_t bytes) override {
    const int count = static_cast<int>(bytes);
    std::vector<MPI_Request> requests(2, MPI_REQUEST_NULL);
    check_mpi(MPI_Irecv(out, count, MPI_BYTE, partner, 1, world_, &requests[0]), "MPI_Irecv");
    check_mpi(MPI_Isend(in, count, MPI_BYTE, partner, 1, world_, &requests[1]), "MPI_Isend");
    wait_politely(requests);
  }

  std::vector<int> hosts() override { return find_hosts(world_, fake_hosts_from_environment()).host_of; }

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
