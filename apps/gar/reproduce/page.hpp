// Reproductions as a page.
#pragma once

#include <vector>

#include "apps/gar/reproduce/summary.hpp"
#include "gar/report.hpp"

namespace gar::cli {

/// What agrees with the paper and what does not, then every list of the document of `gar reproduce --json` as a table.
ReportPage reproduction_page(const std::vector<ReproductionSummary>& summaries, const Json& document);

}  // namespace gar::cli
