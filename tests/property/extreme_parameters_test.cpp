// Whatever parameters a network is allowed to have, all that is computed from them is finite. Parameters, sizes and
// what-ifs are drawn from the ends of their ranges.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <random>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "gar/simulate.hpp"
#include "support/random_topology.hpp"

namespace gar {
namespace {

constexpr int kNumTrees = 25;

template <std::size_t n>
double any_of(std::mt19937_64& random, const std::array<double, n>& values) {
  return values[random() % n];
}

double extreme_time(std::mt19937_64& random) {
  return any_of<6>(random, {0, kLeastParameter, 1e-12, 1e-6, 1, kMaxParameter});
}
double extreme_threshold(std::mt19937_64& random) { return any_of<5>(random, {0, 1, 3.5, 100, kMaxThreshold}); }

Topology extreme_tree(std::mt19937_64& random) {
  const Topology shape = test::random_topology(random, {.max_servers = 12, .max_levels = 3});
  std::vector<Node> nodes;
  for (NodeId id = 0; id < shape.num_nodes(); ++id) {
    Node node = shape.node(id);
    node.alpha = extreme_time(random);
    node.uplink = {extreme_time(random), extreme_time(random), extreme_threshold(random), 0};
    node.server = {extreme_time(random), extreme_time(random)};
    nodes.push_back(std::move(node));
  }
  return Topology("extreme", std::move(nodes), shape.root());
}

void expect_finite(const Terms& terms, const std::string& what) {
  for (const TermInfo& term : kTerms) EXPECT_TRUE(std::isfinite(terms.*term.seconds)) << what << ": " << term.name;
}

TEST(ExtremeParameters, EverythingStaysFinite) {
  for (int seed = 1; seed <= kNumTrees; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const Topology topology = extreme_tree(random);
    const double size = any_of<6>(random, {0, 1, 3, 1e6, 1e15, kMaxFloats});
    SCOPED_TRACE("seed " + std::to_string(seed) + ", size " + std::to_string(size));
    for (const char* name : {"ring", "cps", "rhd", "hcps", "reduce-broadcast", "gentree", "gentree+"}) {
      const PlanAnswer answer =
          plan({.topology = topology, .size_floats = size, .algorithms = {parse_algorithm(name)}});
      expect_finite(answer.terms, name);
      EXPECT_TRUE(std::isfinite(answer.bound.seconds())) << name;
      if (answer.plan.num_chunks > 500) continue;  // thousands of calculations at a time take long to simulate
      SimulationOptions options;
      if (random() % 2 == 0 && topology.num_servers() > 1) {
        options.slow_servers.push_back({0, any_of<2>(random, {1 / kMaxFactor, kMaxFactor})});
        options.links.push_back({.node = {1, 1}, .capacity = any_of<2>(random, {1 / kMaxFactor, kMaxFactor})});
        options.jitter = any_of<2>(random, {0, kMaxJitter});
      }
      const Simulation simulation = simulate(answer.plan, topology, size, options);
      EXPECT_TRUE(std::isfinite(simulation.seconds)) << name;
    }
  }
}

TEST(ExtremeParameters, WhatIsBeyondIsRefusedByName) {
  for (const double absurd : {1e308, 1e7, -1.0, std::nan("")}) {
    Node server{"s", 0, {1e-9, 0, 1}, {1e-9, 1e-9}, {}};
    server.uplink.beta = absurd;
    try {
      const Topology topology("t", {server, {"root", 0, {}, {}, {{0, 2}}}}, 1);
      ADD_FAILURE() << absurd;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("node 's': beta is "), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("expected a number from 0 to 1e+06"), std::string::npos);
    }
  }
  const Topology star = topology_from_spec("star:4");
  for (const double size : {-1.0, 1e19, 1e308, std::nan("")}) {
    EXPECT_THROW((void)plan({.topology = star, .size_floats = size}), InvalidArgument) << size;
    EXPECT_THROW((void)simulate(ring(4), star, size), InvalidArgument) << size;
  }
  SimulationOptions twice;
  twice.slow_servers = {{0, 1e6}, {0, 1e6}};
  EXPECT_THROW((void)simulate(ring(4), star, 1, twice), InvalidArgument);
  SimulationOptions faint;
  faint.links = {{.node = {0, 1}, .capacity = 1e-6}, {.node = {0, 1}, .capacity = 1e-6}};
  EXPECT_THROW((void)simulate(ring(4), star, 1, faint), InvalidArgument);
}

// Twice as many servers with every level, and each half a little different, so that nothing can be shared.
TEST(ExtremeParameters, WorkOfIrregularNetworksIsLimited) {
  std::vector<Node> nodes{{"s", 1e-6, {1e-9, 1e-11, 2}, {1e-9, 1e-9}, {}}};
  for (int level = 0; level < 9; ++level) {
    Node other = nodes.back();
    other.name = "other";
    other.alpha = 2e-6;
    nodes.push_back(other);
    const auto size = static_cast<NodeId>(nodes.size());
    nodes.push_back({"switch", 1e-6, {1e-9, 1e-11, 2}, {}, {{size - 2, 1}, {size - 1, 1}}});
  }
  const auto root = static_cast<NodeId>(nodes.size()) - 1;
  const Topology topology("doubling", nodes, root);
  ASSERT_EQ(setenv("GAR_LIMIT", "0.00005", 1), 0);
  try {
    (void)plan({.topology = topology, .size_floats = 1e6, .algorithms = {parse_algorithm("gentree")}});
    ADD_FAILURE() << "not limited";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("GAR_LIMIT="), std::string::npos) << error.what();
  }
  ASSERT_EQ(unsetenv("GAR_LIMIT"), 0);
}

}  // namespace
}  // namespace gar
