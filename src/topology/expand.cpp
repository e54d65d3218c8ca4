// A shared tree as plain arrays, one entry per instance, in preorder.
//
// The recursion is as deep as the tree, which is at most kMaxDepth. O(instances) time and memory.
#include <fmt/format.h>

#include <limits>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/topology.hpp"

namespace gar {
namespace {

void append(const Topology& topology, NodeId node, std::int32_t parent, std::int32_t depth, ExpandedTree& tree) {
  const auto self = static_cast<std::int32_t>(tree.parent.size());
  const auto slot = static_cast<std::size_t>(self);
  tree.parent.push_back(parent);
  tree.end.push_back(0);
  tree.first_rank.push_back(static_cast<std::int32_t>(tree.leaf.size()));
  tree.last_rank.push_back(0);
  tree.depth.push_back(depth);
  tree.node.push_back(node);
  if (topology.node(node).is_server()) tree.leaf.push_back(self);
  for (const ChildRun& run : topology.node(node).children) {
    for (std::int64_t i = 0; i < run.count; ++i) append(topology, run.node, self, depth + 1, tree);
  }
  tree.end[slot] = static_cast<std::int32_t>(tree.parent.size());
  tree.last_rank[slot] = static_cast<std::int32_t>(tree.leaf.size());
}

}  // namespace

ExpandedTree expand(const Topology& topology, NodeId node) {
  const std::int64_t instances = topology.num_servers(node) + topology.num_switches(node);
  check_work(kNodeLimit, static_cast<double>(instances), fmt::format("the network '{}'", topology.name()));
  if (instances > std::numeric_limits<std::int32_t>::max()) {
    throw InvalidArgument(
        fmt::format("'{}' has {} instances; at most 2^31 - 1 can be expanded", topology.node(node).name, instances));
  }
  ExpandedTree tree;
  const auto size = static_cast<std::size_t>(instances);
  tree.parent.reserve(size);
  tree.end.reserve(size);
  tree.first_rank.reserve(size);
  tree.last_rank.reserve(size);
  tree.depth.reserve(size);
  tree.node.reserve(size);
  tree.leaf.reserve(static_cast<std::size_t>(topology.num_servers(node)));
  append(topology, node, -1, 0, tree);
  return tree;
}

}  // namespace gar
