// What `gar plan` prints for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/gar/planning.hpp"
#include "gar/model.hpp"
#include "gar/quantity.hpp"

namespace gar::cli {

/// A plan and everything that is said about it.
struct PlanReport {
  Topology topology;
  VectorSize size;
  ModelOptions options;
  std::vector<PlanCandidate> candidates;  ///< one per algorithm that was asked for
  Planned planned;                        ///< the best of them
  Plan plan;                              ///< as it is written: its half, or its explicit form
  Terms terms;
  std::vector<StageCost> stages;
  LowerBound bound;
  std::optional<Optimality> optimal;
  Resource busiest;
};

/// Headline, switches, stages.
void print_plan(const PlanReport& report, const std::string& collective, bool color);
/// Per switch the candidates and the margin; per stage where the time goes; the gap to the lower bound.
void print_explanation(const PlanReport& report, bool color);

}  // namespace gar::cli
