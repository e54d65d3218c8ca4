// A number for everything that a topology says.
#include "topology/hash.hpp"

#include "base/hash.hpp"

namespace gar {

std::uint64_t hash_of(const Topology& topology) {
  std::uint64_t hash = mix_in(mix_in(0, topology.name()), topology.root());
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const Node& node = topology.node(id);
    hash = mix_in(hash, node.name);
    hash = mix_in(hash, node.alpha);
    for (const auto& param : kLinkParams) hash = mix_in(hash, node.uplink.*param.value);
    for (const auto& param : kServerParams) hash = mix_in(hash, node.server.*param.value);
    for (const ChildRun& run : node.children) hash = mix_in(mix_in(hash, run.node), run.count);
    hash = mix_in(hash, node.children.size());
  }
  return hash;
}

}  // namespace gar
