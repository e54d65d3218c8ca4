// How an operation is cut into chunks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/program.hpp"
#include "runtime/transport.hpp"

namespace gar {

/// A plan with what is derived from it. Not movable: the index refers to the plan.
struct IndexedPlan {
  explicit IndexedPlan(Plan p);
  const Plan plan;
  const PlanIndex index;
  const std::uint64_t fingerprint;  ///< of everything that the plan says
  const std::int64_t fan_in;        ///< messages that a rank gets in a step, at most
};

/// One rank's chunk programs for vectors of one length.
struct Schedule {
  std::shared_ptr<const IndexedPlan> plan;         ///< null: a movement (runtime/movement.hpp)
  Collective collective = Collective::kAllReduce;  ///< what is read where, and written
  std::int64_t num_blocks = 1;
  std::int64_t block_count = 0;  ///< elements of a block of the whole vector
  std::int64_t num_chunks = 1;
  std::int64_t chunk_block_count = 0;  ///< elements of a block in every chunk but the last
  std::int64_t element_size = 1;
  ChunkProgram full;  ///< of every chunk but the last
  ChunkProgram last;
  std::vector<ChunkProgram> each;       ///< instead of these two, where all chunks differ
  std::int64_t slot_scratch_bytes = 0;  ///< what a chunk reduces in, where that is not the user's output
  std::uint64_t fingerprint = 0;

  [[nodiscard]] const ChunkProgram& program(std::int64_t chunk) const {
    if (!each.empty()) return each[static_cast<std::size_t>(chunk)];
    return chunk + 1 < num_chunks ? full : last;
  }
};

/// Cuts vectors of `count` elements (in a block, for ReduceScatter and AllGather) as the plan and the transport want
/// it. All ranks come to the same result. Throws PlanError when the plan needs more staging space than there is.
Schedule make_schedule(std::shared_ptr<const IndexedPlan> plan, int rank, std::int64_t count, std::int64_t element_size,
                       const TransportLimits& limits);

/// What a ReduceScatter reduces in, and a rank in the middle of a reduction to one rank, all slots together; 0 for the
/// others.
std::int64_t scratch_bytes(const Schedule& schedule, const TransportLimits& limits);

}  // namespace gar
