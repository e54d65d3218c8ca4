// The validated, shared tree.
//
// Problem: nodes come in any order, from people and from generators, may refer to each other in any way, and may
// describe millions of servers through runs {node, count}. Everything downstream wants a tree that is known to be
// sound, whose identical parts are stored once, and in which the way to a rank is found without expanding anything.
//
// Idea: one depth-first walk from the root, on an explicit stack because a broken input may be one chain of a
// million nodes, yields the nodes children first and meets every cycle. In that order each node is interned twice:
// with its name, so that equal nodes become one, and without names, which is its shape. Counts are multiplied bottom up
// and stopped at the limit before they can overflow.
//
// Complexity: O(nodes + runs) time and memory, whatever the number of servers.
#include "gar/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/hash.hpp"
#include "gar/errors.hpp"
#include "topology/names.hpp"

namespace gar {
namespace {

std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }

// What two nodes of one shape have in common. `runs` refer to shapes (or to nodes, when nodes themselves are compared).
struct Form {
  double alpha = 0;
  LinkParams uplink;
  ServerParams server;
  std::vector<ChildRun> runs;
  bool operator==(const Form&) const = default;
};

struct FormHash {
  std::size_t operator()(const Form& form) const {
    std::uint64_t seed = form.runs.size();
    seed = mix_in(seed, form.alpha);
    for (const auto& param : kLinkParams) seed = mix_in(seed, form.uplink.*param.value);
    for (const auto& param : kServerParams) seed = mix_in(seed, form.server.*param.value);
    for (const ChildRun& run : form.runs) {
      seed = mix_in(seed, run.node);
      seed = mix_in(seed, run.count);
    }
    return static_cast<std::size_t>(seed);
  }
};

// Appends a run, or lengthens the last one when it is the same node.
void append_run(std::vector<ChildRun>& runs, ChildRun run) {
  if (!runs.empty() && runs.back().node == run.node) {
    if (run.count > std::numeric_limits<std::int64_t>::max() - runs.back().count) {
      throw InvalidArgument(fmt::format("too many children in a row; expected at most {} servers", kMaxServers));
    }
    runs.back().count += run.count;
  } else {
    runs.push_back(run);
  }
}

[[noreturn]] void throw_cycle(const std::vector<Node>& nodes, const std::vector<NodeId>& path, NodeId again) {
  const auto begin = std::find(path.begin(), path.end(), again);
  const auto length = path.end() - begin;
  std::string text;
  for (auto it = begin; it != path.end(); ++it) {
    if (it - begin == 8 && length > 10) {
      text += fmt::format("... ({} nodes) -> ", length);
      break;
    }
    text += fmt::format("'{}' -> ", nodes[index(*it)].name);
  }
  throw InvalidArgument(fmt::format("the nodes form a cycle: {}'{}'; a topology is a tree, every node has one parent",
                                    text, nodes[index(again)].name));
}

// The nodes that can be reached from the root, children before parents.
std::vector<NodeId> children_first(const std::vector<Node>& nodes, NodeId root) {
  enum class State : char { kNew, kOpen, kDone };
  std::vector<State> state(nodes.size(), State::kNew);
  std::vector<NodeId> order;
  std::vector<NodeId> path{root};
  std::vector<std::size_t> next_run{0};
  state[index(root)] = State::kOpen;
  while (!path.empty()) {
    const NodeId id = path.back();
    const Node& node = nodes[index(id)];
    if (next_run.back() == node.children.size()) {
      state[index(id)] = State::kDone;
      order.push_back(id);
      path.pop_back();
      next_run.pop_back();
      continue;
    }
    const NodeId child = node.children[next_run.back()++].node;
    if (child < 0 || index(child) >= nodes.size()) {
      throw InvalidArgument(fmt::format("node '{}': child {} does not exist; there are {} nodes, counted from 0",
                                        node.name, child, nodes.size()));
    }
    if (state[index(child)] == State::kOpen) throw_cycle(nodes, path, child);
    if (state[index(child)] == State::kDone) continue;
    state[index(child)] = State::kOpen;
    path.push_back(child);
    next_run.push_back(0);
  }
  return order;
}

// Returns the value, or 0 for -0, so that equal parameters have equal bits, and for what is too small to matter.
double checked(double value, double most, const char* field, const Node& node) {
  if (!(value >= 0 && value <= most)) {
    throw InvalidArgument(
        fmt::format("node '{}': {} is {}; expected a number from 0 to {:g}", node.name, field, value, most));
  }
  return value < kLeastParameter ? 0 : value;
}

// Checks one node and clears what it does not use.
void normalise(Node& node, bool is_root) {
  if (node.name.empty()) node.name = node.is_server() ? "server" : (is_root ? "root" : "switch");
  const std::string problem = name_problem(node.name);
  if (!problem.empty()) throw InvalidArgument(problem);
  node.alpha = checked(node.alpha, kMaxParameter, "alpha", node);
  if (is_root) {
    node.uplink = {};
  } else {
    for (const auto& [name, unit, value, is_optional, most] : kLinkParams) {
      node.uplink.*value = checked(node.uplink.*value, most, name, node);
    }
  }
  if (node.is_server()) {
    for (const auto& [name, unit, value, is_optional, most] : kServerParams) {
      node.server.*value = checked(node.server.*value, most, name, node);
    }
  } else {
    node.server = {};
  }
}

struct NodeHash {
  const std::vector<Node>* nodes;
  std::size_t operator()(NodeId id) const {
    const Node& node = (*nodes)[index(id)];
    std::uint64_t seed = mix_in(node.children.size(), node.name);
    seed = mix_in(seed, node.alpha);
    seed = mix_in(seed, node.uplink.beta);
    seed = mix_in(seed, node.server.gamma);
    for (const ChildRun& run : node.children) {
      seed = mix_in(seed, run.node);
      seed = mix_in(seed, run.count);
    }
    return static_cast<std::size_t>(seed);
  }
};

struct NodeEqual {
  const std::vector<Node>* nodes;
  bool operator()(NodeId a, NodeId b) const {
    const Node& x = (*nodes)[index(a)];
    const Node& y = (*nodes)[index(b)];
    return x.name == y.name && x.alpha == y.alpha && x.uplink == y.uplink && x.server == y.server &&
           x.children == y.children;
  }
};

// Two siblings must not end up with the same numbered name: "rack" three times next to one "rack1".
void check_siblings(const Node& parent, const std::unordered_map<std::string_view, std::int64_t>& instances) {
  for (const auto& [name, count] : instances) {
    std::size_t digits = name.size();
    std::int64_t number = 0;
    std::int64_t power = 1;
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9' && power <= kMaxServers) {
      --digits;
      number += (name[digits] - '0') * power;
      power *= 10;
      const bool is_canonical = name[digits] != '0' || (digits + 1 == name.size() && count == 1);
      const auto other = instances.find(name.substr(0, digits));
      if (!is_canonical || other == instances.end() || other->second < 2) continue;
      if ((count == 1 ? number : number * 10) < other->second) {
        throw InvalidArgument(fmt::format(
            "below '{}' two children would be called '{}{}': '{}' is there {} times and its instances are numbered "
            "from 0; rename '{}'",
            parent.name, name, count == 1 ? "" : "0", other->first, other->second, name));
      }
    }
  }
}

}  // namespace

Topology::Topology(std::string name, std::vector<Node> nodes, NodeId root) : name_(std::move(name)) {
  if (nodes.empty()) throw InvalidArgument("a topology needs at least one server; there are no nodes");
  if (nodes.size() > static_cast<std::size_t>(std::numeric_limits<NodeId>::max())) {
    throw InvalidArgument(fmt::format("{} distinct nodes; expected at most 2^31 - 1", nodes.size()));
  }
  if (root < 0 || index(root) >= nodes.size()) {
    throw InvalidArgument(
        fmt::format("root {} does not exist; there are {} nodes, counted from 0", root, nodes.size()));
  }

  std::vector<NodeId> new_id(nodes.size(), -1);
  std::unordered_set<NodeId, NodeHash, NodeEqual> interned(16, NodeHash{&nodes_}, NodeEqual{&nodes_});
  std::unordered_map<Form, std::int32_t, FormHash> shapes;
  for (const NodeId old_id : children_first(nodes, root)) {
    Node& node = nodes[index(old_id)];
    normalise(node, old_id == root);
    std::vector<ChildRun> runs;
    for (const ChildRun& run : node.children) {
      if (run.count < 1) {
        throw InvalidArgument(
            fmt::format("node '{}': a child is repeated {} times; expected at least 1", node.name, run.count));
      }
      append_run(runs, {new_id[index(run.node)], run.count});
    }
    node.children = std::move(runs);
    nodes_.push_back(std::move(node));
    const auto id = static_cast<NodeId>(nodes_.size() - 1);
    const auto [found, is_new] = interned.insert(id);
    new_id[index(old_id)] = *found;
    if (!is_new) {
      nodes_.pop_back();
      continue;
    }
    count(id);
    index_names(id);
    const Node& stored = nodes_.back();
    Form form{stored.alpha, stored.uplink, stored.server, {}};
    for (const ChildRun& run : stored.children) append_run(form.runs, {shape_[index(run.node)], run.count});
    shape_.push_back(shapes.try_emplace(std::move(form), static_cast<std::int32_t>(shapes.size())).first->second);
  }
  root_ = new_id[index(root)];
  num_shapes_ = static_cast<std::int32_t>(shapes.size());
}

// Servers, switches, children and height of a node whose children are known, and the first server of each run.
void Topology::count(NodeId id) {
  const Node& node = nodes_[index(id)];
  std::int64_t servers = node.is_server() ? 1 : 0;
  std::int64_t switches = node.is_server() ? 0 : 1;
  std::int64_t children = 0;
  int height = 0;
  run_begin_.push_back(run_first_server_.size());
  for (const ChildRun& run : node.children) {
    run_first_server_.push_back(servers);
    const std::int64_t below = num_servers(run.node);
    if (run.count > (kMaxServers - servers) / below) {
      throw InvalidArgument(
          fmt::format("below '{}' are more than {} servers (there are {} x '{}' with {} each); "
                      "expected at most {}",
                      node.name, kMaxServers, run.count, nodes_[index(run.node)].name, below, kMaxServers));
    }
    servers += run.count * below;
    switches += run.count * num_switches(run.node);
    children += run.count;
    height = std::max(height, this->height(run.node) + 1);
  }
  if (height > kMaxDepth) {
    throw InvalidArgument(
        fmt::format("'{}' has more than {} levels below it; expected at most {}", node.name, kMaxDepth, kMaxDepth));
  }
  num_servers_.push_back(servers);
  num_switches_.push_back(switches);
  num_children_.push_back(children);
  height_.push_back(height);
}

// Numbers the instances of siblings that share a name.
void Topology::index_names(NodeId id) {
  const std::vector<ChildRun>& runs = nodes_[index(id)].children;
  if (runs.size() == 1) {
    run_first_index_.push_back(runs[0].count == 1 ? -1 : 0);
    return;
  }
  std::unordered_map<std::string_view, std::int64_t> instances;
  for (const ChildRun& run : runs) {
    std::int64_t& seen = instances[nodes_[index(run.node)].name];
    run_first_index_.push_back(seen);
    seen += run.count;
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (instances[nodes_[index(runs[i].node)].name] == 1) run_first_index_[run_begin_[index(id)] + i] = -1;
  }
  check_siblings(nodes_[index(id)], instances);
}

ChildPosition Topology::child_at(NodeId id, std::int64_t server) const {
  const std::vector<ChildRun>& runs = node(id).children;
  const auto first = run_first_server_.begin() + static_cast<std::ptrdiff_t>(run_begin_[index(id)]);
  const auto last = first + static_cast<std::ptrdiff_t>(runs.size());
  const auto run = static_cast<std::size_t>(std::upper_bound(first, last, server) - first) - 1;
  const std::int64_t size = num_servers(runs[run].node);
  const std::int64_t run_first = first[static_cast<std::ptrdiff_t>(run)];
  const std::int64_t instance = (server - run_first) / size;
  return {runs[run].node, run, instance, run_first + instance * size};
}

namespace {

void check_rank(const Topology& topology, std::int64_t rank) {
  if (rank < 0 || rank >= topology.num_servers()) {
    throw InvalidArgument(fmt::format("rank {} does not exist; '{}' has ranks 0 to {}", rank, topology.name(),
                                      topology.num_servers() - 1));
  }
}

// Sum of alpha from a child of `id` down to the server.
double latency_below(const Topology& topology, NodeId id, std::int64_t server) {
  double sum = 0;
  while (!topology.node(id).is_server()) {
    const ChildPosition child = topology.child_at(id, server);
    server -= child.first_server;
    id = child.node;
    sum += topology.node(id).alpha;
  }
  return sum;
}

}  // namespace

double Topology::path_latency(std::int64_t a, std::int64_t b) const {
  check_rank(*this, a);
  check_rank(*this, b);
  if (a == b) return 0;
  NodeId meet = root_;
  while (true) {
    const ChildPosition child = child_at(meet, a);
    if (b < child.first_server || b >= child.first_server + num_servers(child.node)) break;
    a -= child.first_server;
    b -= child.first_server;
    meet = child.node;
  }
  return node(meet).alpha + latency_below(*this, meet, a) + latency_below(*this, meet, b);
}

std::string Topology::instance_name(std::int64_t rank, int depth) const {
  check_rank(*this, rank);
  const auto refuse = [&](int levels) {
    throw InvalidArgument(
        fmt::format("there is no node at depth {} above rank {}; expected 0 to {}", depth, rank, levels));
  };
  if (depth < 0) refuse(height(root_));
  if (depth == 0) return node(root_).name;
  std::string path;
  NodeId id = root_;
  std::int64_t server = rank;
  for (int level = 0; level < depth; ++level) {
    if (node(id).is_server()) refuse(level);
    const ChildPosition child = child_at(id, server);
    const std::int64_t first_index = run_first_index_[run_begin_[index(id)] + child.run];
    if (level > 0) path += '/';
    path += node(child.node).name;
    if (first_index >= 0) path += std::to_string(first_index + child.index);
    server -= child.first_server;
    id = child.node;
  }
  return path;
}

// Below every switch the two slowest ways down meet; `down` is the slowest way from a node to one of its servers.
double longest_path_latency(const Topology& topology) {
  std::vector<double> down(index(topology.num_nodes()));
  double longest = 0;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const double alpha = topology.node(id).alpha;
    double first = 0;
    double second = 0;
    for (const ChildRun& run : topology.node(id).children) {
      const double below = down[index(run.node)];
      second = std::max(second, run.count > 1 ? below : std::min(first, below));
      first = std::max(first, below);
    }
    down[index(id)] = alpha + first;
    if (topology.num_children(id) > 1) longest = std::max(longest, alpha + first + second);
  }
  return longest;
}

}  // namespace gar
