// What one rank sends to another keeps its order. Of a ring's ReduceScatter or AllGather every link direction then
// carries the flows of one connection, one after the other and as fast as if they were alone, so that starting a step
// earlier cannot make anything later: it takes no longer than behind a barrier, whatever the tree and however uneven
// its servers. That does not hold for the two together: the AllGather runs the other way round, and where a rank is
// ahead its flows share links with those of the ReduceScatter.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include "gar/algorithms.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"
#include "support/naive_simulator.hpp"
#include "support/random_simulation.hpp"
#include "support/random_topology.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

constexpr int kNumCases = test::in_slow_build<int>(40, 600);

test::SimulationCase draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  test::RandomTopologyOptions shape;
  shape.min_servers = 2;
  shape.max_servers = 16;
  shape.max_levels = 4;
  shape.uneven_probability = 0.8;
  shape.decades = 1;
  shape.same_per_level = false;
  Topology topology = test::random_topology(random, shape);
  // One sender per link: incast is always the same.
  topology = seed % 2 == 0 ? test::with_strong_incast(random, topology)
                           : test::changed(topology, [](Node& node) { node.uplink.epsilon = 0; });
  const double size = test::log_uniform(random, 1e4, 1e9);
  const Plan both = ring(topology.num_servers());
  Plan plan = test::chance(random, 0.5) ? as_reduce_scatter(both) : as_all_gather(both);
  SimulationOptions options;
  test::add_conditions(random, topology, 4, options);
  return {std::move(topology), std::move(plan), size, options};
}

TEST(Order, HalfARingTakesNoLongerThanBehindABarrier) {
  int num_faster = 0;
  for (std::uint64_t seed = 0; seed < kNumCases; ++seed) {
    const test::SimulationCase c = draw(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.words());
    SimulationOptions options = c.options;
    options.barrier = true;
    const double most = (1 + 1e-9) * simulate(c.plan, c.topology, c.size, options).seconds;
    options.barrier = false;
    EXPECT_LE(test::simulate_naively(c.plan, c.topology, c.size, options).seconds, most);
    for (const SimulationEngine engine : {SimulationEngine::kFlows, SimulationEngine::kClasses}) {
      options.engine = engine;
      const double seconds = simulate(c.plan, c.topology, c.size, options).seconds;
      EXPECT_LE(seconds, most);
      num_faster += seconds < 0.99 * most;
    }
    if (HasFailure()) return;  // one case is enough
  }
  EXPECT_GT(num_faster, kNumCases / 4);
}

}  // namespace
}  // namespace gar
