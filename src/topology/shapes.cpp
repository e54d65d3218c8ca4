// The distinct subtrees of a topology.
#include "gar/shapes.hpp"

namespace gar {
namespace {

std::size_t shape_index(std::int32_t id) { return static_cast<std::size_t>(id); }

}  // namespace

std::vector<NodeId> one_of_each_shape(const Topology& topology) {
  std::vector<NodeId> nodes;
  std::vector<bool> seen(shape_index(topology.num_shapes()), false);
  for (NodeId id = topology.root(); id >= 0; --id) {
    if (seen[shape_index(topology.shape(id))]) continue;
    seen[shape_index(topology.shape(id))] = true;
    nodes.push_back(id);
  }
  return nodes;
}

std::vector<std::int64_t> shape_counts(const Topology& topology) {
  std::vector<std::int64_t> instances(shape_index(topology.num_nodes()), 0);
  std::vector<std::int64_t> counts(shape_index(topology.num_shapes()), 0);
  instances[shape_index(topology.root())] = 1;
  for (NodeId id = topology.root(); id >= 0; --id) {
    counts[shape_index(topology.shape(id))] += instances[shape_index(id)];
    for (const ChildRun& run : topology.node(id).children) {
      instances[shape_index(run.node)] += instances[shape_index(id)] * run.count;
    }
  }
  return counts;
}

double oversubscription(const Topology& topology, NodeId id) {
  const Node& node = topology.node(id);
  if (id == topology.root() || node.is_server() || node.uplink.beta == 0) return -1;
  double children = 0;
  for (const ChildRun& run : node.children) {
    const double beta = topology.node(run.node).uplink.beta;
    if (beta == 0) return -1;
    children += static_cast<double>(run.count) / beta;
  }
  return children * node.uplink.beta;
}

}  // namespace gar
