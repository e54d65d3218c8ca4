// What `gar diagnose` says about results.
#pragma once

#include <string>
#include <vector>

#include "gar/fit.hpp"
#include "gar/link_limit.hpp"
#include "gar/results_io.hpp"

namespace gar::cli {

/// What was read, and how many ranks it is about.
struct DiagnosedResults {
  const Results& results;
  std::string file;               ///< "standard input" where that was read
  std::int64_t num_ranks = 0;     ///< ranks that were measured
  std::string ranks_source = {};  ///< where their number is from: "the profile"
};

/// Results against a profile; `observations` are those of the rows.
std::string diagnose_text(const DiagnosedResults& what, const std::vector<Observation>& observations,
                          const Diagnosis& diagnosis, bool color);
/// Results against the links of a network that nobody has measured.
std::string diagnose_text(const DiagnosedResults& what, const LimitDiagnosis& diagnosis, bool color);
/// The same rows for programs.
std::string diagnose_csv(const DiagnosedResults& what, const std::vector<Observation>& observations,
                         const Diagnosis& diagnosis);
std::string diagnose_csv(const DiagnosedResults& what, const LimitDiagnosis& diagnosis);

}  // namespace gar::cli
