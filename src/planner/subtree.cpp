// Small questions about parts of a topology.
#include "planner/subtree.hpp"

#include <limits>

namespace gar {

Topology subtree(const Topology& topology, NodeId node) {
  std::vector<Node> nodes;  // children have smaller ids than their parents
  for (NodeId id = 0; id <= node; ++id) nodes.push_back(topology.node(id));
  return Topology(topology.name(), std::move(nodes), node);
}

std::vector<std::int64_t> instance_counts(const Topology& topology) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(topology.num_nodes()), 0);
  counts[static_cast<std::size_t>(topology.root())] = 1;
  for (NodeId id = topology.num_nodes() - 1; id >= 0; --id) {
    for (const ChildRun& run : topology.node(id).children) {
      counts[static_cast<std::size_t>(run.node)] += counts[static_cast<std::size_t>(id)] * run.count;
    }
  }
  return counts;
}

double bandwidth_below(const Topology& topology, NodeId node) {
  double sum = 0;
  for (const ChildRun& run : topology.node(node).children) {
    const double beta = topology.node(run.node).uplink.beta;
    sum += beta > 0 ? static_cast<double>(run.count) / beta : std::numeric_limits<double>::infinity();
  }
  return sum;
}

}  // namespace gar
