// What `gar plan` shows of a plan, for people.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/views/term_table.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "gar/quantity.hpp"

namespace gar::cli {

/// A plan and everything that is said about it.
struct PlanView {
  const PlanRequest& request;
  VectorSize size;
  PlanAnswer answer;  ///< its plan as it is written: a half, or explicit
  std::vector<StageCost> stages;
  TermNames names = TermNames::kPlain;
};

/// Headline, switches, stages.
void print_plan(const PlanView& view, bool color);
/// Per switch the candidates and the margin; per stage where the time goes; the gap to the lower bound.
void print_explanation(const PlanView& view, bool color);

}  // namespace gar::cli
