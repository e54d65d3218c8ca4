// An MPI job as measurements see it. `gar` itself has none (mpi_session_none.cpp); gar-openmpi and gar-mpich are the
// same program with mpi_session_mpi.cpp instead.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "gar/measure/launch.hpp"

namespace gar::measure {

/// Some ranks of a job, seen from one of them.
class MpiGroup {
 public:
  MpiGroup() = default;
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;
  virtual ~MpiGroup() = default;

  /// The transport is kAuto, kShm or kMpi. Collective.
  virtual Communicator communicator(const CommunicatorOptions& options, TransportKind transport) = 0;
  /// As MpiSession::native, between these ranks.
  virtual void native(const CollectiveCall& call) = 0;
  /// All but the first send `bytes` from `in` to the first, whose `out` gets them side by side.
  virtual void gather_to_first(const void* in, void* out, std::int64_t bytes) = 0;
};

/// An MPI job, seen from one of its ranks.
class MpiSession {
 public:
  MpiSession() = default;
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  virtual ~MpiSession() = default;

  /// This rank in MPI_COMM_WORLD.
  [[nodiscard]] virtual int rank() const = 0;
  /// Ranks of MPI_COMM_WORLD.
  [[nodiscard]] virtual int size() const = 0;
  /// "Open MPI 4.1.4".
  [[nodiscard]] virtual std::string library_version() const = 0;
  /// As MpiGroup::communicator, of all ranks.
  virtual Communicator communicator(const CommunicatorOptions& options, TransportKind transport) = 0;
  /// Why the library cannot do this itself; empty: it can.
  [[nodiscard]] virtual std::string why_not(DataType type, std::int64_t count) const = 0;
  /// The library's own collective. In place: AllReduce with `in` == `out`; ReduceScatter with `in` == `out` (the result
  /// is at the front of the input); AllGather with `in` == this rank's block of `out`.
  virtual void native(const CollectiveCall& call) = 0;
  /// The ranks given, in that order. Collective between them alone; null for the others.
  virtual std::unique_ptr<MpiGroup> group(const std::vector<int>& ranks) = 0;
  /// Sends `bytes` to another rank and receives as many from it.
  virtual void exchange(int partner, const void* in, void* out, std::int64_t bytes) = 0;
  /// The host of every rank: numbers from 0 in the order of their first ranks. GAR_FAKE_HOSTS counts. Collective.
  virtual std::vector<int> hosts() = 0;
  /// Ends all ranks without waiting for them.
  virtual void abort(int code) = 0;
};

/// The MPI that this program is built with; empty: none.
std::optional<MpiLibrary> built_with();
/// MPI_Init. Throws std::runtime_error in a program that is built without.
std::unique_ptr<MpiSession> start_mpi();

}  // namespace gar::measure
