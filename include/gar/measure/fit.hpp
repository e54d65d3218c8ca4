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

/// What is measured, and how.
struct FitConfig {
  std::optional<int>
      local;           ///< number of ranks to start on this host; empty: those of the job that this process belongs to
  std::string output;  ///< write the profile to this file; empty: do not
  std::string save;    ///< write the measurements to this file; empty: do not
  std::vector<std::string> from;                     ///< fit the measurements in these files instead of measuring
  double budget_s = 60;                              ///< how long to measure
  std::optional<Topology> topology;                  ///< shape and names of the network; empty: found out
  std::optional<MpiLibrary> mpi;                     ///< start the ranks with this MPI
  Device device = Device::kCpu;                      ///< whose memory the vectors are in
  BenchTransport transport = BenchTransport::kAuto;  ///< what carries the messages
  std::vector<double> sizes;                         ///< floats, ascending; empty: chosen
  std::uint64_t seed = 1;                            ///< of the bootstrap that gives the intervals
  double timeout_s = 30;                             ///< of the communicators
  bool is_validated = false;                         ///< measure held-out cases as well
};

/// What was measured.
struct FitRun {
  Measurements measurements;            ///< the same on all ranks
  bool is_stopped = false;              ///< it was interrupted
  bool is_enough = true;                ///< all essential groups were measured
  double needed_s = 0;                  ///< not enough: a budget that would do
  std::vector<std::string> notes = {};  ///< for people, one sentence each
};

/// Measures what a fit needs; all ranks of the world call it with the same configuration. `on_progress` is for the rank
/// that prints, and may be empty: "34% of 60 s: cps all_reduce, 12 ranks, 1e5 floats".
FitRun run_fit(GroupWorld& world, const FitConfig& config, const std::function<void(const std::string&)>& on_progress);

}  // namespace gar::measure
