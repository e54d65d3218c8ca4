// The network that a verb works on: -t, -p, or one laid over the other.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "gar/profile_io.hpp"

namespace gar::cli {

/// `-t` and `-p` as typed.
struct NetworkArgs {
  std::string topology;
  std::string profile;
  [[nodiscard]] bool empty() const { return topology.empty() && profile.empty(); }
};
/// Adds `-t, --topology` and `-p, --profile`.
void add_network_options(CLI::App& verb, NetworkArgs& args);
/// Adds `-p, --profile` alone.
void add_profile_option(CLI::App& verb, std::string& path);

enum class Notes { kPrint, kOmit };
/// The profile's own network, the topology, or the profile laid over the topology. What the profile does not know of
/// the topology is said on standard error. Throws UsageError when there is neither, and what reading throws.
Network load_network(const NetworkArgs& args, Notes notes = Notes::kPrint);

/// Whose figures the network has, as a line of its own; nothing where that needs no word (parameter_words).
std::string parameter_line(const Topology& topology);

}  // namespace gar::cli
