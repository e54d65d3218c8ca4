// Figures and tables of the paper that can be reproduced.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "apps/gar/cli/common.hpp"
#include "apps/gar/reproduce/json_output.hpp"

namespace gar::cli {

/// One reproduced figure or table: prints itself (or fills `document`) and says whether every cell is in tolerance.
using Reproduction = std::function<bool(const Context& context, Json& document)>;

/// Figure `fig:costmodel`.
bool reproduce_costmodel(const Context& context, Json& document);
/// Table `tab:gtplan`.
bool reproduce_gtplan(const Context& context, Json& document);
/// The placements of Figure `fig:hcps`.
bool reproduce_hcps(const Context& context, Json& document);
/// Table `tab:gentreesimu`.
bool reproduce_gentreesimu(const Context& context, Json& document);
/// Figure `fig:model_five`.
bool reproduce_model_five(const Context& context, Json& document);
/// Table `tab:gentreereal`; with a file of measurements (`gar fit --save`; empty: none) those beside it.
bool reproduce_gentreereal(const std::string& measured, const Context& context, Json& document);
/// Figure `fig:incast`; the file as above.
bool reproduce_incast(const std::string& measured, const Context& context, Json& document);
/// Figure `fig:calc`, measured on this machine with vectors of `count` floats.
bool reproduce_calc(std::int64_t count, const Context& context, Json& document);
/// The same on a GPU, beside the paper's. Throws DeviceError when there is none.
bool reproduce_calc_on_gpu(std::int64_t count, const Context& context, Json& document);
/// Figure `fig:breakdown`, measured between `num_ranks` processes of this machine.
bool reproduce_breakdown(int num_ranks, std::int64_t count, const Context& context, Json& document);
/// The planners against the baselines and the lower bound, on the six networks.
bool reproduce_planners(const Context& context, Json& document);

}  // namespace gar::cli
