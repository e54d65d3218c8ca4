// Networks with nodes that nearly look the same.
#pragma once

#include "gar/topology.hpp"

namespace gar::sim {

/// The network in which the latencies, links and speeds of nodes of one height that differ by at most `tolerance` (a
/// share) are the same: what lies between a and a (1 + tolerance) becomes the middle of them, so no parameter changes
/// by more than about half of the tolerance. Thresholds of incast are counts and stay. O(nodes log nodes).
Topology with_alike_nodes(const Topology& topology, double tolerance);

}  // namespace gar::sim
