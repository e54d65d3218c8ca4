// Small networks and options for tests that compute what a simulation must give by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "gar/simulate.hpp"
#include "gar/topology.hpp"

namespace gar::test {

inline constexpr SimulationEngine kEngines[] = {SimulationEngine::kFlows, SimulationEngine::kClasses};

// n servers on one switch; alpha is what the switch costs.
inline Topology star(std::int64_t n, double alpha, const LinkParams& link, const ServerParams& server = {}) {
  Node leaf;
  leaf.uplink = link;
  leaf.server = server;
  Node root;
  root.alpha = alpha;
  root.children = {{0, n}};
  return Topology("star", {leaf, root}, 1);
}

// Two racks of two servers.
inline Topology two_racks(const LinkParams& server_link, const LinkParams& rack_link) {
  Node leaf;
  leaf.uplink = server_link;
  Node rack;
  rack.name = "rack";
  rack.uplink = rack_link;
  rack.children = {{0, 2}};
  Node root;
  root.children = {{1, 2}};
  return Topology("two racks", {leaf, rack, root}, 2);
}

inline SimulationOptions with(SimulationEngine engine, bool barrier = false) {
  SimulationOptions options;
  options.engine = engine;
  options.barrier = barrier;
  return options;
}

inline const LinkUse* find_link(const Simulation& s, std::int64_t rank, int depth, bool is_down) {
  for (const LinkUse& use : s.links) {
    if (use.link.node == NodePlace{rank, depth} && use.link.is_down == is_down) return &use;
  }
  return nullptr;
}

/// For tests that run with both engines.
class BothEngines : public ::testing::TestWithParam<SimulationEngine> {};
inline std::string engine_name(const ::testing::TestParamInfo<SimulationEngine>& tested) {
  return tested.param == SimulationEngine::kFlows ? "flows" : "classes";
}

}  // namespace gar::test
