// What a communicator does beside AllReduce, ReduceScatter and AllGather: operations that no plan is made for.
//
// They run over the same transports, in the order of the same calls, and with the same checks. See docs/runtime.md.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gar/data_type.hpp"
#include "gar/language.hpp"
#include "gar/reduction.hpp"

namespace gar {

/// What is moved.
enum class Movement : std::uint8_t {
  kBroadcast,  ///< the root's vector to every rank
  kReduce,     ///< the vectors of all ranks, combined, to the root
  kScatter,    ///< block r of the root's vector to rank r
  kGather,     ///< a block of every rank to the root, in the order of ranks
  kAllToAll,   ///< block s of rank r to rank s, as its block r
  kTransfer,   ///< between two ranks: the root's vector to the other one
};
/// The number of movements.
inline constexpr int kNumMovements = 6;
/// "broadcast", "reduce", "scatter", "gather", "all_to_all" or "transfer".
std::string_view to_string(Movement movement);

/// One such operation as one rank calls it. Blocks of a vector follow each other in the order of ranks.
struct MovementCall {
  Movement movement = Movement::kBroadcast;  ///< what is moved
  /// What this rank gives; null where it gives nothing (kScatter beside the root, a transfer's receiver). In a
  /// broadcast it is where `out` is.
  const void* in = nullptr;
  /// What this rank gets; null where it gets nothing (kReduce and kGather beside the root, a transfer's sender).
  void* out = nullptr;
  std::int64_t count = 0;              ///< elements: of the vector, or of one block for kScatter, kGather and kAllToAll
  DataType type = DataType::kFloat32;  ///< of the elements
  ReduceOp op = ReduceOp::kSum;        ///< of kReduce
  int root = 0;                        ///< where there is one
  /// kAllToAll with blocks of different lengths: elements for each rank, and from each. Empty: `count` in each block.
  std::vector<std::int64_t> in_counts = {};
  std::vector<std::int64_t> out_counts = {};  ///< what the others have in `in_counts` for this rank
};

}  // namespace gar
