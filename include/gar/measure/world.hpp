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

namespace gar::measure {

class BenchWorld {
 public:
  BenchWorld() = default;
  BenchWorld(const BenchWorld&) = delete;
  BenchWorld& operator=(const BenchWorld&) = delete;
  virtual ~BenchWorld() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// "4 processes of this host".
  [[nodiscard]] virtual std::string words() const = 0;
  /// Collective: all ranks make the same calls in the same order.
  virtual Communicator communicator(const CommunicatorOptions& options) = 0;
  /// Where `native` runs; nothing: there is none.
  [[nodiscard]] virtual MpiSession* mpi() { return nullptr; }
  /// The GPU that vectors are on; nothing: host memory.
  [[nodiscard]] virtual CudaSession* cuda() { return nullptr; }
  /// On GPUs: `native` as a communicator. Collective.
  virtual std::optional<Communicator> native_communicator(const CommunicatorOptions& /*options*/) {
    return std::nullopt;
  }
  /// Has somebody asked this rank to stop?
  [[nodiscard]] virtual bool is_stopping() const = 0;
};

/// Some ranks of a world, seen from one of them.
class BenchGroup {
 public:
  BenchGroup() = default;
  BenchGroup(const BenchGroup&) = delete;
  BenchGroup& operator=(const BenchGroup&) = delete;
  virtual ~BenchGroup() = default;
  virtual Communicator communicator(const CommunicatorOptions& options) = 0;
  /// Nothing: no MPI connects them.
  [[nodiscard]] virtual MpiGroup* mpi() { return nullptr; }
};

/// A world that can be divided.
class GroupWorld : public BenchWorld {
 public:
  /// All ranks of the world call this; those outside get nothing.
  virtual std::unique_ptr<BenchGroup> group(const std::vector<int>& ranks) = 0;
};

/// Makes communicators between threads: the first thread that asks for one makes those of all.
class ThreadHall {
 public:
  explicit ThreadHall(int size) : size_(size), num_taken_(static_cast<std::size_t>(size), 0) {}
  [[nodiscard]] int size() const { return size_; }
  Communicator take(int rank, const CommunicatorOptions& options);

 private:
  int size_;
  std::mutex mutex_;
  std::vector<std::vector<Communicator>> made_;
  std::vector<std::size_t> num_taken_;
};

std::unique_ptr<BenchWorld> thread_world(ThreadHall& hall, int rank, std::function<bool()> is_stopping);
std::unique_ptr<GroupWorld> process_world(const LocalRank& rank);
/// Processes whose vectors are on GPUs.
std::unique_ptr<GroupWorld> cuda_world(const LocalRank& rank, CudaSession& session, CudaPath path);
std::unique_ptr<GroupWorld> mpi_world(MpiSession& session, BenchTransport transport, std::function<bool()> is_stopping);

/// Ranks that share a GPU with others, or 1.
int ranks_per_gpu(const CudaSession& session, int num_ranks);

/// What ranks tell each other beside what is measured.
class Control {
 public:
  Control(BenchWorld& world, double timeout_s);
  void barrier() { communicator_.barrier(); }
  /// All ranks' values, rank by rank.
  std::vector<double> gather(std::span<const double> values);
  /// The largest of all ranks, value by value.
  std::vector<double> largest(std::span<const double> values);
  double sum(double value);

 private:
  Communicator communicator_;
};

}  // namespace gar::measure
