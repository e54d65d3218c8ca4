// What a benchmark measures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gar/data_type.hpp"
#include "gar/measure/cuda_session.hpp"
#include "gar/measure/launch.hpp"
#include "gar/plan.hpp"
#include "gar/profile.hpp"
#include "gar/topology.hpp"

namespace gar::measure {

/// What carries the messages between the ranks.
enum class BenchTransport { kAuto, kThreads, kShm, kMpi, kCudaIpc, kNccl };
/// "auto", "cuda-ipc".
std::string_view word(BenchTransport transport);
/// What carries the messages of plans on GPUs for that transport.
CudaPath path_of(BenchTransport transport);

/// One of the algorithms that are compared.
struct BenchEntry {
  std::string name;              ///< as in --algo
  std::string algorithm;         ///< for CommunicatorOptions; empty: the communicator chooses
  bool is_native = false;        ///< the library's own collective: MPI's, or NCCL's
  bool is_plan = false;          ///< the plan of --plan
  bool is_reproducible = false;  ///< with CommunicatorOptions::reproducible
  bool operator==(const BenchEntry&) const = default;
};
/// "ring", "ring, reproducible".
std::string describe(const BenchEntry& entry);

/// What is reduced, and how.
struct BenchCase {
  DataType type = DataType::kFloat32;  ///< element type
  ReduceOp op = ReduceOp::kSum;        ///< operator
  bool operator==(const BenchCase&) const = default;
};

/// What is measured, how often, and between which ranks.
struct BenchConfig {
  std::vector<std::int64_t> sizes;                   ///< bytes, as asked for
  std::int64_t iterations = 20;                      ///< timed iterations
  std::int64_t warmup = 5;                           ///< iterations before the timed ones
  std::int64_t batch = 0;                            ///< operations per iteration; 0: by size
  bool check = true;                                 ///< compare every result with the exact one
  bool in_place = false;                             ///< input and output are the same memory
  bool reproducible = false;                         ///< with CommunicatorOptions::reproducible
  std::vector<BenchCase> cases;                      ///< every one of them is measured
  Collective collective = Collective::kAllReduce;    ///< which collective
  Device device = Device::kCpu;                      ///< whose memory the vectors are in
  BenchTransport transport = BenchTransport::kAuto;  ///< what carries the messages
  std::vector<BenchEntry> entries;                   ///< what is compared
  double timeout_s = 30;                             ///< of the communicators
  std::optional<int> local;  ///< number of ranks to start on this host; empty: as many as a job has, or one per core
  std::optional<MpiLibrary> mpi;     ///< start them with this MPI
  std::optional<Plan> plan;          ///< measure this plan as well
  std::optional<Topology> topology;  ///< the network, one server per rank; empty: measured by the communicators
  std::optional<Profile> profile;    ///< where the topology's parameters come from
  std::string json_file;             ///< write the results to this file as well; empty: do not
  /// True when one of the entries is the library's own collective.
  [[nodiscard]] bool has_native() const;
};

/// A size of the sweep in elements.
struct BenchSize {
  std::int64_t count = 0;  ///< elements: of the vector, or of a rank's block (ReduceScatter, AllGather)
  std::int64_t total = 0;  ///< elements of the whole vector
  std::int64_t bytes = 0;  ///< of the whole vector
  bool operator==(const BenchSize&) const = default;
};
/// A size in bytes as elements, rounded down to whole elements (and whole blocks).
BenchSize bench_size(std::int64_t bytes, DataType type, Collective collective, int num_ranks);

/// Operations that one timed iteration makes back to back: many for small vectors, so that the moment in which the
/// ranks start weighs little, one from 256 KiB.
std::int64_t batch_of(const BenchConfig& config, std::int64_t bytes);

}  // namespace gar::measure
