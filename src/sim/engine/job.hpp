// What every part of a run is given: the job, and the timeline that the parts share.
#pragma once

#include <cstdint>
#include <functional>

#include "gar/simulate.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/network.hpp"
#include "sim/stages.hpp"

namespace gar::sim {

/// What is to be simulated, apart from the programs of the ranks, which the world has.
struct Job {
  const Network& network;
  const StageTable& stages;
  const SimulationOptions& options;
  std::function<double()> clock;  ///< real seconds, for the intervals between two calls of options.progress
  double chunk_floats = 0;
  std::int64_t num_chunks = 1;
  std::int64_t num_steps = 0;  ///< of the plan: step numbers are below this
};

/// The present moment and the events to come.
struct Timeline {
  double now = 0;
  EventQueue events;
};

}  // namespace gar::sim
