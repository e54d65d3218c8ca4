// The critical path of a simulation, condensed for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gar/simulate.hpp"

namespace gar {

/// Some hops of the critical path that belong to one stage.
struct PathPart {
  std::size_t stage = 0;         ///< index in Simulation::stages
  std::int64_t num_hops = 0;     ///< hops in this part
  std::int64_t from = 0;         ///< the rank that sent first
  std::int64_t rank = 0;         ///< the rank that was reached last
  std::int64_t first_chunk = 0;  ///< lowest chunk number of its hops
  std::int64_t last_chunk = 0;   ///< highest chunk number of its hops
  std::int64_t first_step = 0;   ///< lowest step number of its hops
  std::int64_t last_step = 0;    ///< highest step number of its hops
  double begin = 0;              ///< seconds: when its first hop begins
  double end = 0;                ///< seconds: when its last hop ends
  Terms terms;                   ///< seconds per term, all hops together
  bool has_message = false;      ///< the path waited for a message
  LinkId link;                   ///< what limited most of the time
  std::int64_t num_links = 0;    ///< different links that limited its messages
};

/// Index of the stage that a step belongs to; stages.size() when no stage has it.
std::size_t stage_of_step(const std::vector<StageUse>& stages, std::int64_t step);

/// One part for every hop.
std::vector<PathPart> path_hops(const Simulation& simulation);
/// Consecutive hops of one stage become one part.
std::vector<PathPart> path_parts(const Simulation& simulation);
/// All hops of one stage become one part, in the order of the stages; begin and end tell first and last only.
std::vector<PathPart> path_by_stage(const Simulation& simulation);

}  // namespace gar
