// The flags that `gar simulate` and `gar compare` share: how to simulate, and what is wrong with the network.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/cli/common.hpp"
#include "apps/gar/views/json_output.hpp"
#include "gar/simulate.hpp"

namespace gar::cli {

/// As typed.
struct SimulationArgs {
  bool barrier = false;
  std::string engine = "auto";
  std::vector<std::string> slow;        ///< NAME=FACTOR
  std::vector<std::string> degrade;     ///< NAME.uplink=CAPACITY
  std::vector<std::string> fail;        ///< NAME.uplink
  std::vector<std::string> background;  ///< NAME.uplink=SHARE
  std::string jitter = "0";
  std::string seed = "1";
};
/// Adds `--barrier`, `--engine` and the what-if flags.
void add_simulation_options(CLI::App& verb, SimulationArgs& args);

/// One thing that is wrong with the network.
struct Condition {
  enum class Kind { kSlow, kDegrade, kFail, kBackground };
  Kind kind = Kind::kSlow;
  std::string flag;  ///< "--degrade rack3.uplink=0.5", for messages
  std::string name;  ///< a node, or a rank
  bool up = true;    ///< links: which directions
  bool down = true;
  double value = 1;  ///< factor, capacity that is left, or share that is taken
};

/// What the flags say, before a network is known.
struct WhatIf {
  std::vector<Condition> conditions;
  double jitter = 0;
  std::uint64_t seed = 1;
  [[nodiscard]] bool is_empty() const { return conditions.empty() && jitter == 0; }
};
/// Throws UsageError that names the flag and what is accepted.
WhatIf parse_what_if(const SimulationArgs& args);

SimulationEngine parse_engine(const std::string& name);
std::string engine_name(SimulationEngine engine);

/// Puts the conditions into the options: on one link capacities multiply and shares add up, on one server factors
/// multiply. Throws InvalidArgument for names that do not exist, and for shares that leave nothing.
void apply(const WhatIf& what_if, const Topology& topology, SimulationOptions& options);

/// One line each: "the link of rack3 has 50% of its capacity left".
std::vector<std::string> what_if_words(const WhatIf& what_if);
Json what_if_json(const WhatIf& what_if);

}  // namespace gar::cli
