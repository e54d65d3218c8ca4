// The simulator where nothing is symmetric: how long it takes, how much memory, and how far from the reference it is.
//
//   bench_asymmetric [--reference]
//
// The engine that finds all rates by filling is the reference (`gar simulate --engine filling`); it takes minutes, so
// it runs with --reference alone. Where a run is chaotic two exact engines differ, because they round differently: the
// last column says how much the engine itself differs when the size changes by one part in 10^13. Seconds are of this
// machine and of this run; results do not depend on it.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/plan.hpp"
#include "gar/planner.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"
#include "table.hpp"

namespace {

constexpr double kSmallChange = 1e-13;

struct Case {
  std::string what;
  gar::Plan plan;
  gar::Topology topology;
  double size = 1e8;
  double jitter = 0;
  std::uint64_t seed = 1;
};

/// Servers on one switch; all parameters of all of them differ, by up to four times.
gar::Topology all_different(std::int64_t num_servers, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  std::vector<gar::Node> nodes;
  gar::Node root;
  root.alpha = 1e-3;
  for (std::int64_t i = 0; i < num_servers; ++i) {
    gar::Node server;
    server.alpha = between(1e-3, 3e-3);
    server.uplink = {between(1e-9, 4e-9), between(1e-10, 5e-10), std::floor(between(2, 9))};
    server.server = {between(1e-10, 5e-10), between(1e-10, 3e-10)};
    nodes.push_back(server);
    root.children.push_back({static_cast<gar::NodeId>(i), 1});
  }
  nodes.push_back(root);
  return {"different", nodes, static_cast<gar::NodeId>(num_servers)};
}

gar::Simulation run(const Case& one, gar::SimulationEngine engine, double size) {
  gar::SimulationOptions options;
  options.engine = engine;
  options.jitter = one.jitter;
  options.seed = one.seed;
  options.keep_path = false;
  return gar::simulate(one.plan, one.topology, size, options);
}

double difference(double a, double b) { return std::abs(a - b) / b; }

void print_case(const Case& one, bool has_reference) {
  const auto timed = [&](gar::SimulationEngine engine) {
    const auto begin = std::chrono::steady_clock::now();
    gar::Simulation out = run(one, engine, one.size);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::pair(std::move(out), took);
  };
  const auto [simulated, took] = timed(gar::SimulationEngine::kAuto);
  fmt::print("{:<44}{:>10.3e}{:>14.9f}{:>10}{:>9.0f} MB", one.what, simulated.flows, simulated.seconds,
             gar::bench::time_text(took), gar::bench::peak_megabytes());
  const double changed = run(one, gar::SimulationEngine::kAuto, one.size * (1 + kSmallChange)).seconds;
  const std::string own = fmt::format("{:.1e}", difference(changed, simulated.seconds));
  if (has_reference) {
    const auto [reference, reference_took] = timed(gar::SimulationEngine::kFilling);
    fmt::print("{:>12}{:>12.1e}", gar::bench::time_text(reference_took),
               difference(simulated.seconds, reference.seconds));
  }
  fmt::print("{:>12}\n", own);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const bool has_reference = argc > 1 && std::string_view(argv[1]) == "--reference";
  if (argc > 2 || (argc == 2 && !has_reference)) {
    fmt::print(stderr, "usage: bench_asymmetric [--reference]\n");
    return 2;
  }
  fmt::print("{:<44}{:>10}{:>14}{:>10}{:>12}", "case", "messages", "simulated s", "takes", "peak so far");
  if (has_reference) fmt::print("{:>12}{:>12}", "reference", "difference");
  fmt::print("{:>12}\n", "own change");

  const auto print = [&](Case one, bool may_have_reference = true) {
    print_case(one, has_reference && may_have_reference);
  };
  for (const std::int64_t n : {100, 200, 300}) {
    print({fmt::format("cps, {} servers that all differ, incast", n), gar::cps(n), all_different(n, 1)}, n <= 200);
  }
  const gar::Topology tree = gar::topology_from_spec("tree:16x24");
  const gar::Plan plan = gar::plan({.topology = tree, .size_floats = 1e8}).plan;
  for (const std::uint64_t seed : {1, 2, 3}) {
    print({fmt::format("gentree+, tree:16x24, jitter 0.05, seed {}", seed), plan, tree, 1e8, 0.05, seed});
  }
  const gar::Topology large = gar::topology_from_spec("tree:64x125x125");
  const gar::PlanAnswer hcps =
      gar::plan({.topology = large, .size_floats = 1e8, .algorithms = {gar::parse_algorithm("hcps")}});
  print({"hcps, tree:64x125x125 (a million servers)", hcps.plan, large}, /*may_have_reference=*/false);
}
