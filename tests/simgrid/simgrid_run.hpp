// A plan on a network as SimGrid runs it: an actor per rank and chunk, one per message, a one-way link per direction.
#pragma once

#include "gar/plan.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"

namespace gar::test {

/// Simulated seconds of a plan. Honours the barrier, model, degree, slow_servers and links of the
/// options. Runs in a process of its own (SimGrid has one engine per process); throws std::runtime_error when that
/// fails or takes more than a minute of processor time.
double simgrid_seconds(const Plan& plan, const Topology& topology, double size_floats,
                       const SimulationOptions& options);

}  // namespace gar::test
