// AllReduce and ReduceScatter whose bits follow from the values alone: not from their order, the plan, the transport,
// the number of ranks (ranks that contribute zeros, or ones to a product, change nothing) or an element's place in the
// vector.
#pragma once

#include <cstdint>
#include <functional>

#include "gar/reduction.hpp"

namespace gar {

/// What the reproducible operations are made of. `all_reduce` must work in place, and its min and max be those of
/// gar::reduce. Every rank makes the same calls.
struct PlainCollectives {
  int size = 1;
  std::function<void(const void* in, void* out, std::int64_t count, DataType type, ReduceOp op)> all_reduce;
  std::function<void(const void* in, void* out, std::int64_t block_count, DataType type, ReduceOp op)> reduce_scatter;
  std::function<void(const void* in, void* out, std::int64_t block_count, DataType type)> all_gather;
  /// Vectors are processed in parts that need about so much memory.
  std::int64_t window_bytes = std::int64_t{4} << 20;
};

/// Ranks that a reproducible sum has room for.
inline constexpr std::int64_t kMaxReproducibleRanks = std::int64_t{1} << 20;

/// Does the mode do anything beyond the plain operation? (Floats: yes. Integers are exact as they are.)
bool changes_bits(DataType type, ReduceOp op);

/// As Communicator::all_reduce. `out` may be `in`.
void reproducible_all_reduce(const PlainCollectives& plain, const void* in, void* out, std::int64_t count,
                             DataType type, ReduceOp op);
/// As Communicator::reduce_scatter, on rank `rank`. `out` may be any block of `in`.
void reproducible_reduce_scatter(const PlainCollectives& plain, int rank, const void* in, void* out,
                                 std::int64_t block_count, DataType type, ReduceOp op);

}  // namespace gar
