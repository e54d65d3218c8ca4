// What is simulated, and what came out of it: the answer of `gar simulate`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gar/model.hpp"
#include "gar/quantity.hpp"
#include "gar/simulate.hpp"
#include "gar/what_if.hpp"

namespace gar {

/// What several simulations have in common.
struct Scene {
  Topology topology;
  VectorSize size;
  ModelOptions model;
  WhatIf what_if;
  bool barrier = false;
};

/// One simulated plan.
struct SimulatedPlan {
  std::string algorithm;  ///< with factors
  Collective collective = Collective::kAllReduce;
  std::int64_t num_chunks = 1;
  bool is_explicit = false;  ///< its stages are steps, and belong to no half
  Terms predicted;           ///< by the model, for the network without the what-if conditions
  Simulation simulation;
};

/// "auto", "flows", "classes".
std::string_view to_string(SimulationEngine engine);

}  // namespace gar
