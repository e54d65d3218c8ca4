// Parameters that are nearly the same become the same: sorted, and cut into groups from the least one upwards, each of
// which spans no more than the tolerance. Every group becomes the geometric mean of its ends. Nodes that differ in
// nothing else have the same shape afterwards, and the classes of the simulator are found as always.
#include "sim/alike.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace gar::sim {

namespace {

void merge(std::vector<double*>& values, double tolerance) {
  std::sort(values.begin(), values.end(), [](const double* a, const double* b) { return *a < *b; });
  for (std::size_t begin = 0; begin < values.size();) {
    const double least = *values[begin];
    std::size_t end = begin + 1;
    while (end < values.size() && *values[end] <= least * (1 + tolerance)) ++end;
    const double most = *values[end - 1];
    // Equal ones stay what they are, to the last digit.
    const double middle = most == least ? least : std::sqrt(least) * std::sqrt(most);
    for (; begin < end; ++begin) *values[begin] = middle;
  }
}

}  // namespace

Topology with_alike_nodes(const Topology& topology, double tolerance) {
  std::vector<Node> nodes;
  std::vector<std::vector<Node*>> levels(static_cast<std::size_t>(topology.height(topology.root())) + 1);
  nodes.reserve(static_cast<std::size_t>(topology.num_nodes()));
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    nodes.push_back(topology.node(id));
    levels[static_cast<std::size_t>(topology.height(id))].push_back(&nodes.back());
  }
  for (const std::vector<Node*>& level : levels) {
    const auto merge_all = [&](const auto& field) {
      std::vector<double*> values;
      values.reserve(level.size());
      for (Node* node : level) values.push_back(&field(*node));
      merge(values, tolerance);
    };
    merge_all([](Node& n) -> double& { return n.alpha; });
    merge_all([](Node& n) -> double& { return n.uplink.beta; });
    merge_all([](Node& n) -> double& { return n.uplink.epsilon; });
    merge_all([](Node& n) -> double& { return n.server.gamma; });
    merge_all([](Node& n) -> double& { return n.server.delta; });
    merge_all([](Node& n) -> double& { return n.server.mu; });
  }
  return {topology.name(), std::move(nodes), topology.root()};
}

}  // namespace gar::sim
