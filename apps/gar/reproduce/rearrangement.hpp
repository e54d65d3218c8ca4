// What data rearrangement saves across the two data centres.
#pragma once

#include <string>

#include "apps/gar/reproduce/reproduce.hpp"

namespace gar::cli {

/// CDC384: communication of GenTree with and without rearrangement, as text; also fills document["rearrangement"].
std::string report_rearrangement(const Context& context, Json& document);

}  // namespace gar::cli
