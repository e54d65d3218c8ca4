// simulate(): checks what it is given, chooses the world, and runs it.
#include "gar/simulate.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "sim/alike.hpp"
#include "sim/engine/job.hpp"
#include "sim/engine/run.hpp"
#include "sim/network.hpp"
#include "sim/stages.hpp"
#include "sim/worlds/class_world.hpp"
#include "sim/worlds/flow_world.hpp"
#include "sim/worlds/partition.hpp"

namespace gar {

namespace {

void check(const Plan& plan, const Topology& topology, double size_floats, const SimulationOptions& options) {
  if (plan.num_ranks != topology.num_servers()) {
    throw PlanError(fmt::format("the plan is for {} ranks, but {} has {} servers; take a plan that was made for it",
                                plan.num_ranks, topology.name(), topology.num_servers()));
  }
  if (!(options.tolerance >= 0 && options.tolerance <= kMaxTolerance)) {
    throw InvalidArgument(fmt::format("a tolerance of {}: expected 0 to {:g}", options.tolerance, kMaxTolerance));
  }
  if (!(size_floats >= 0 && size_floats <= kMaxFloats)) {
    throw InvalidArgument(fmt::format("a vector of {} floats: expected 0 to {:g}", size_floats, kMaxFloats));
  }
}

// Classes where they save work: finding them costs some passes over the messages at most.
std::optional<sim::Partition> find_classes(const PlanIndex& index, const sim::Network& network,
                                           const SimulationOptions& options) {
  const bool wants_flows = options.engine != SimulationEngine::kAuto && options.engine != SimulationEngine::kClasses;
  if (wants_flows || options.jitter > 0) return std::nullopt;
  const std::int64_t ranks = network.num_ranks();
  return sim::find_partition(index, network, options.engine == SimulationEngine::kClasses ? ranks : ranks / 2);
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class World>
Simulation run(World world, const sim::Job& job, SimulationEngine engine) {
  Simulation out = sim::Run<World>(world, job).run();
  out.engine = engine;
  require_finite(out.seconds, "the simulated time");
  return out;
}

}  // namespace

Simulation simulate(const Plan& plan, const Topology& given, double size_floats, const SimulationOptions& options) {
  check(plan, given, size_floats, options);
  const PlanIndex index(plan);
  std::optional<Topology> alike;
  // With jitter no two of them are alike anyway.
  if (options.tolerance > 0 && options.jitter <= 0) alike = sim::with_alike_nodes(given, options.tolerance);
  const sim::Network network(alike ? *alike : given, options);
  const sim::StageTable stages(index);
  const sim::Job job{.network = network,
                     .stages = stages,
                     .options = options,
                     .clock = options.clock ? options.clock : steady_seconds,
                     .chunk_floats = size_floats / static_cast<double>(plan.num_chunks),
                     .num_chunks = plan.num_chunks,
                     .num_steps = index.num_steps()};
  if (plan.num_ranks == 1) return {};
  if (const std::optional<sim::Partition> classes = find_classes(index, network, options)) {
    return run(sim::ClassWorld(network, index, *classes), job, SimulationEngine::kClasses);
  }
  return run(sim::FlowWorld(network, index), job, SimulationEngine::kFlows);
}

}  // namespace gar
