// Chunks that follow each other through the stages of a plan: what gentree+ predicts for them is not less than the
// simulator finds, but for a few plans that are too long to simulate while planning.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "gar/planner.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"
#include "support/random_topology.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

constexpr double kNotable = 1.02;
constexpr double kTie = 1e-12;

// bench_chunks draws the same trees, and prints the whole distribution.
TEST(Chunks, AreNotPredictedBelowTheSimulation) {
  const int num_cases = test::drawn(4, 30, 500);
  int num_above = 0;
  int num_chunked = 0;
  int num_waiting = 0;  // plans whose price alone is below the simulation
  double largest = 0;
  for (std::uint64_t seed = 1; num_chunked < num_cases; ++seed) {
    std::mt19937_64 random(seed);
    test::RandomTopologyOptions options;
    options.min_servers = 2;
    options.max_servers = 32;
    options.max_levels = 3;
    options.uneven_probability = 0.25 * static_cast<double>(random() % 4);
    options.decades = 0.5;
    options.same_per_level = random() % 2 == 0;
    const Topology topology = test::random_topology(random, options);
    const double size = std::floor(std::pow(10.0, 6 + 3 * static_cast<double>(random() >> 11) * 0x1.0p-53));
    const PlanAnswer answer = plan({.topology = topology, .size_floats = size});
    if (answer.plan.num_chunks == 1) continue;
    ++num_chunked;
    SimulationOptions quick;
    quick.keep_path = false;
    const double ratio = simulate(answer.plan, topology, size, quick).seconds / answer.seconds();
    largest = std::max(largest, ratio);
    num_above += ratio > kNotable ? 1 : 0;
    num_waiting += answer.priced->waiting() > 0 ? 1 : 0;
    PlanRequest by_price{.topology = topology, .size_floats = size};
    by_price.model.simulates = false;
    EXPECT_GE(answer.seconds(), plan(by_price).seconds() * (1 - kTie)) << "seed " << seed;
  }
  RecordProperty("largest", std::to_string(largest));
  RecordProperty("above 2%", num_above);
  EXPECT_LE(num_above, std::max(num_cases / 100, 1));
  if (num_cases >= 30) {
    EXPECT_GT(num_waiting, 0);
  }
}

}  // namespace
}  // namespace gar
