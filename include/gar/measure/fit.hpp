// The measuring of a fit from the beginning to the end, on one rank.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gar/fit.hpp"
#include "gar/measure/world.hpp"

namespace gar::measure {

/// What is measured, how, and on which ranks.
struct FitConfig : RankOptions {
  std::string output;                ///< path of the profile that is written; empty: none
  std::string save;                  ///< path of the measurements that are written; empty: none
  std::vector<std::string> from;     ///< measurements files to fit instead of measuring
  double budget_s = 60;              ///< seconds that measuring may take
  std::optional<Topology> topology;  ///< shape of the network; nothing: derived from the hosts of the ranks
  std::vector<double> sizes;         ///< floats, ascending; empty: chosen
  std::uint64_t seed = 1;            ///< of the random numbers behind the intervals
  bool is_validated = false;         ///< also measure held-out AllReduces and judge the fit by them
};

/// What was measured.
struct FitRun {
  Measurements measurements;            ///< the same on all ranks
  bool is_stopped = false;              ///< a rank was asked to stop
  bool is_enough = true;                ///< the essential part is measured
  double needed_s = 0;                  ///< not enough: a budget that would do
  std::vector<std::string> notes = {};  ///< what was left out, and why; one sentence each
};

/// `on_progress` is for the rank that prints; it may be empty. "34% of 60 s: cps allreduce, 12 ranks, 1e5 floats".
FitRun run_fit(World& world, const FitConfig& config, const std::function<void(const std::string&)>& on_progress);

}  // namespace gar::measure
