// What a benchmark measures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gar/data_type.hpp"
#include "gar/measure/launch.hpp"
#include "gar/plan.hpp"
#include "gar/profile.hpp"
#include "gar/topology.hpp"

namespace gar::measure {

/// One of the things that are measured in turns.
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

/// What is measured, and on which ranks.
struct BenchConfig : RankOptions {
  std::vector<std::int64_t> sizes;                 ///< bytes, as asked for
  std::int64_t iterations = 20;                    ///< timed iterations of every entry at every size
  std::int64_t warmup = 5;                         ///< iterations before these, which are not timed
  std::int64_t batch = 0;                          ///< operations per iteration; 0: by size
  bool check = true;                               ///< compare the results with exact ones
  bool in_place = false;                           ///< the result replaces the input
  bool reproducible = false;                       ///< measure the reproducible mode, too
  std::vector<BenchCase> cases;                    ///< element types and operators
  Collective collective = Collective::kAllReduce;  ///< which collective
  std::vector<BenchEntry> entries;                 ///< what is measured in turns
  std::optional<Plan> plan;                        ///< of --plan; nothing: none was given
  std::optional<Topology> topology;                ///< one server per rank; nothing: the communicators measure it
  std::optional<Profile> profile;                  ///< where the topology's parameters come from
  std::string json_file;                           ///< the JSON document is written here, too; empty: nowhere
  [[nodiscard]] bool has_native() const;           ///< is the library's own collective among the entries?
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
