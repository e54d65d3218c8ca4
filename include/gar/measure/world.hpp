// The ranks of a measurement, seen from one of them: threads of this process, processes of this host, ranks of an MPI
// job, or processes whose vectors are on GPUs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gar/communicator.hpp"
#include "gar/measure/cuda_session.hpp"
#include "gar/measure/launch.hpp"
#include "gar/measure/mpi_session.hpp"
#include "gar/measure/transport_kind.hpp"
#include "gar/store.hpp"

/// Measuring on real ranks: the worlds they live in, how they are started, benchmarks, and the measurements of a fit.
namespace gar::measure {

/// Some ranks of a world, seen from one of them.
class Group {
 public:
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  virtual ~Group() = default;
  /// Collective between the ranks of the group.
  virtual Communicator communicator(const CommunicatorOptions& options) = 0;
  /// Null: no MPI connects them.
  [[nodiscard]] virtual MpiGroup* mpi() { return nullptr; }
  /// All but the first send `bytes` to the first at the same time, whose `out` has room for those of all ranks.
  /// Collective. Throws TransportError where ranks send no messages.
  virtual void gather_to_first(const void* in, void* out, std::int64_t bytes);
};

class Control;

/// All ranks of a measurement, seen from one of them.
class World {
 public:
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  virtual ~World() = default;

  /// This rank, from 0 to size() - 1.
  [[nodiscard]] virtual int rank() const = 0;
  /// Number of ranks.
  [[nodiscard]] virtual int size() const = 0;
  /// "4 processes of this host".
  [[nodiscard]] virtual std::string words() const = 0;
  /// Collective: all ranks make the same calls in the same order.
  virtual Communicator communicator(const CommunicatorOptions& options) = 0;
  /// The ranks given, in that order. All ranks of the world call this; those outside get nothing.
  virtual std::unique_ptr<Group> group(const std::vector<int>& ranks) = 0;
  /// The host of every rank: numbers from 0 in the order of their first ranks. GAR_FAKE_HOSTS counts. Collective.
  virtual std::vector<int> hosts(Control& control);
  /// Sends `bytes` to another rank and receives as many from it; `out` has room for twice as many. Throws
  /// TransportError where ranks send no messages.
  virtual void exchange(int partner, const void* in, void* out, std::int64_t bytes);
  /// Where `native` runs; null: there is no MPI.
  [[nodiscard]] virtual MpiSession* mpi() { return nullptr; }
  /// The GPU that vectors are on; null: they are in host memory.
  [[nodiscard]] virtual CudaSession* cuda() { return nullptr; }
  /// On GPUs: `native` as a communicator. Collective.
  virtual std::optional<Communicator> native_communicator(const CommunicatorOptions& /*options*/) {
    return std::nullopt;
  }
  /// Has this rank been asked to stop?
  [[nodiscard]] virtual bool is_stopping() const = 0;
};

/// Communicators between threads: the first thread that asks for one makes those of all.
class ThreadCommunicators {
 public:
  /// For `size` threads.
  explicit ThreadCommunicators(int size) : size_(size), num_taken_(static_cast<std::size_t>(size), 0) {}
  /// Number of threads.
  [[nodiscard]] int size() const { return size_; }
  /// The next communicator of a rank: as many calls, as many communicators.
  Communicator take(int rank, const CommunicatorOptions& options);
  /// Those of the `number`-th group of threads, which has `size` of them; the same for all that ask.
  ThreadCommunicators& group(std::size_t number, int size);

 private:
  int size_;
  std::mutex mutex_;
  std::vector<std::vector<Communicator>> made_;
  std::vector<std::size_t> num_taken_;
  std::vector<std::unique_ptr<ThreadCommunicators>> groups_;
};

/// `communicators` must outlive the world.
std::unique_ptr<World> thread_world(ThreadCommunicators& communicators, int rank, std::function<bool()> is_stopping);
/// Processes of this host, in host memory.
std::unique_ptr<World> process_world(const LocalRank& rank);
/// Processes whose vectors are on GPUs.
std::unique_ptr<World> cuda_world(const LocalRank& rank, CudaSession& session, TransportKind transport);
/// Processes that a store brings together, over TCP (TransportKind::kTcp or kShmTcp). `timeout_s`: a rank that is
/// silent for this long is an error also where the world connects ranks for itself (Group::gather_to_first,
/// World::exchange).
std::unique_ptr<World> tcp_world(const LocalRank& rank, std::unique_ptr<Store> store, TransportKind transport,
                                 double timeout_s);
/// Ranks of an MPI job. The session must outlive the world.
std::unique_ptr<World> mpi_world(MpiSession& session, TransportKind transport, std::function<bool()> is_stopping);

/// How many ranks share a GPU; 1 when none is shared.
int ranks_per_gpu(const CudaSession& session, int num_ranks);

/// What ranks tell each other in addition to what is measured. All functions are collective.
class Control {
 public:
  /// Makes a communicator of its own with this timeout, in seconds.
  Control(World& world, double timeout_s);
  /// No rank returns before every rank has called it.
  void barrier() { communicator_.barrier(); }

  /// All ranks' values, rank by rank. All ranks have as many.
  template <class T>
  std::vector<T> gather(std::span<const T> values) {
    std::vector<T> out(values.size() * static_cast<std::size_t>(communicator_.size()));
    communicator_.all_gather(values, std::span(out));
    return out;
  }
  /// The text of every rank; they may have different lengths.
  std::vector<std::string> gather_texts(std::string_view text);

  /// Value by value over all ranks.
  template <class T>
  std::vector<T> largest(std::vector<T> values) {
    return combined(std::move(values), ReduceOp::kMax);
  }
  /// The sum over all ranks, value by value.
  template <class T>
  std::vector<T> sums(std::vector<T> values) {
    return combined(std::move(values), ReduceOp::kSum);
  }
  /// The largest value of any rank.
  double largest(double value) { return largest(std::vector{value}).front(); }
  /// The largest value of any rank.
  std::int64_t largest(std::int64_t value) { return largest(std::vector{value}).front(); }
  /// The smallest value of any rank.
  double smallest(double value) { return combined(std::vector{value}, ReduceOp::kMin).front(); }
  /// Does it hold for at least one rank?
  bool any(bool value) { return largest(std::int64_t{value ? 1 : 0}) != 0; }

 private:
  template <class T>
  std::vector<T> combined(std::vector<T> values, ReduceOp op) {
    communicator_.all_reduce(std::span(values), op);
    return values;
  }

  Communicator communicator_;
};

}  // namespace gar::measure
