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
  std::string output;
  std::string save;
  std::vector<std::string> from;
  double budget_s = 60;
  std::optional<Topology> topology;
  std::vector<double> sizes;  ///< floats, ascending; empty: chosen
  std::uint64_t seed = 1;
  bool is_validated = false;
};

/// What was measured.
struct FitRun {
  Measurements measurements;  ///< the same on all ranks
  bool is_stopped = false;    ///< a rank was asked to stop
  bool is_enough = true;      ///< the essential part is measured
  double needed_s = 0;        ///< not enough: a budget that would do
  std::vector<std::string> notes = {};
};

/// `on_progress` is for the rank that prints; it may be empty. "34% of 60 s: cps allreduce, 12 ranks, 1e5 floats".
FitRun run_fit(World& world, const FitConfig& config, const std::function<void(const std::string&)>& on_progress);

}  // namespace gar::measure
