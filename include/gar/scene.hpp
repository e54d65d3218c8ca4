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
  Topology topology;     ///< the network, one server per rank
  VectorSize size;       ///< of the vector
  ModelOptions model;    ///< for the predictions and the simulations
  WhatIf what_if;        ///< what is wrong with the network
  bool barrier = false;  ///< as SimulationOptions::barrier
};

/// One simulated plan.
struct SimulatedPlan {
  std::string algorithm;                           ///< with factors
  Collective collective = Collective::kAllReduce;  ///< which collective
  std::int64_t num_chunks = 1;                     ///< parts of the vector that follow each other
  bool is_explicit = false;                        ///< its stages are steps, and belong to no half
  Terms predicted;                                 ///< by the model, for the network without the what-if conditions
  Simulation simulation;                           ///< with the what-if conditions
};

/// "auto", "flows", "classes", "graph", "filling".
std::string_view to_string(SimulationEngine engine);

}  // namespace gar
