// Topologies in words.
#include <fmt/format.h>

#include "gar/explain_topology.hpp"
#include "gar/format.hpp"
#include "gar/network_words.hpp"
#include "gar/shapes.hpp"

namespace gar {

std::string topology_totals(const Topology& topology) {
  const auto counted = [](std::int64_t count, const char* one, const char* many) {
    return fmt::format("{} {}", format_grouped(count), count == 1 ? one : many);
  };
  return fmt::format("{}, {}, {}, {}, longest path {}", counted(topology.num_servers(), "server", "servers"),
                     counted(topology.num_switches(), "switch", "switches"),
                     counted(topology.height(topology.root()), "level of links", "levels of links"),
                     counted(topology.num_shapes(), "distinct subtree", "distinct subtrees"),
                     format_seconds(longest_path_latency(topology)));
}

std::string parameter_words(const Topology& topology) {
  if (has_paper_parameters(topology)) {
    const PaperParams paper;
    return fmt::format("the paper's parameters: servers on {}, {} through one switch",
                       format_link_speed(paper.server_link.beta), format_seconds(3 * paper.alpha));
  }
  const ServerParams usual = find_network_class(kTypicalServer)->server();
  bool is_assumed = topology.num_servers() > 1;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const Node& node = topology.node(id);
    is_assumed = is_assumed && (!node.is_server() || (node.server == usual && node.uplink.epsilon == 0));
  }
  return is_assumed ? fmt::format("assumed: {} memory, no incast, no cost per message; gar fit measures a network",
                                  kTypicalServer)
                    : "";
}

std::vector<std::string> topology_remarks(const Topology& topology, std::size_t max_remarks) {
  std::vector<std::string> remarks;
  for (const NodeId id : one_of_each_shape(topology)) {
    const Node& node = topology.node(id);
    const auto remark = [&](const std::string& text) {
      if (remarks.size() < max_remarks) remarks.push_back(fmt::format("'{}': {}", node.name, text));
    };
    if (topology.num_children(id) == 1) remark("a switch with one child adds latency and nothing else");
    if (node.alpha > 1) remark(fmt::format("alpha is {} s; it is in seconds", node.alpha));
    if (id == topology.root()) continue;
    if (node.uplink.beta == 0) remark("beta is 0, an unlimited link");
    if (node.uplink.beta > 1e-6) {
      remark(fmt::format("beta is {} s/float, {}; it is in seconds per float of 4 bytes", node.uplink.beta,
                         format_link_speed(node.uplink.beta)));
    }
    if (node.uplink.epsilon > 10 * node.uplink.beta) remark("epsilon is more than ten times beta");
    if (node.is_server() && node.server.gamma == 0 && node.server.delta == 0)
      remark("calculation is free (gamma and delta are 0)");
  }
  return remarks;
}

}  // namespace gar
