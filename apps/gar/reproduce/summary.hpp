// What a reproduction has shown, in a line of the table that ends `gar reproduce all`.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/reproduce/json_output.hpp"

namespace gar::cli {

/// One reproduced figure or table.
struct ReproductionSummary {
  std::string target;
  std::string agrees;   ///< with the paper
  std::string differs;  ///< empty: nothing
  std::string basis;    ///< what our values were found from, and hence what the agreement is worth
  bool in_tolerance = false;
};

/// Reads it off the document of a reproduction.
ReproductionSummary summary_of(const std::string& target, const Json& document, bool in_tolerance);
Json to_json(const ReproductionSummary& summary);
/// The lines of the table as comma-separated values.
std::string summary_csv(const std::vector<ReproductionSummary>& summaries);
/// The table.
std::string summary_table(const std::vector<ReproductionSummary>& summaries, bool color);

}  // namespace gar::cli
