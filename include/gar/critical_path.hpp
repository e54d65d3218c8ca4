// The critical path of a simulation, condensed for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gar/simulate.hpp"

namespace gar {

/// Some hops of the critical path that belong to one stage.
struct PathPart {
  std::size_t stage = 0;         ///< index in Simulation::stages
  std::int64_t num_hops = 0;     ///< hops that were merged into this part
  std::int64_t from = 0;         ///< the rank that sent first
  std::int64_t rank = 0;         ///< the rank that was reached last
  std::int64_t first_chunk = 0;  ///< the first chunk that the hops belong to
  std::int64_t last_chunk = 0;   ///< the last one
  std::int64_t first_step = 0;   ///< the first step that the hops belong to
  std::int64_t last_step = 0;    ///< the last one
  double begin = 0;              ///< seconds from the start of the simulation
  double end = 0;                ///< seconds from the start of the simulation
  Terms terms;                   ///< what end - begin was spent on
  bool has_message = false;      ///< a message was waited for
  LinkId link;                   ///< what limited most of the time
  std::int64_t num_links = 0;    ///< distinct links that limited one of the hops
};

/// Index of the stage that a step belongs to; stages.size() when there is none.
std::size_t stage_of_step(const std::vector<StageUse>& stages, std::int64_t step);

/// One part for every hop.
std::vector<PathPart> path_hops(const Simulation& simulation);
/// Consecutive hops of one stage become one part.
std::vector<PathPart> path_parts(const Simulation& simulation);
/// All hops of one stage become one part, in the order of the stages; begin and end tell first and last only.
std::vector<PathPart> path_by_stage(const Simulation& simulation);

/// What the time was spent on: "533 ms on the uplink of server0, 20% of it incast; 19.7 ms of latency".
std::string waiting_words(const Topology& topology, const PathPart& part);

}  // namespace gar
