// The paper's Algorithm 1, block by block: which server holds which block before and after every switch. GenTree itself
// (gar/planner.hpp) cuts intervals instead; this is for comparing the two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gar/topology.hpp"

namespace gar {

/// The largest tree whose blocks are dealt out one by one.
inline constexpr std::int64_t kMaxBasicServers = 4096;

/// Blocks by server, in the order in which a server got them; servers from the switch's first.
using BlockPlacement = std::vector<std::vector<std::int32_t>>;

/// What the servers below one switch are responsible for.
struct BasicSubPlan {
  std::string name;               ///< of the switch, "rack0"
  std::int64_t first_rank = 0;    ///< the first server below it
  BlockPlacement initial_place;   ///< blocks that each server holds before the exchange at this switch
  BlockPlacement final_place;     ///< blocks that each server holds after the exchange
  std::int64_t num_repaired = 0;  ///< blocks that the greedy dealing of the paper left without a server
};

/// The vector in as many blocks as the tree has servers; every switch once, children before parents. Throws
/// InvalidArgument above kMaxBasicServers servers.
std::vector<BasicSubPlan> generate_basic_plan(const Topology& topology);

}  // namespace gar
