// The shadow of one of the program's communicators: a communicator of the runtime between the same ranks.
//
// The runtime's communicator runs the operations one after the other, in the order of the calls: a blocking one in the
// caller's thread, unless others are under way, a non-blocking one in its own thread. When a non-blocking operation is
// complete, the shadow completes the generalized request that the program waits for.
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "apps/preload/check.hpp"
#include "apps/preload/operation.hpp"
#include "gar/communicator.hpp"
#include "runtime/transports/mpi/polite.hpp"

namespace gar::preload {

/// Told about every operation that has run, by the thread that has run it.
struct Observer {
  std::function<void(const Operation&, const PlanReport&, double seconds)> on_run;  ///< may be empty
  std::function<void(double seconds)> on_time;                                      ///< the same, in short
  std::function<void(const Operation&, const Turns&)> on_turns;  ///< may be empty: calls are not run in turns
  std::int64_t most_checked_bytes = 0;                           ///< a call with more in its copies is not compared
  std::function<void(const Operation&, const Difference&)> on_difference;
  std::function<void()> on_check;                    ///< before a comparison
  std::function<void(const std::string&)> on_error;  ///< of a non-blocking operation
};

class Shadow {
 public:
  /// `check_comm`: a duplicate of the program's communicator for the comparisons, or empty.
  Shadow(Communicator communicator, OwnedComm check_comm, Observer observer);

  [[nodiscard]] int size() const { return communicator_.size(); }
  /// What was measured (docs/runtime.md).
  [[nodiscard]] Decisions decisions() const { return communicator_.decisions(); }
  /// Are its operations unobserved?
  [[nodiscard]] bool is_unobserved() const {
    return !observer_.on_run && !observer_.on_time && check_comm_.get() == MPI_COMM_NULL;
  }
  /// A blocking call that is not observed.
  void run_unobserved(const CollectiveCall& call);
  /// Throws what the runtime throws.
  void run(const Operation& operation);
  /// MPI must allow several threads. Throws TransportError.
  void start(const Operation& operation, MPI_Request* request);

 private:
  using Clock = std::chrono::steady_clock;
  /// The state of a generalized request, which MPICH may forget before it is complete.
  struct Pending {
    MPI_Request request = MPI_REQUEST_NULL;
    int error = MPI_SUCCESS;
  };
  /// An operation under way.
  struct Job {
    Operation operation;
    std::optional<Check> check;
    const PlanReport* report = nullptr;  ///< null: not wanted
    Clock::time_point begin;
    std::shared_ptr<Pending> pending;  ///< null: a blocking call
  };

  static int query(void* state, MPI_Status* status);
  static int release(void* state);
  static int cancel(void* state, int is_complete);
  [[nodiscard]] bool is_checked(const Operation& operation) const;
  void prepare(Job& job);
  void observe(Job& job);
  void complete(Job& job, std::exception_ptr error);

  OwnedComm check_comm_;
  Observer observer_;
  /// The last part is the algorithm, which changes while a size is measured. Used by calls of the program only.
  std::map<std::tuple<Collective, std::int64_t, DataType, std::string>, PlanReport> reports_;
  bool is_ours_first_ = true;                    ///< of the calls that are made in turns; the same on all ranks
  std::atomic<Clock::time_point> idle_since_{};  ///< when the last non-blocking operation was over
  Communicator communicator_;                    ///< the first to go: it completes what is under way
};

}  // namespace gar::preload
