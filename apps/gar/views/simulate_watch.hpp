// Watching a simulation: a line of progress on a terminal, and Ctrl-C, which ends it with what it has found so far.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "apps/gar/cli/progress.hpp"
#include "gar/simulate.hpp"

namespace gar::cli {

/// Shows how far a simulation is.
class SimulationWatch {
 public:
  /// `what` stands before the progress: "simulating ring". With jitter no two ranks are alike, so that all are
  /// simulated.
  SimulationWatch(std::string what, bool has_jitter);

  /// For SimulationOptions::progress: false when interrupted.
  bool go_on(const SimulationProgress& progress);

 private:
  std::string what_;
  bool has_jitter_;
  std::optional<std::chrono::steady_clock::time_point> begun_;
  ProgressLine line_;
};

}  // namespace gar::cli
