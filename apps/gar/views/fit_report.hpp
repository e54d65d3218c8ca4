// What `gar fit` prints: parameters with their intervals, incast beside its cause, residuals, and what is not known.
#pragma once

#include <string>

#include "gar/fit_report.hpp"

namespace gar::cli {

std::string fit_text(const FitReport& report, bool color);

}  // namespace gar::cli
