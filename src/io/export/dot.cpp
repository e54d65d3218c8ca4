// Topology to Graphviz DOT. One box per distinct shape, an edge says how many times it is there: the drawing of 100,000
// equal servers is as small as that of one.
#include <fmt/format.h>

#include <ostream>
#include <string>
#include <vector>

#include "gar/topology_io.hpp"

namespace gar {
namespace {

// More than this no drawing can show.
constexpr std::int32_t kMaxShapes = 2000;

std::string quoted_label(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string label(const Topology& topology, NodeId id) {
  const Node& node = topology.node(id);
  std::string text = quoted_label(node.name);
  if (!node.is_server()) text += fmt::format("\\n{} servers", topology.num_servers(id));
  text += fmt::format("\\nalpha {} s", node.alpha);
  if (node.is_server()) text += fmt::format("\\ngamma {}\\ndelta {} s/float", node.server.gamma, node.server.delta);
  if (node.server.mu > 0) text += fmt::format("\\nmu {} s/message", node.server.mu);
  return text;
}

}  // namespace

void write_topology_dot(const Topology& topology, std::ostream& out) {
  // The first node of each shape stands for all; nodes come children first.
  std::vector<NodeId> shown;
  std::vector<bool> is_drawn(static_cast<std::size_t>(topology.num_shapes()), false);
  for (NodeId id = topology.root(); id >= 0; --id) {
    const auto shape = static_cast<std::size_t>(topology.shape(id));
    if (is_drawn[shape] || static_cast<std::int32_t>(shown.size()) >= kMaxShapes) continue;
    is_drawn[shape] = true;
    shown.push_back(id);
  }
  out << "// " << topology.num_servers() << " servers, " << topology.num_switches() << " switches, "
      << topology.num_shapes() << " distinct subtrees\n";
  out << "digraph \"" << quoted_label(topology.name()) << "\" {\n  rankdir=TB;\n  node [fontname=\"sans-serif\"];\n";
  for (const NodeId id : shown) {
    out << fmt::format("  n{} [shape={}, label=\"{}\"];\n", topology.shape(id),
                       topology.node(id).is_server() ? "box" : "ellipse", label(topology, id));
  }
  for (const NodeId id : shown) {
    const std::vector<ChildRun>& runs = topology.node(id).children;
    for (std::size_t i = 0; i < runs.size();) {
      const std::int32_t shape = topology.shape(runs[i].node);
      const LinkParams& link = topology.node(runs[i].node).uplink;
      std::int64_t count = 0;
      for (; i < runs.size() && topology.shape(runs[i].node) == shape; ++i) count += runs[i].count;
      if (!is_drawn[static_cast<std::size_t>(shape)]) continue;
      out << fmt::format("  n{} -> n{} [dir=none, label=\"{} x, {} s/float\"];\n", topology.shape(id), shape, count,
                         link.beta);
    }
  }
  if (topology.num_shapes() > kMaxShapes) {
    out << fmt::format("  more [shape=plaintext, label=\"{} more distinct subtrees\"];\n",
                       topology.num_shapes() - kMaxShapes);
  }
  out << "}\n";
}

}  // namespace gar
