// Figures and tables of the paper that can be reproduced.
#pragma once

#include "apps/gar/common.hpp"
#include "apps/gar/json_output.hpp"

namespace gar::cli {

/// One reproduced figure or table: prints itself (or fills `document`) and says whether every cell is in tolerance.
using Reproduction = bool (*)(const Context& context, Json& document);

/// Figure `fig:costmodel`.
bool reproduce_costmodel(const Context& context, Json& document);

}  // namespace gar::cli
