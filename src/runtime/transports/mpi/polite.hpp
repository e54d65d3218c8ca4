// Waiting for MPI without keeping a core busy.
//
// MPI's blocking calls may spin. With more ranks than cores the rank that all others wait for then gets its turn only
// when the others' time slices have ended, some milliseconds each; so what happens while a communicator is made uses
// non-blocking calls and gives the core away between two looks.
#pragma once

#include <mpi.h>

#include <chrono>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/courtesy.hpp"
#include "runtime/transports/mpi/mpi_call.hpp"

namespace gar {

/// Instead of a yield that would take long.
inline constexpr std::chrono::microseconds kNap{20};

inline void wait_politely(std::span<MPI_Request> requests) {
  int is_done = 0;
  Courtesy courtesy;
  while (true) {
    check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &is_done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    if (is_done != 0) return;
    if (!courtesy.may_yield() || !courtesy.yield()) std::this_thread::sleep_for(kNap);
  }
}
inline void wait_politely(MPI_Request request) { wait_politely(std::span(&request, 1)); }

inline MPI_Datatype mpi_type_of(int /*value*/) { return MPI_INT; }
inline MPI_Datatype mpi_type_of(std::int64_t /*value*/) { return MPI_INT64_T; }
inline MPI_Datatype mpi_type_of(double /*value*/) { return MPI_DOUBLE; }

/// The reduction of all ranks' values.
template <class T>
T all_reduce_politely(MPI_Comm comm, T value, MPI_Op op) {
  T out{};
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallreduce(&value, &out, 1, mpi_type_of(value), op, comm, &request), "MPI_Iallreduce");
  wait_politely(request);
  return out;
}

/// All ranks' values, in the order of ranks.
template <class T>
std::vector<T> all_gather_politely(MPI_Comm comm, const T& value) {
  int size = 0;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  std::vector<T> out(static_cast<std::size_t>(size));
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallgather(&value, sizeof(T), MPI_BYTE, out.data(), sizeof(T), MPI_BYTE, comm, &request),
            "MPI_Iallgather");
  wait_politely(request);
  return out;
}

/// Rank 0's value for all ranks.
template <class T>
void broadcast_politely(MPI_Comm comm, T& value) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibcast(&value, sizeof(T), MPI_BYTE, 0, comm, &request), "MPI_Ibcast");
  wait_politely(request);
}

inline void barrier_politely(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(comm, &request), "MPI_Ibarrier");
  wait_politely(request);
}

/// A communicator of our own with errors as codes; freed with the object.
class OwnedComm {
 public:
  OwnedComm() = default;
  explicit OwnedComm(MPI_Comm comm) : comm_(comm) { MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN); }
  OwnedComm(OwnedComm&& other) noexcept : comm_(other.comm_) { other.comm_ = MPI_COMM_NULL; }
  OwnedComm& operator=(OwnedComm&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  OwnedComm(const OwnedComm&) = delete;
  OwnedComm& operator=(const OwnedComm&) = delete;
  ~OwnedComm() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  [[nodiscard]] MPI_Comm get() const { return comm_; }
  MPI_Comm release() { return std::exchange(comm_, MPI_COMM_NULL); }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// The same ranks, but nothing else of `comm`: copying the attributes of the program's communicator would call
/// functions of the program.
inline OwnedComm duplicate_plainly(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_split(comm, 0, rank, &copy), "MPI_Comm_split");
  return OwnedComm(copy);
}

/// A duplicate of our own, so that nothing that we send mixes with what others send.
inline OwnedComm duplicate_politely(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Comm_idup(comm, &copy, &request), "MPI_Comm_idup");
  wait_politely(request);
  return OwnedComm(copy);
}

}  // namespace gar
