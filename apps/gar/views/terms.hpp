// Costs for people and for JSON, shared by the verbs that print them.
#pragma once

#include "apps/gar/views/json_output.hpp"
#include "gar/model.hpp"

namespace gar::cli {

/// {"alpha":..., "beta":..., "gamma":..., "delta":..., "epsilon":...} in seconds.
Json terms_json(const Terms& terms);
/// One priced stage: half, label, seconds, terms, busiest link.
Json stage_json(const StageCost& stage, double size_floats);

}  // namespace gar::cli
