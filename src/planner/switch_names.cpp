#include "planner/switch_names.hpp"

#include <functional>
#include <map>
#include <set>

namespace gar {
namespace {

std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }

/// The first instance of every node.
struct FirstPlaces {
  explicit FirstPlaces(const Topology& topology)
      : rank(index(topology.num_nodes()), -1), depth(rank.size(), 0), parent(rank.size(), -1) {
    rank[index(topology.root())] = 0;
    for (NodeId id = topology.num_nodes(); id-- > 0;) {  // parents have larger ids
      if (rank[index(id)] < 0) continue;
      std::int64_t next = rank[index(id)];
      for (const ChildRun& run : topology.node(id).children) {
        if (rank[index(run.node)] < 0) {
          rank[index(run.node)] = next;
          depth[index(run.node)] = depth[index(id)] + 1;
          parent[index(run.node)] = id;
        }
        next += run.count * topology.num_servers(run.node);
      }
    }
  }
  std::vector<std::int64_t> rank;
  std::vector<int> depth;
  std::vector<NodeId> parent;
};

/// Gives another name to nodes whose name another shape has, too.
void tell_apart(const Topology& topology, std::vector<std::string>& names,
                const std::function<std::string(NodeId)>& other) {
  std::map<std::string, std::int32_t> shape_of;
  std::set<std::string> shared;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    if (topology.node(id).is_server()) continue;
    const auto [known, is_new] = shape_of.try_emplace(names[index(id)], topology.shape(id));
    if (!is_new && known->second != topology.shape(id)) shared.insert(names[index(id)]);
  }
  if (shared.empty()) return;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    if (!topology.node(id).is_server() && shared.contains(names[index(id)])) names[index(id)] = other(id);
  }
}

}  // namespace

SwitchNames::SwitchNames(const Topology& topology) {
  for (NodeId id = 0; id < topology.num_nodes(); ++id) names_.push_back(topology.node(id).name);
  const FirstPlaces first(topology);
  tell_apart(topology, names_, [&](NodeId id) {
    std::string path = topology.node(id).name;
    if (id == topology.root()) return path;
    for (NodeId up = first.parent[index(id)]; up != topology.root(); up = first.parent[index(up)]) {
      path = topology.node(up).name + "/" + path;
    }
    return path;
  });
  tell_apart(topology, names_,
             [&](NodeId id) { return topology.instance_name(first.rank[index(id)], first.depth[index(id)]); });
}

}  // namespace gar
