// Small questions about parts of a topology.
#pragma once

#include <cstdint>
#include <vector>

#include "gar/topology.hpp"

namespace gar {

/// The network below one node, as a topology of its own.
Topology subtree(const Topology& topology, NodeId node);
/// How often each stored node occurs.
std::vector<std::int64_t> instance_counts(const Topology& topology);
/// Floats per second that all links from a node to its children carry together.
double bandwidth_below(const Topology& topology, NodeId node);

}  // namespace gar
