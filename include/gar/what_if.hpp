// What if something is wrong with a network: conditions as people write them ("rack3.uplink=0.5"), and what they mean
// for a simulation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gar/simulate.hpp"

namespace gar {

/// One thing that is wrong with the network.
struct Condition {
  /// The kinds of conditions.
  enum class Kind {
    kSlow,        ///< calculation takes `value` times as long
    kDegrade,     ///< a link keeps `value` of its capacity
    kFail,        ///< a link carries nothing
    kBackground,  ///< other traffic takes a share of `value` of a link
  };
  Kind kind = Kind::kSlow;  ///< what is wrong, and what `value` means
  std::string source;       ///< for messages: "--degrade rack3.uplink=0.5"
  std::string name;         ///< a node, or a rank
  bool up = true;           ///< links: which directions
  bool down = true;         ///< links: the direction away from the root
  double value = 1;         ///< a factor or a share, as the kind says; kFail has none
};
/// "slow", "degrade", "fail", "background".
std::string_view to_string(Condition::Kind kind);
/// How a condition is written: "NAME.uplink=CAPACITY".
std::string_view form_of(Condition::Kind kind);

/// Everything that is wrong, before a network is known.
struct WhatIf {
  std::vector<Condition> conditions;  ///< in the order in which they were given
  double jitter = 0;                  ///< as in SimulationOptions
  std::uint64_t seed = 1;             ///< as in SimulationOptions
  [[nodiscard]] bool is_empty() const { return conditions.empty() && jitter == 0; }  ///< true: nothing is wrong
};

/// The parsers throw UsageError with the name of what is parsed (a flag, a field), the text and what is accepted.
Condition parse_condition(Condition::Kind kind, std::string_view name, const std::string& text);
double parse_jitter(std::string_view name, const std::string& text);       ///< a share of at least 0
std::uint64_t parse_seed(std::string_view name, const std::string& text);  ///< a whole number below 2^64

/// Puts the conditions into the options: on one link capacities multiply and shares add up, on one server factors
/// multiply. Throws InvalidArgument for names that do not exist, and for shares that leave nothing.
void apply(const WhatIf& what_if, const Topology& topology, SimulationOptions& options);

/// The network with its slow servers and degraded links, to plan for: "tree:4x6 --degrade rack1.uplink=0.5". Throws
/// InvalidArgument for names that do not exist, and for what no plan is made for: a link that carries nothing, or is
/// degraded in one direction only, background traffic, jitter.
Topology with_conditions(const Topology& topology, const WhatIf& what_if);

}  // namespace gar
