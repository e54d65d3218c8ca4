// A plan on one switch as SimGrid runs it: the peer of the simulator's benchmark.
#pragma once

#include "gar/plan.hpp"
#include "gar/topology.hpp"

namespace gar::bench {

/// kPlain: an actor per rank, detached sends. kTuned: as fast as we could make it. Both are for equal servers and plans
/// in which all ranks do the same things at the same time (cps, hcps, ring).
/// kEager: for servers that differ; messages do not wait for their receivers, nor for those sent to the same rank
/// before, so it is for plans and networks in which none catches up with another. Without incast, as SimGrid counts
/// flows and not senders, and these differ when a rank has started its next step before its messages have arrived.
enum class SimGridDriver { kPlain, kTuned, kEager };

struct SimGridResult {
  double seconds = 0;  ///< simulated
  double flows = 0;
};

/// Takes a star whose servers have the same latency, and a plan of one chunk. SimGrid has one engine per process, so
/// this can be called once.
SimGridResult run_simgrid_on_star(const Plan& plan, const Topology& star, double size_floats, SimGridDriver driver);

}  // namespace gar::bench
