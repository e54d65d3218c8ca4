// What stands beside one of the program's communicators: a communicator of the runtime on a duplicate of it.
//
// Operations run one after the other, in the order of the calls. A blocking one runs in the caller's thread, unless
// others are under way; non-blocking ones run in a thread of their own, which completes a generalized request.
#pragma once

#include <mpi.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>

#include "apps/preload/check.hpp"
#include "apps/preload/operation.hpp"
#include "gar/communicator.hpp"

namespace gar::preload {

/// Told about every operation that has run.
struct Observer {
  std::function<void(const Operation&, const PlanReport&, double seconds)> on_run;  ///< may be empty
  std::function<void(const Operation&, const Difference&)> on_difference;
  std::function<void(const Operation&)> on_result;   ///< before the comparison
  std::function<void(const std::string&)> on_error;  ///< of a non-blocking operation
};

class Shadow {
 public:
  /// `check_comm`: MPI_COMM_NULL, or a duplicate for the comparisons, which belongs to the shadow from now on.
  Shadow(Communicator communicator, MPI_Comm check_comm, Observer observer);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  [[nodiscard]] int size() const { return communicator_.size(); }
  /// Throws what the runtime throws.
  void run(const Operation& operation);
  /// MPI must allow several threads. Throws TransportError.
  void start(const Operation& operation, MPI_Request* request);

 private:
  /// The state of a generalized request, which MPICH may forget before it is complete.
  struct Pending {
    MPI_Request request = MPI_REQUEST_NULL;
    int error = MPI_SUCCESS;
  };
  struct Job {
    Operation operation;
    std::optional<Check> check;
    std::shared_ptr<Pending> pending;  ///< null: a blocking call waits for it
    bool* is_done = nullptr;
    std::exception_ptr* error = nullptr;
  };

  static int query(void* state, MPI_Status* status);
  static int release(void* state);
  static int cancel(void* state, int is_complete);
  void execute(const Operation& operation, std::optional<Check>& check);
  const PlanReport& report_of(const Operation& operation);
  void work();
  void finish(Job& job, std::exception_ptr error);

  Communicator communicator_;
  MPI_Comm check_comm_;
  Observer observer_;
  std::map<std::tuple<Collective, std::int64_t, DataType>, PlanReport> reports_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;  ///< the first one is running
  std::thread worker_;
  bool is_ending_ = false;
};

}  // namespace gar::preload
