// The ranks of a benchmark, seen from one of them: threads of this process, processes of this host, or an MPI job.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "gar/measure/bench_config.hpp"
#include "gar/measure/cuda_session.hpp"
#include "gar/measure/launch.hpp"
#include "gar/measure/mpi_session.hpp"

/// Measuring on real ranks: the worlds they live in, how they are started, benchmarks, and the measurements of a fit.
namespace gar::measure {

/// The ranks that measure together, seen from one of them.
class BenchWorld {
 public:
  BenchWorld() = default;
  BenchWorld(const BenchWorld&) = delete;
  BenchWorld& operator=(const BenchWorld&) = delete;
  virtual ~BenchWorld() = default;

  /// This rank, from 0 to size() - 1.
  [[nodiscard]] virtual int rank() const = 0;
  /// Number of ranks.
  [[nodiscard]] virtual int size() const = 0;
  /// "4 processes of this host".
  [[nodiscard]] virtual std::string words() const = 0;
  /// Collective: all ranks make the same calls in the same order.
  virtual Communicator communicator(const CommunicatorOptions& options) = 0;
  /// The MPI job that the ranks belong to; null: none.
  [[nodiscard]] virtual MpiSession* mpi() { return nullptr; }
  /// The GPU that vectors are on; null: they are in host memory.
  [[nodiscard]] virtual CudaSession* cuda() { return nullptr; }
  /// On GPUs: `native` as a communicator. Collective.
  virtual std::optional<Communicator> native_communicator(const CommunicatorOptions& /*options*/) {
    return std::nullopt;
  }
  /// True when this rank has been asked to stop (Ctrl-C).
  [[nodiscard]] virtual bool is_stopping() const = 0;
};

/// Some ranks of a world, seen from one of them.
class BenchGroup {
 public:
  BenchGroup() = default;
  BenchGroup(const BenchGroup&) = delete;
  BenchGroup& operator=(const BenchGroup&) = delete;
  virtual ~BenchGroup() = default;
  /// A communicator between these ranks. Collective.
  virtual Communicator communicator(const CommunicatorOptions& options) = 0;
  /// The same ranks as a group of the MPI job; null: no MPI connects them.
  [[nodiscard]] virtual MpiGroup* mpi() { return nullptr; }
};

/// A world that can be divided.
class GroupWorld : public BenchWorld {
 public:
  /// A part of the world. All ranks of the world call this; those outside of the part get null.
  virtual std::unique_ptr<BenchGroup> group(const std::vector<int>& ranks) = 0;
};

/// Makes communicators between threads: the first thread that asks for one makes those of all.
class ThreadHall {
 public:
  /// For `size` threads.
  explicit ThreadHall(int size) : size_(size), num_taken_(static_cast<std::size_t>(size), 0) {}
  /// Number of threads.
  [[nodiscard]] int size() const { return size_; }
  /// The communicator of one thread; all threads call it, in the same order.
  Communicator take(int rank, const CommunicatorOptions& options);

 private:
  int size_;
  std::mutex mutex_;
  std::vector<std::vector<Communicator>> made_;
  std::vector<std::size_t> num_taken_;
};

/// A world of threads; every thread has its own, around one hall.
std::unique_ptr<BenchWorld> thread_world(ThreadHall& hall, int rank, std::function<bool()> is_stopping);
/// A world of the processes that run_local_processes has started.
std::unique_ptr<GroupWorld> process_world(const LocalRank& rank);
/// Processes whose vectors are on GPUs.
std::unique_ptr<GroupWorld> cuda_world(const LocalRank& rank, CudaSession& session, CudaPath path);
/// A world of the ranks of an MPI job.
std::unique_ptr<GroupWorld> mpi_world(MpiSession& session, BenchTransport transport, std::function<bool()> is_stopping);

/// How many ranks share a GPU; 1 when none is shared.
int ranks_per_gpu(const CudaSession& session, int num_ranks);

/// What ranks tell each other in addition to what is measured.
class Control {
 public:
  /// Collective: makes a communicator of its own.
  Control(BenchWorld& world, double timeout_s);
  /// Returns when every rank has called it.
  void barrier() { communicator_.barrier(); }
  /// All ranks' values, rank by rank.
  std::vector<double> gather(std::span<const double> values);
  /// The largest of all ranks, value by value.
  std::vector<double> largest(std::span<const double> values);
  /// The sum over all ranks.
  double sum(double value);

 private:
  Communicator communicator_;
};

}  // namespace gar::measure
