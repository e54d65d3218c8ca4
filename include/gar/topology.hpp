// The network: a validated rooted tree whose leaves are servers (ranks) and whose inner nodes are switches.
//
// Identical subtrees are shared: a node stores its children as runs {node, count}, so a tree of 16 racks of 24
// servers is three nodes. Ranks number the servers from left to right (depth first), so the servers below a node are
// always a contiguous range of ranks.
//
// Units: alpha in seconds; mu in seconds per message; beta, epsilon, gamma, delta in seconds per float of 4 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gar/limits.hpp"

namespace gar {

/// The largest tree that is accepted.
inline constexpr std::int64_t kMaxServers = 100'000'000;
/// The deepest tree that is accepted (levels of links).
inline constexpr int kMaxDepth = 64;
/// The longest name of a node.
inline constexpr std::size_t kMaxNameBytes = 255;

/// Parameters of the full-duplex link from a node to its parent.
struct LinkParams {
  double beta = 0;              ///< seconds per float
  double epsilon = 0;           ///< extra seconds per float and sender beyond the threshold
  double incast_threshold = 0;  ///< senders that the link carries without incast (w_t)
  /// Receivers below the link admit at most this many senders at once, and the parameters above hold under that; 0:
  /// nothing is said. Costs do not depend on it.
  double max_senders = 0;
  bool operator==(const LinkParams&) const = default;
};

/// What calculating and handling messages costs a server.
struct ServerParams {
  double gamma = 0;  ///< seconds per float added
  double delta = 0;  ///< seconds per float read from or written to memory
  double mu = 0;     ///< seconds per message that it sends, and per message that it receives
  bool operator==(const ServerParams&) const = default;
};

/// What is known about a parameter: a row of kLinkParams or kServerParams.
template <class Params>
struct ParamInfo {
  const char* name;             ///< in files: "beta"
  const char* unit;             ///< for messages: "s/float"
  double Params::*value;        ///< the field of Params
  bool is_optional = false;     ///< files may leave it out, which means 0
  double most = kMaxParameter;  ///< the largest value that is accepted
};

/// All parameters of a link, and all of a server. Checks, hashes, readers and writers go through these tables; a new
/// parameter is a field above and a row here.
inline constexpr std::array<ParamInfo<LinkParams>, 4> kLinkParams{
    {{"beta", "s/float", &LinkParams::beta},
     {"epsilon", "s/float", &LinkParams::epsilon},
     {"incast_threshold", "senders", &LinkParams::incast_threshold, false, kMaxThreshold},
     {"max_senders", "senders", &LinkParams::max_senders, true, kMaxThreshold}}};
inline constexpr std::array<ParamInfo<ServerParams>, 3> kServerParams{
    {{"gamma", "s/float", &ServerParams::gamma},
     {"delta", "s/float", &ServerParams::delta},
     {"mu", "s/message", &ServerParams::mu, true}}};  ///< of a server
static_assert(sizeof(LinkParams) == kLinkParams.size() * sizeof(double), "every parameter of a link has a row");
static_assert(sizeof(ServerParams) == kServerParams.size() * sizeof(double), "every parameter of a server has a row");

/// Index of a node in `Topology`.
using NodeId = std::int32_t;

/// `count` consecutive children that are the same node.
struct ChildRun {
  NodeId node = 0;         ///< the child, by its id
  std::int64_t count = 1;  ///< how often it comes in a row
  bool operator==(const ChildRun&) const = default;
};

/// A switch (has children) or a server (has none).
struct Node {
  std::string name;                ///< base name; siblings that share it get an index ("rack0", "rack1", ...)
  double alpha = 0;                ///< latency that a transfer pays for passing this node
  LinkParams uplink;               ///< link to the parent; unused at the root
  ServerParams server;             ///< used by servers only
  std::vector<ChildRun> children;  ///< empty for a server
  /// True for a leaf of the tree.
  [[nodiscard]] bool is_server() const { return children.empty(); }
};

/// One child instance of a switch.
struct ChildPosition {
  NodeId node = 0;                ///< the child, by its id
  std::size_t run = 0;            ///< which entry of Node::children
  std::int64_t index = 0;         ///< which instance of that run
  std::int64_t first_server = 0;  ///< first server below it, counted from the switch's first
};

/// A validated tree. Immutable after construction.
class Topology {
 public:
  /// Takes nodes in any order. Throws InvalidArgument when a reference is out of range, there is a cycle, a parameter
  /// is negative or above its limit (gar/limits.hpp), a count is below 1, the tree has more than kMaxServers servers or
  /// kMaxDepth levels, or a name contains '/' or a control character, is longer than kMaxNameBytes, or makes two
  /// siblings the same. Nodes that cannot be reached from the root are dropped, equal nodes become one, an empty name
  /// becomes "server", "switch" or "root", and parameters that are unused (the root's uplink, a switch's gamma,
  /// delta and mu) or below kLeastParameter become 0.
  Topology(std::string name, std::vector<Node> nodes, NodeId root);

  /// The name of the network, as given.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// The id of the root.
  [[nodiscard]] NodeId root() const { return root_; }
  /// Number of stored (shared) nodes; all of them reachable. Children have smaller ids than their parents.
  [[nodiscard]] NodeId num_nodes() const { return static_cast<NodeId>(nodes_.size()); }
  /// A stored node, by its id.
  [[nodiscard]] const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  /// Servers below a node (1 for a server).
  [[nodiscard]] std::int64_t num_servers(NodeId id) const { return num_servers_[static_cast<std::size_t>(id)]; }
  /// Servers of the whole network, and so the number of its ranks.
  [[nodiscard]] std::int64_t num_servers() const { return num_servers(root_); }
  /// Number of child instances of a node.
  [[nodiscard]] std::int64_t num_children(NodeId id) const { return num_children_[static_cast<std::size_t>(id)]; }
  /// Switch instances at and below a node (0 for a server).
  [[nodiscard]] std::int64_t num_switches(NodeId id) const { return num_switches_[static_cast<std::size_t>(id)]; }
  /// Switch instances of the whole network.
  [[nodiscard]] std::int64_t num_switches() const { return num_switches(root_); }
  /// Levels of links below a node: 0 for a server.
  [[nodiscard]] int height(NodeId id) const { return height_[static_cast<std::size_t>(id)]; }
  /// Two nodes with the same shape are equal in everything but names (own uplink included).
  [[nodiscard]] std::int32_t shape(NodeId id) const { return shape_[static_cast<std::size_t>(id)]; }
  /// Number of distinct shapes; they are numbered from 0.
  [[nodiscard]] std::int32_t num_shapes() const { return num_shapes_; }

  /// The child instance of switch `id` that contains the `server`-th server below it (counted from 0 at `id`).
  /// O(log runs).
  [[nodiscard]] ChildPosition child_at(NodeId id, std::int64_t server) const;
  /// Sum of alpha over the nodes on the way from rank `a` to rank `b`, both included; 0 when a == b. O(height).
  [[nodiscard]] double path_latency(std::int64_t a, std::int64_t b) const;
  /// Name of the node instance at `depth` (root = 0) above or at `rank`, as a path below the root: "rack3/server5".
  /// The root itself is called by its own name. O(height).
  [[nodiscard]] std::string instance_name(std::int64_t rank, int depth) const;

 private:
  void count(NodeId id);
  void index_names(NodeId id);

  std::string name_;
  std::vector<Node> nodes_;
  NodeId root_ = 0;
  std::vector<std::int64_t> num_servers_;
  std::vector<std::int64_t> num_switches_;
  std::vector<std::int64_t> num_children_;
  std::vector<int> height_;
  std::vector<std::int32_t> shape_;
  std::int32_t num_shapes_ = 0;
  // Of every child run of every node, the runs of node i starting at run_begin_[i]: the first server below it, and the
  // number that its first instance carries in its name (-1: the name is unique among the siblings).
  std::vector<std::size_t> run_begin_;
  std::vector<std::int64_t> run_first_server_;
  std::vector<std::int64_t> run_first_index_;
};

/// The largest path_latency of any two ranks; 0 for a single server. O(stored nodes and runs).
double longest_path_latency(const Topology& topology);

/// The tree of those servers that have ranks. `server_of[r]`, the server of rank r, must not fall, since ranks number
/// the leaves of a tree from left to right. A server with several ranks becomes a switch with a `rank` for each of
/// them; its own gamma and delta go to the ranks, whose mu is 0. O(ranks x height). Throws InvalidArgument.
Topology place_ranks(const Topology& network, const std::vector<std::int64_t>& server_of, const Node& rank = {});

/// The instances below one node of a topology, in preorder, as plain arrays (index 0 is that node itself).
/// The root's own uplink is stored too, although nothing inside the tree uses it.
struct ExpandedTree {
  std::vector<std::int32_t> parent;      ///< -1 for index 0; parent[i] < i otherwise
  std::vector<std::int32_t> end;         ///< one past the last instance below i (preorder)
  std::vector<std::int32_t> first_rank;  ///< ranks below i: [first_rank, last_rank), counted from this tree's first
  /// One past the last rank below i.
  std::vector<std::int32_t> last_rank;
  std::vector<std::int32_t> depth;  ///< 0 for index 0
  std::vector<NodeId> node;         ///< the stored node that i is an instance of
  std::vector<std::int32_t> leaf;   ///< index of each rank's server
  /// Number of instances.
  [[nodiscard]] std::size_t size() const { return parent.size(); }
  /// Number of servers, and so of ranks.
  [[nodiscard]] std::int32_t num_ranks() const { return last_rank.empty() ? 0 : last_rank[0]; }
};

/// Expands the instances below `node`. O(instances). Throws InvalidArgument beyond kNodeLimit, or 2^31 - 1 instances.
ExpandedTree expand(const Topology& topology, NodeId node);

/// The four rows of the paper's Table `tab:gtcoe`.
struct PaperParams {
  double alpha = 6.58e-3;                        ///< every server and switch
  LinkParams server_link{6.40e-9, 1.22e-10, 9};  ///< row "Middle SW"
  LinkParams inner_link{6.40e-10, 6.00e-12, 9};  ///< row "Root SW"
  LinkParams cross_link{6.40e-9, 6.00e-11, 9};   ///< row "Cross DC"
  double cross_alpha = 3.00e-2;                  ///< row "Cross DC"
  ServerParams server{6.00e-10, 1.87e-10};       ///< row "Server"
};

/// `factors` from the root down: {16, 24} is 16 racks of 24 servers, {24} is a star. Throws InvalidArgument.
Topology make_tree(const std::vector<std::int64_t>& factors, const PaperParams& params = {});
/// Spines folded into one logical root: a leaf's uplink is `spines` cables, so beta and epsilon are divided by that
/// number and the incast threshold stays (every cable sees every sender; see src/topology/generators.cpp).
Topology make_leaf_spine(std::int64_t spines, std::int64_t leaves, std::int64_t servers,
                         const PaperParams& params = {});
/// The k-ary fat tree (k pods of k/2 edge switches of k/2 servers), cores and aggregations folded. k even.
Topology make_fat_tree(std::int64_t k, const PaperParams& params = {});

/// The names that `builtin_topology` knows: ss24 ss32 sym384 sym512 asy384 cdc384, the paper's networks.
std::span<const std::string_view> builtin_topologies();
bool is_builtin_topology(std::string_view name);  ///< true for the names of builtin_topologies
/// Throws InvalidArgument.
Topology builtin_topology(std::string_view name);

/// A kind of network that is made from numbers.
struct TopologyGenerator {
  std::string_view name;        ///< "leafspine"
  std::string_view form;        ///< how it is written: "leafspine:SPINESxLEAVESxSERVERS"
  std::string_view example;     ///< "leafspine:4x16x24"
  std::size_t num_factors = 0;  ///< how many numbers it takes; 0: any number of them
  Topology (*make)(const std::vector<std::int64_t>& factors) = nullptr;  ///< throws InvalidArgument
};
/// All generators, in the order in which people see them.
std::span<const TopologyGenerator> topology_generators();
/// A built-in name or a generator ("star:24", "tree:16x24", "leafspine:4x16x24", "fattree:8"). Throws InvalidArgument
/// with the forms that exist.
Topology topology_from_spec(std::string_view spec);

}  // namespace gar
