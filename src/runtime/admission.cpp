#include "runtime/admission.hpp"

#include <algorithm>
#include <cmath>

#include "gar/environment.hpp"

namespace gar {

// With one at a time a port stands idle while the next sender is told, and waits whenever that one is busy elsewhere;
// two lose little (measured on the virtual cluster, docs/validation.md).
constexpr double kLeastSenders = 2;

int admitted_senders(const Topology& topology) {
  if (const auto wish = environment::whole_number(environment::kMaxSenders)) return static_cast<int>(*wish);
  double least = 0;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const LinkParams& link = topology.node(id).uplink;
    if (id == topology.root() || (link.epsilon <= 0 && link.max_senders <= 0)) continue;
    // Every rank below the link admits on its own.
    const double share = link.incast_threshold / static_cast<double>(topology.num_servers(id));
    const double senders = std::clamp(std::floor(link.max_senders > 0 ? link.max_senders : share), kLeastSenders, 1e6);
    least = least == 0 ? senders : std::min(least, senders);
  }
  return static_cast<int>(least);
}

}  // namespace gar
