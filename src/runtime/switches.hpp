// The switches above the hosts of a job, where the launcher says so: Slurm gives every task SLURM_TOPOLOGY_ADDR
// ("root.rack0.node5") and SLURM_TOPOLOGY_ADDR_PATTERN ("switch.switch.node") where it knows the network's tree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gar {

/// What one rank's environment says. The names themselves do not matter, so hashes travel between ranks.
struct SwitchPath {
  static constexpr std::size_t kMostLevels = 6;
  /// From the top: a switch together with all above it; 0: there are no more. The lowest ones where there are too many.
  std::array<std::uint64_t, kMostLevels> switches{};
  std::uint64_t host = 0;  ///< the host together with all above it; 0: nothing is known
  bool operator==(const SwitchPath&) const = default;
};

/// The two texts above; an unknown host where they do not fit together.
SwitchPath switch_path(std::string_view address, std::string_view pattern);
/// Of this process's environment.
SwitchPath own_switch_path();

/// Levels of switches from the top, each with the number of the switch above every rank. A level is left out where it
/// divides the hosts no further than the one above, or not less than the hosts themselves do. Nothing where a rank does
/// not know its switches, where two hosts claim the same place (unless `may_share`, which pretended hosts do), or where
/// the ranks of a host or of a switch do not follow each other.
std::vector<std::vector<int>> switch_levels(const std::vector<SwitchPath>& paths, const std::vector<int>& host_of,
                                            bool may_share);

}  // namespace gar
