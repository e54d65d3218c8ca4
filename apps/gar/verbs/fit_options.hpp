// The flags of `gar fit`, checked.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/cli/common.hpp"
#include "apps/gar/verbs/bench_options.hpp"
#include "gar/fit.hpp"
#include "gar/measure/fit.hpp"

namespace gar::cli {

/// As typed.
struct FitArgs {
  std::string local;
  std::string output;
  std::string save;
  std::string html;  ///< page that is written, too; empty: none
  std::vector<std::string> from;
  std::string budget = "60s";
  std::string topology;
  std::string mpi;
  std::string device = "cpu";
  std::string transport = "auto";
  std::string sizes;
  std::string counts;
  std::string seed = "1";
  std::string timeout;
  bool validate = false;
};
void add_fit_options(CLI::App& verb, FitArgs& args);

/// Reads GAR_TOPOLOGY where -t is not given. Throws UsageError, and what reading a topology throws.
FitConfig parse_fit(const FitArgs& args);

/// "60s", "2min", "1.5h", "90" (seconds). Throws UsageError.
double parse_duration(std::string_view flag, const std::string& text);

/// Reads measurements and puts them together. Throws ParseError, and InvalidArgument when they are of different
/// networks.
Measurements join_measurements(const std::vector<std::string>& paths);

}  // namespace gar::cli
