// The part of a network that some ranks use.
#include <fmt/format.h>

#include <algorithm>

#include "gar/errors.hpp"
#include "gar/topology.hpp"

namespace gar {

namespace {

/// A server with ranks, and how many.
struct Occupied {
  std::int64_t server = 0;
  std::int64_t num_ranks = 1;
};

class Selection {
 public:
  Selection(const Topology& network, const Node& rank) : network_(network), rank_(rank) {}

  /// The part below `id` that holds [begin, end), whose servers are counted from the whole network's first;
  /// `first_server` is the first one below `id`.
  NodeId build(NodeId id, std::int64_t first_server, const Occupied* begin, const Occupied* end) {
    const Node& node = network_.node(id);
    if (node.is_server()) return add_server(node, begin->num_ranks);
    Node copy = node;
    copy.children.clear();
    while (begin != end) {
      const ChildPosition child = network_.child_at(id, begin->server - first_server);
      const std::int64_t first = first_server + child.first_server;
      const std::int64_t last = first + network_.num_servers(child.node);
      const Occupied* stop = std::find_if(begin, end, [&](const Occupied& o) { return o.server >= last; });
      const NodeId built = build(child.node, first, begin, stop);
      copy.children.push_back({built, 1});
      begin = stop;
    }
    return add(std::move(copy));
  }

  /// A root with one child says nothing about the way between two ranks.
  Topology finish(NodeId root) {
    while (nodes_[static_cast<std::size_t>(root)].children.size() == 1 &&
           nodes_[static_cast<std::size_t>(root)].children.front().count == 1) {
      root = nodes_[static_cast<std::size_t>(root)].children.front().node;
    }
    return {network_.name(), std::move(nodes_), root};
  }

 private:
  NodeId add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeId>(nodes_.size()) - 1;
  }
  NodeId add_server(const Node& server, std::int64_t num_ranks) {
    if (num_ranks == 1) return add(server);
    Node rank = rank_;
    rank.server = server.server;
    rank.server.mu = 0;  // one number cannot be what a message costs inside a host and between hosts
    Node host = server;
    host.server = {};
    host.children = {{add(std::move(rank)), num_ranks}};
    return add(std::move(host));
  }

  const Topology& network_;
  const Node& rank_;
  std::vector<Node> nodes_;
};

}  // namespace

Topology place_ranks(const Topology& network, const std::vector<std::int64_t>& server_of, const Node& rank) {
  std::vector<Occupied> occupied;
  for (const std::int64_t server : server_of) {
    if (server < 0 || server >= network.num_servers()) {
      throw InvalidArgument(
          fmt::format("server {} of '{}': expected 0 to {}", server, network.name(), network.num_servers() - 1));
    }
    if (!occupied.empty() && occupied.back().server == server) {
      ++occupied.back().num_ranks;
    } else if (occupied.empty() || occupied.back().server < server) {
      occupied.push_back({server, 1});
    } else {
      throw InvalidArgument("ranks must follow the servers of the topology from left to right");
    }
  }
  if (occupied.empty()) throw InvalidArgument("a communicator has at least one rank");
  Selection selection(network, rank);
  const NodeId root = selection.build(network.root(), 0, occupied.data(), occupied.data() + occupied.size());
  return selection.finish(root);
}

}  // namespace gar
