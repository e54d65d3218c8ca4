// The simulator against SimGrid, an independent fluid simulator: the same plans on the same networks must take the same
// time. Prints a line per case, and the largest difference at the end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/planner.hpp"
#include "gar/simulate.hpp"
#include "simgrid_run.hpp"
#include "support/plans.hpp"
#include "support/random_topology.hpp"

namespace gar {
namespace {

using Factors = std::vector<std::int64_t>;

constexpr double kTolerance = 1e-8;

/// The parameters of a server; the paper's, scaled.
struct Speed {
  double link = 1;  ///< factor of beta and epsilon
  double alpha = 1;
  double calculation = 1;
};

Node server(const Speed& speed = {}) {
  const PaperParams paper;
  Node node{"server", speed.alpha * paper.alpha, paper.server_link, paper.server, {}};
  node.uplink.beta *= speed.link;
  node.uplink.epsilon *= speed.link;
  node.server.gamma *= speed.calculation;
  node.server.delta *= speed.calculation;
  return node;
}

/// Servers on one switch, everyone with parameters of its own.
Topology uneven_star(std::int64_t n) {
  std::vector<Node> nodes;
  Node root{"root", PaperParams().alpha, {}, {}, {}};
  for (std::int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(i);
    nodes.push_back(server({1 + 0.3 * std::fmod(5 * x, 7), 0.5 + 0.1 * std::fmod(3 * x, 11), 1 + std::fmod(x, 4)}));
    nodes.back().name = "server" + std::to_string(i);
    nodes.back().uplink.incast_threshold = 3;
    root.children.push_back({static_cast<NodeId>(i), 1});
  }
  nodes.push_back(std::move(root));
  return Topology("uneven-star", std::move(nodes), static_cast<NodeId>(n));
}

/// Racks of different sizes and speeds; `pods` above them: how many racks each pod has (none: racks below the root).
Topology uneven_tree(const Factors& racks, const Factors& pods, double epsilon_factor) {
  const PaperParams paper;
  std::vector<Node> nodes;
  const auto add = [&](Node node) {
    node.uplink.epsilon *= epsilon_factor;
    node.uplink.incast_threshold = 2;
    nodes.push_back(std::move(node));
    return static_cast<NodeId>(nodes.size() - 1);
  };
  Node root{"root", paper.alpha, {}, {}, {}};
  std::vector<NodeId> rack_ids;
  for (std::size_t i = 0; i < racks.size(); ++i) {
    const auto x = static_cast<double>(i);
    const NodeId leaf = add(server({1 + 0.5 * x, 1 + 0.2 * x, 2 - 0.3 * x}));
    Node rack{"rack" + std::to_string(i), (1 + x) * paper.alpha, paper.inner_link, {}, {{leaf, racks[i]}}};
    rack.uplink.beta *= 4 + 3 * std::fmod(2 * x, 3);
    rack_ids.push_back(add(std::move(rack)));
  }
  if (pods.empty()) {
    for (const NodeId id : rack_ids) root.children.push_back({id, 1});
  }
  std::size_t next = 0;
  for (std::size_t p = 0; p < pods.size(); ++p) {
    Node pod{"pod" + std::to_string(p), 2 * paper.alpha, paper.inner_link, {}, {}};
    pod.uplink.beta *= 5 + static_cast<double>(p);
    for (std::int64_t i = 0; i < pods[p]; ++i) pod.children.push_back({rack_ids[next++], 1});
    root.children.push_back({add(std::move(pod)), 1});
  }
  const NodeId top = add(std::move(root));
  return Topology("uneven-tree", std::move(nodes), top);
}

Plan plan_of(const std::string& algorithm, const Topology& topology, double size_floats) {
  const AlgorithmSpec spec = parse_algorithm(algorithm);
  if (!is_tree_planner(spec)) return build_plan(spec, topology.num_servers());
  Plan plan = algorithm == "gentree+" ? gentree_plus(topology, size_floats).plan : gentree(topology, size_floats).plan;
  plan.num_chunks = 1;
  return plan;
}

class SimGrid : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::printf("%-52s %18s %18s %12s\n", "case", "SimGrid, seconds", "ours, seconds", "difference");
  }
  static void TearDownTestSuite() {
    std::printf("%d cases, largest difference %.2g (%s)\n", num_cases_, largest_, largest_case_.c_str());
  }

  /// Every engine against SimGrid.
  static void compare(const std::string& name, const Topology& topology, const Plan& plan, double size_floats,
                      SimulationOptions options = {}) {
    const double theirs = test::simgrid_seconds(plan, topology, size_floats, options);
    double worst = 0;
    double ours = 0;
    for (const auto engine : {SimulationEngine::kFlows, SimulationEngine::kClasses, SimulationEngine::kAuto}) {
      options.engine = engine;
      double seconds = 0;
      try {
        seconds = simulate(plan, topology, size_floats, options).seconds;
      } catch (const Error& error) {
        ADD_FAILURE() << name << ", engine " << static_cast<int>(engine) << ": " << error.what();
        continue;
      }
      const double difference = std::abs(seconds / theirs - 1);
      EXPECT_LE(difference, kTolerance) << name << ", engine " << static_cast<int>(engine) << ": " << seconds
                                        << " s, but SimGrid says " << theirs << " s";
      if (ours == 0 || !(difference <= worst)) {
        worst = difference;
        ours = seconds;
      }
    }
    std::printf("%-52s %18.12g %18.12g %12.2g\n", name.c_str(), theirs, ours, worst);
    num_cases_ += 1;
    if (!(worst <= largest_)) {
      largest_ = worst;
      largest_case_ = name;
    }
  }

  static void compare(const std::string& network, const Topology& topology, const std::string& algorithm,
                      double size_floats, const SimulationOptions& options = {}) {
    char size[32];
    std::snprintf(size, sizeof size, "%g", size_floats);
    compare(network + ", " + algorithm + ", " + size + (options.barrier ? ", barrier" : ""), topology,
            plan_of(algorithm, topology, size_floats), size_floats, options);
  }

 private:
  static inline int num_cases_ = 0;
  static inline double largest_ = 0;
  static inline std::string largest_case_;
};

TEST_F(SimGrid, StarsWithIncast) {
  for (const std::int64_t n : {2, 3, 7, 11, 16, 24}) {
    const std::string name = "star:" + std::to_string(n);
    const Topology star = topology_from_spec(name);
    for (const char* algorithm : {"cps", "ring", "rhd"}) compare(name, star, algorithm, n % 2 == 0 ? 1e7 : 3e5);
  }
  const Topology star64 = topology_from_spec("star:64");
  for (const char* algorithm : {"cps", "hcps:8x8", "hcps:32x2"}) compare("star:64", star64, algorithm, 1e7);
  const Topology star12 = topology_from_spec("star:12");
  for (const char* algorithm : {"hcps:3x4", "hcps:6x2", "hring:4x3"}) compare("star:12", star12, algorithm, 1e6);
  const Topology star24 = topology_from_spec("star:24");
  for (const char* algorithm : {"hcps:8x3", "hcps:2x12", "hcps:12x2", "hcps:2x3x4", "hcps:~5x5", "reduce-broadcast"}) {
    for (const double size : {1e4, 1e8}) compare("star:24", star24, algorithm, size);
  }
}

// Exchanges have no mirror image; folds, and scattering stages below an exchange, have one.
TEST_F(SimGrid, PlansForShortVectors) {
  for (const std::int64_t n : {2, 5, 12, 16}) {
    const std::string name = "star:" + std::to_string(n);
    const Topology star = topology_from_spec(name);
    for (const char* algorithm : {"gather", "recursive-doubling", "binomial"}) compare(name, star, algorithm, 1e5);
    if (n >= 4) compare(name, star, test::with_exchanges(rhd(n), 1), 1e6);
  }
  const Topology star = uneven_star(14);
  for (const char* algorithm : {"gather", "recursive-doubling", "recursive-multiplying:3x4", "binomial"}) {
    compare("uneven star:14", star, algorithm, 1e6);
  }
  const Topology tree = uneven_tree({3, 5, 2}, {}, 10);
  for (const char* algorithm : {"gather", "recursive-doubling", "recursive-multiplying:3x3", "binomial"}) {
    compare("racks 3,5,2, incast", tree, algorithm, 1e6);
  }
  compare("racks 3,5,2, incast", tree, test::with_exchanges(hcps(10, {5, 2}), 1), 1e6);
  compare("tree:3x4", topology_from_spec("tree:3x4"), test::with_exchanges(hcps(12, {4, 3}), 1), 1e6);
}

TEST_F(SimGrid, StarsOfDifferentServers) {
  for (const std::int64_t n : {5, 9, 14, 20}) {
    const Topology star = uneven_star(n);
    const std::string name = "uneven star:" + std::to_string(n);
    for (const char* algorithm : {"cps", "ring", "rhd", "reduce-broadcast"}) compare(name, star, algorithm, 1e7);
  }
  const Topology star20 = uneven_star(20);
  for (const char* algorithm : {"hcps:4x5", "hcps:10x2", "hcps:2x2x5"}) {
    for (const double size : {1e5, 1e8}) compare("uneven star:20", star20, algorithm, size);
  }
}

TEST_F(SimGrid, UnevenTrees) {
  struct Shape {
    std::string name;
    Factors racks, pods;
    std::string hcps;
  };
  const std::vector<Shape> shapes{{"racks 3,5,2", {3, 5, 2}, {}, "hcps:5x2"},
                                  {"racks 4,4,6,1", {4, 4, 6, 1}, {}, "hcps:3x5"},
                                  {"racks (2,3),(4),(1,2,2)", {2, 3, 4, 1, 2, 2}, {2, 1, 3}, "hcps:7x2"}};
  for (const Shape& shape : shapes) {
    std::string groups;
    for (const std::int64_t rack : shape.racks) groups += (groups.empty() ? "acps:" : "+") + std::to_string(rack);
    for (const bool has_incast : {false, true}) {
      const Topology tree = uneven_tree(shape.racks, shape.pods, has_incast ? 10 : 0);
      const std::string name = shape.name + (has_incast ? ", incast" : "");
      for (const std::string& algorithm : std::vector<std::string>{"cps", "ring", "rhd", shape.hcps, groups,
                                                                   "reduce-broadcast", "gentree", "gentree+"}) {
        compare(name, tree, algorithm, has_incast ? 1e7 : 1e6);
      }
    }
  }
}

TEST_F(SimGrid, RandomTrees) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    test::RandomTopologyOptions shape;
    shape.min_servers = 2;
    shape.max_servers = 32;
    shape.same_per_level = seed % 3 == 0;
    shape.has_mu = false;  // SimGrid's servers handle messages for nothing
    const Topology tree = test::random_topology(random, shape);
    const double size = std::pow(10.0, 4 + static_cast<double>(seed % 5));
    const std::vector<std::string> algorithms{"cps", "ring", "rhd", "gentree", "gentree+", "reduce-broadcast", "cps"};
    SimulationOptions options;
    options.barrier = seed % 4 == 0;
    compare("random tree " + std::to_string(seed) + " of " + std::to_string(tree.num_servers()), tree,
            algorithms[seed % algorithms.size()], size, options);
  }
}

TEST_F(SimGrid, Barriers) {
  SimulationOptions options;
  options.barrier = true;
  const Topology star = topology_from_spec("star:24");
  for (const char* algorithm : {"cps", "ring", "rhd", "hcps:8x3"}) compare("star:24", star, algorithm, 1e7, options);
  const Topology uneven = uneven_star(10);
  for (const char* algorithm : {"cps", "rhd", "hcps:2x5"}) compare("uneven star:10", uneven, algorithm, 1e7, options);
  const Topology tree = uneven_tree({2, 3, 4, 1}, {2, 2}, 1);
  for (const char* algorithm : {"cps", "ring", "rhd", "gentree"}) {
    compare("racks (2,3),(4,1)", tree, algorithm, 1e7, options);
  }
}

TEST_F(SimGrid, Chunks) {
  const Topology star = topology_from_spec("star:12");
  const Topology tree = uneven_tree({3, 5, 2}, {}, 10);
  for (const std::int64_t chunks : {2, 3, 5}) {
    for (const char* algorithm : {"cps", "ring", "rhd", "gentree"}) {
      for (const bool is_star : {true, false}) {
        const Topology& network = is_star ? star : tree;
        Plan plan = plan_of(algorithm, network, 1e7);
        plan.num_chunks = chunks;
        SimulationOptions options;
        options.barrier = chunks == 3;
        compare((is_star ? "star:12, " : "racks 3,5,2, ") + std::string(algorithm) + ", " + std::to_string(chunks) +
                    " chunks" + (options.barrier ? ", barrier" : ""),
                network, plan, 1e7, options);
      }
    }
  }
}

TEST_F(SimGrid, OtherModels) {
  const Topology star = topology_from_spec("star:16");
  SimulationOptions options;
  options.model = ModelKind::kAbc;
  compare("star:16 without incast and memory", star, "cps", 1e7, options);
  compare("star:16 without incast and memory", star, "hcps:4x4", 1e7, options);
  options = {};
  options.degree = IncastDegree::kParticipants;
  compare("star:16, incast of participants", star, "cps", 1e7, options);
  compare("racks 3,5,2, incast of participants", uneven_tree({3, 5, 2}, {}, 10), "gentree", 1e7, options);
}

TEST_F(SimGrid, WhatIsWrongWithANetwork) {
  const Topology star = topology_from_spec("star:12");
  const Topology tree = uneven_tree({3, 5, 4}, {}, 10);
  SimulationOptions slow;
  slow.slow_servers = {{2, 5.0}, {7, 1.5}};
  SimulationOptions degraded;
  degraded.links = {{{5, 1}, true, true, 0.3, 0}, {{1, 1}, false, true, 0.7, 0}};
  SimulationOptions busy;
  busy.links = {{{5, 1}, true, true, 1, 0.25}, {{0, 1}, true, false, 0.9, 0.5}};
  for (const char* algorithm : {"cps", "ring", "rhd"}) {
    compare("star:12, slow servers", star, algorithm, 1e7, slow);
    compare("star:12, slow links", star, algorithm, 1e7, degraded);
    compare("star:12, busy links", star, algorithm, 1e7, busy);
    compare("racks 3,5,4, slow links", tree, algorithm, 1e7, degraded);
    compare("racks 3,5,4, busy links", tree, algorithm, 1e7, busy);
  }
}

TEST_F(SimGrid, SeesADifferenceOfOnePartInAMillion) {
  const Topology star = topology_from_spec("star:12");
  const Plan plan = cps(12);
  const double theirs = test::simgrid_seconds(plan, star, 1.000001e9, {});
  const double ours = simulate(plan, star, 1e9).seconds;
  EXPECT_GT(std::abs(ours / theirs - 1), 50 * kTolerance);
}

}  // namespace
}  // namespace gar
