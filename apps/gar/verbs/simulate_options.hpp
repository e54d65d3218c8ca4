// The flags that `gar simulate` and `gar compare` share: how to simulate, and what is wrong with the network.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/cli/common.hpp"
#include "gar/what_if.hpp"

namespace gar::cli {

/// As typed.
struct SimulationArgs {
  bool barrier = false;
  std::string engine = "auto";
  std::string tolerance = "0";
  std::vector<std::string> slow;        ///< NAME=FACTOR
  std::vector<std::string> degrade;     ///< NAME.uplink=CAPACITY
  std::vector<std::string> fail;        ///< NAME.uplink
  std::vector<std::string> background;  ///< NAME.uplink=SHARE
  std::string jitter = "0";
  std::string seed = "1";
};
/// Adds `--slow` and `--degrade` alone: what plans can be made for.
void add_condition_options(CLI::App& verb, SimulationArgs& args);
/// Adds `--barrier`, `--engine`, `--tolerance` and the what-if flags.
void add_simulation_options(CLI::App& verb, SimulationArgs& args);

/// Throws UsageError that names the flag and what is accepted.
WhatIf parse_what_if(const SimulationArgs& args);
SimulationEngine parse_engine(const std::string& name);
double parse_tolerance(const SimulationArgs& args);

}  // namespace gar::cli
