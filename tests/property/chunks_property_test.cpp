// Chunks that follow each other through the stages of a plan, and stages of different ranks that meet in one half of an
// AllReduce: what gentree+ predicts is not less than the simulator finds, but for a few plans that are too long to
// simulate while planning.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include "gar/planner.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"
#include "support/random_topology.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

constexpr double kNotable = 1.02;
constexpr double kTie = 1e-12;

struct Drawn {
  Topology topology;
  double size;
};

// bench_chunks draws the same trees, and prints the whole distribution.
Drawn draw(std::uint64_t seed, double least_exponent) {
  std::mt19937_64 random(seed);
  test::RandomTopologyOptions options;
  options.min_servers = 2;
  options.max_servers = 32;
  options.max_levels = 3;
  options.uneven_probability = 0.25 * static_cast<double>(random() % 4);
  options.decades = 0.5;
  options.same_per_level = random() % 2 == 0;
  Topology topology = test::random_topology(random, options);
  const double part = static_cast<double>(random() >> 11) * 0x1.0p-53;
  return {std::move(topology), std::floor(std::pow(10.0, least_exponent + (9 - least_exponent) * part))};
}

double simulated_over_predicted(const PlanAnswer& answer, const Drawn& drawn) {
  SimulationOptions quick;
  quick.keep_path = false;
  return simulate(answer.plan, drawn.topology, drawn.size, quick).seconds / answer.seconds();
}

TEST(Chunks, AreNotPredictedBelowTheSimulation) {
  const int num_cases = test::drawn(4, 30, 500);
  int num_above = 0;
  int num_chunked = 0;
  int num_waiting = 0;  // plans whose price alone is below the simulation
  double largest = 0;
  for (std::uint64_t seed = 1; num_chunked < num_cases; ++seed) {
    const Drawn drawn = draw(seed, 6);
    const PlanAnswer answer = plan({.topology = drawn.topology, .size_floats = drawn.size});
    if (answer.plan.num_chunks == 1) continue;
    ++num_chunked;
    const double ratio = simulated_over_predicted(answer, drawn);
    largest = std::max(largest, ratio);
    num_above += ratio > kNotable ? 1 : 0;
    num_waiting += answer.priced->waiting() > 0 ? 1 : 0;
    PlanRequest by_price{.topology = drawn.topology, .size_floats = drawn.size};
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

class HalvesInOnePiece : public ::testing::TestWithParam<Collective> {};

TEST_P(HalvesInOnePiece, AreNotPredictedBelowTheSimulation) {
  const int num_cases = test::drawn(10, 60, 500);
  int num_above = 0;
  double largest = 0;
  for (int i = 0; i < num_cases; ++i) {
    const Drawn drawn = draw(static_cast<std::uint64_t>(i) + 1, 3);
    const PlanAnswer answer = plan({.topology = drawn.topology, .size_floats = drawn.size, .collective = GetParam()});
    const double ratio = simulated_over_predicted(answer, drawn);
    largest = std::max(largest, ratio);
    num_above += ratio > kNotable ? 1 : 0;
  }
  RecordProperty("largest", std::to_string(largest));
  EXPECT_LE(num_above, std::max(num_cases / 100, 1));
}
INSTANTIATE_TEST_SUITE_P(Collectives, HalvesInOnePiece,
                         ::testing::Values(Collective::kReduceScatter, Collective::kAllGather), [](const auto& test) {
                           return test.param == Collective::kAllGather ? "AllGather" : "ReduceScatter";
                         });

// Seven servers and one whose link is a hundred times slower. In one piece hcps 4x2 costs no more than ring and cps do,
// but ranks that are ahead meet those behind on the slow link: simulated it takes 40% longer than these.
TEST(Halves, AreChosenByWhatTheyTake) {
  Node fast;
  fast.name = "fast";
  fast.alpha = 1e-6;
  fast.uplink = {3.2e-10, 0, 9};
  fast.server = {1e-12, 1e-12, 1e-6};
  Node slow = fast;
  slow.name = "slow";
  slow.uplink.beta = 3.2e-8;
  Node root;
  root.name = "root";
  root.alpha = 1e-6;
  root.children = {{0, 7}, {1, 1}};
  const Drawn drawn{Topology("slow link", {fast, slow, root}, 2), 1.6e7};
  for (const Collective collective : {Collective::kReduceScatter, Collective::kAllGather}) {
    const PlanAnswer best = plan({.topology = drawn.topology, .size_floats = drawn.size, .collective = collective});
    EXPECT_LE(simulated_over_predicted(best, drawn), 1 + 1e-6) << to_string(collective);
    EXPECT_LE(best.seconds(), best.bound.seconds() * 1.01) << to_string(collective);
  }
}

}  // namespace
}  // namespace gar
