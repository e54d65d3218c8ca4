// What `gar simulate` says about a simulated plan, for people and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/gar/verbs/simulate_options.hpp"
#include "apps/gar/views/json_output.hpp"
#include "gar/quantity.hpp"
#include "gar/simulate.hpp"

namespace gar::cli {

/// What all simulations of a command have in common.
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
  Terms predicted;           ///< by the model, for the network as it should be
  Simulation simulation;
};

struct ReportOptions {
  std::int64_t max_links = 10;  ///< -1: all
  bool all_hops = false;        ///< the critical path hop by hop
  bool color = false;
};

/// "3.1% more", "2.0% less", "as much".
std::string difference_words(double simulated, double predicted);

/// One plan in full.
void print_simulation(const Scene& scene, const SimulatedPlan& plan, const ReportOptions& options);
/// Several plans, best first.
void print_simulations(const Scene& scene, const std::vector<SimulatedPlan>& plans, const ReportOptions& options);

/// The bottleneck of a stage: "downlink of rack7, 92% busy, incast 31% of it". Stages of several chunks run side by
/// side, so a link is busy with others, too.
std::string bottleneck_words(const Topology& topology, const StageUse& stage, bool has_chunks);

/// Adds what one simulation found to `document`.
void add_simulation_json(const Scene& scene, const SimulatedPlan& plan, const ReportOptions& options, Json& document);
/// The fields that all documents about simulations start with.
Json simulation_document(const Scene& scene, const char* schema);

}  // namespace gar::cli
