#include "gar/simulate.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "gar/errors.hpp"
#include "sim/class_world.hpp"
#include "sim/engine.hpp"
#include "sim/flow_world.hpp"
#include "sim/network.hpp"
#include "sim/partition.hpp"
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

// Classes where they save work: finding them costs some passes over the messages at most.
std::optional<sim::Partition> find_classes(const PlanIndex& index, const sim::Network& network,
                                           const SimulationOptions& options) {
  if (options.engine == SimulationEngine::kFlows || options.jitter > 0) return std::nullopt;
  const std::int64_t ranks = network.num_ranks();
  return sim::find_partition(index, network, options.engine == SimulationEngine::kClasses ? ranks : ranks / 2);
}

}  // namespace

Simulation simulate(const Plan& plan, const Topology& topology, double size_floats, const SimulationOptions& options) {
  check(plan, topology, size_floats);
  const PlanIndex index(plan);
  const sim::Network network(topology, options);
  const sim::StageTable stages(index);
  const sim::Job job{network,         stages,           options, size_floats / static_cast<double>(plan.num_chunks),
                     plan.num_chunks, index.num_steps()};
  if (plan.num_ranks == 1) return {};
  if (const std::optional<sim::Partition> classes = find_classes(index, network, options)) {
    sim::ClassWorld world(network, index, *classes);
    Simulation out = sim::Engine<sim::ClassWorld>(world, job).run();
    out.engine = SimulationEngine::kClasses;
    return out;
  }
  sim::FlowWorld world(network, index);
  Simulation out = sim::Engine<sim::FlowWorld>(world, job).run();
  out.engine = SimulationEngine::kFlows;
  return out;
}

}  // namespace gar
