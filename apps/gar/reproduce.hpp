// Figures and tables of the paper that can be reproduced.
#pragma once

#include "apps/gar/common.hpp"
#include "apps/gar/json_output.hpp"

namespace gar::cli {

/// One reproduced figure or table: prints itself (or fills `document`) and says whether every cell is in tolerance.
using Reproduction = bool (*)(const Context& context, Json& document);

/// Figure `fig:costmodel`.
bool reproduce_costmodel(const Context& context, Json& document);
/// Table `tab:gtplan`.
bool reproduce_gtplan(const Context& context, Json& document);
/// The placements of Figure `fig:hcps`.
bool reproduce_hcps(const Context& context, Json& document);
/// Table `tab:gentreesimu`.
bool reproduce_gentreesimu(const Context& context, Json& document);
/// The planners against the baselines and the lower bound, on the six networks.
bool reproduce_planners(const Context& context, Json& document);

}  // namespace gar::cli
