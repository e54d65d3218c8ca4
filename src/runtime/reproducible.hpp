// AllReduce and ReduceScatter whose bits follow from the values alone: not from their order, the plan, the transport,
// the number of ranks (ranks that contribute zeros, or ones to a product, change nothing) or an element's place in the
// vector.
#pragma once

#include <cstdint>
#include <functional>

#include "gar/communicator.hpp"

namespace gar {

/// What the reproducible operations are made of: collectives of the same ranks, whose AllReduce works in place and
/// whose min and max are those of gar::reduce. Every rank makes the same calls.
struct PlainCollectives {
  int rank = 0;
  int size = 1;
  std::function<void(const CollectiveCall& call)> run;
  /// Vectors are processed in parts that need about this much memory.
  std::int64_t window_bytes = std::int64_t{4} << 20;
};

/// Ranks that a reproducible sum has room for.
inline constexpr std::int64_t kMaxReproducibleRanks = std::int64_t{1} << 20;

/// Does the mode do anything beyond the plain operation? (Floats: yes. Integers are exact as they are.)
bool changes_bits(DataType type, ReduceOp op);

/// As Communicator::run, for AllReduce and ReduceScatter.
void run_reproducible(const PlainCollectives& plain, const CollectiveCall& call);

}  // namespace gar
