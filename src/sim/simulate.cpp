#include "gar/simulate.hpp"

#include <fmt/format.h>

#include <cmath>

#include "gar/errors.hpp"
#include "sim/engine.hpp"
#include "sim/flow_world.hpp"
#include "sim/network.hpp"
#include "sim/stages.hpp"

namespace gar {

namespace {

void check(const Plan& plan, const Topology& topology, double size_floats) {
  if (plan.num_ranks != topology.num_servers()) {
    throw PlanError(fmt::format("the plan is for {} ranks, but {} has {} servers; take a plan that was made for it",
                                plan.num_ranks, topology.name(), topology.num_servers()));
  }
  if (!(size_floats >= 0) || !std::isfinite(size_floats)) {
    throw InvalidArgument(fmt::format("a vector of {} floats is not accepted; 0 and more is", size_floats));
  }
}

}  // namespace

Simulation simulate(const Plan& plan, const Topology& topology, double size_floats, const SimulationOptions& options) {
  check(plan, topology, size_floats);
  const PlanIndex index(plan);
  const sim::Network network(topology, options);
  const sim::StageTable stages(index);
  const sim::Job job{network,          stages, options, size_floats / static_cast<double>(plan.num_chunks),
                     plan.num_chunks,  index.num_steps()};
  if (plan.num_ranks == 1) return {};
  sim::FlowWorld world(network, index);
  sim::Engine<sim::FlowWorld> engine(world, job);
  Simulation out = engine.run();
  out.engine = SimulationEngine::kFlows;
  return out;
}

}  // namespace gar
