// Watching a simulation: a line of progress on a terminal, and Ctrl-C, which ends it with what it has found so far.
#pragma once

#include <chrono>
#include <csignal>
#include <string>
#include <string_view>

#include "gar/simulate.hpp"

namespace gar::cli {

/// While it lives, the first Ctrl-C only makes is_interrupted() true; a second one ends the program.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_ = {};
};
bool is_interrupted();

/// Shows how far a simulation is.
class SimulationWatch {
 public:
  /// `what` stands before the progress: "simulating ring".
  explicit SimulationWatch(std::string what);
  ~SimulationWatch();
  SimulationWatch(const SimulationWatch&) = delete;
  SimulationWatch& operator=(const SimulationWatch&) = delete;

  /// For SimulationOptions::progress: false when interrupted.
  bool go_on(const SimulationProgress& progress);

 private:
  void show(const SimulationProgress& progress);
  void clear();

  std::string what_;
  bool is_terminal_ = false;
  bool is_shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

/// A line on standard error when that is a terminal: what is done while more is to come.
void print_progress_line(std::string_view text);

}  // namespace gar::cli
