#include "runtime/mpi/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <sstream>

#include "gar/errors.hpp"
#include "gar/io.hpp"

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
          fmt::format("server {} of '{}': accepted are 0 to {}", server, network.name(), network.num_servers() - 1));
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

std::vector<std::int64_t> servers_of(const Topology& network, const Hosts& hosts) {
  const auto num_ranks = static_cast<std::int64_t>(hosts.host_of.size());
  if (network.num_servers() == num_ranks) {
    std::vector<std::int64_t> out(hosts.host_of.size());
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  if (network.num_servers() == hosts.num_hosts) return {hosts.host_of.begin(), hosts.host_of.end()};
  throw InvalidArgument(
      fmt::format("the topology '{}' has {} server{}, but there are {} ranks on {} host{}; accepted is one server per "
                  "rank, or one per host",
                  network.name(), network.num_servers(), network.num_servers() == 1 ? "" : "s", num_ranks,
                  hosts.num_hosts, hosts.num_hosts == 1 ? "" : "s"));
}

std::uint64_t hash_of(const Topology& topology) {
  std::ostringstream text;
  write_topology(topology, text);
  return std::hash<std::string>()(text.str());
}

// With one at a time a port stands idle while the next sender is told, and waits whenever that one is busy elsewhere;
// two lose little (measured on the virtual cluster, docs/validation.md).
constexpr double kLeastSenders = 2;

int admitted_senders(const Topology& topology) {
  const char* text = std::getenv("GAR_MAX_SENDERS");  // NOLINT(concurrency-mt-unsafe): only read
  if (text != nullptr && *text != '\0') {
    int value = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, value);
    if (error != std::errc() || stop != end || value < 0) {
      throw InvalidArgument(fmt::format(
          "GAR_MAX_SENDERS={} in the environment: accepted is a number of senders, or 0 for no limit", text));
    }
    return value;
  }
  double least = 0;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const LinkParams& link = topology.node(id).uplink;
    if (id == topology.root() || link.epsilon <= 0) continue;
    // Every rank below the link admits on its own.
    const double share = link.incast_threshold / static_cast<double>(topology.num_servers(id));
    const double senders = std::clamp(std::floor(share), kLeastSenders, 1e6);
    least = least == 0 ? senders : std::min(least, senders);
  }
  return static_cast<int>(least);
}

}  // namespace gar
