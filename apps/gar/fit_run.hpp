// The measuring of a fit from the beginning to the end, on one rank.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/gar/bench_world.hpp"
#include "apps/gar/fit_options.hpp"
#include "gar/fit.hpp"

namespace gar::cli {

struct FitRun {
  Measurements measurements;  ///< the same on all ranks
  bool is_stopped = false;    ///< somebody wanted to stop
  bool is_enough = true;      ///< the essential part is measured
  double needed_s = 0;        ///< not enough: a budget that would do
  std::vector<std::string> notes = {};
};

/// `on_progress` is for the rank that prints; it may be empty. "34% of 60 s: cps allreduce, 12 ranks, 1e5 floats".
FitRun run_fit(GroupWorld& world, const FitConfig& config, const std::function<void(const std::string&)>& on_progress);

}  // namespace gar::cli
