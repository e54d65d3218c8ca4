// A communicator for callers that have addresses (gar.torch). Calls are numbers; a call that is started says when it is
// complete by calling a Python function from the communicator's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "ending.hpp"
#include "gar/communicator.hpp"

namespace gar::python {

/// What Python's side calls: collectives as they are, then movements, then the barrier.
inline constexpr int kFirstMovement = 3;
inline constexpr int kBarrier = kFirstMovement + kNumMovements;

/// A call as numbers; `in` and `out` are addresses.
struct NumberedCall {
  int what = 0;
  std::uintptr_t in = 0;
  std::uintptr_t out = 0;
  std::int64_t count = 0;
  int type = 0;
  int op = 0;
  int root = 0;
  std::vector<std::int64_t> in_counts;
  std::vector<std::int64_t> out_counts;
};

/// Used without Python's lock, where nothing else is said.
class Collectives {
 public:
  explicit Collectives(Communicator made);
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;
  /// With the lock or without it.
  ~Collectives();  // NOLINT(bugprone-exception-escape): only where Python itself is broken

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// Calls that were started and are not complete.
  [[nodiscard]] int num_pending() const { return *num_pending_; }

  /// In this thread, when what was started is complete.
  void run(const NumberedCall& call);
  void start(const NumberedCall& call, std::shared_ptr<Callback> callback);

  /// Completes what is under way.
  void close();
  /// The process ends. What is under way, also in other threads, ends with it; the others see that this rank has died.
  void abandon();
  [[nodiscard]] bool is_closed() const { return state_->communicator == nullptr; }

 private:
  struct State {
    std::mutex mutex;
    std::unique_ptr<Communicator> communicator;
  };
  Communicator& checked();

  int rank_;
  int size_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::shared_ptr<std::atomic<int>> num_pending_ = std::make_shared<std::atomic<int>>(0);
};

/// The memory at an address that Python has told.
void* memory_at(std::uintptr_t address);

}  // namespace gar::python
