// The distinct subtrees of a topology: what a document or a drawing lists instead of every node.
#pragma once

#include <cstdint>
#include <vector>

#include "gar/topology.hpp"

namespace gar {

/// One stored node of each shape, the root first.
std::vector<NodeId> one_of_each_shape(const Topology& topology);
/// Instances of each shape in the whole tree.
std::vector<std::int64_t> shape_counts(const Topology& topology);

/// Bandwidth of all children of a switch over that of its uplink; -1 for servers, for the root, and where a link is
/// unlimited.
double oversubscription(const Topology& topology, NodeId id);

}  // namespace gar
