// TopologyDocument to Topology: the second half of reading a topology file.
//
// Nested form. "subtrees" refer to each other by name; they are resolved in dependency order (found on an explicit
// stack, since a hostile file may chain a million of them), so a reference never waits and a cycle is met and shown.
// The root node of a subtree gets its parameters from, weakest first: its classes, its own fields, the classes of the
// reference, the fields of the reference. A reference that changes nothing shares the node.
//
// Flat form. Parents are names; one pass joins them, a walk from the only root proves that nothing is left over.
//
// Both are linear in the file. Counts and depths are checked by Topology itself.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "gar/errors.hpp"
#include "gar/format.hpp"
#include "gar/network_words.hpp"
#include "gar/topology_io.hpp"
#include "io/text_file.hpp"
#include "io/topology/document.hpp"

namespace gar {
namespace {

// References that change parameters copy a list of children; this bounds what a short file can ask for.
constexpr std::size_t kMaxCopiedRuns = 10'000'000;

std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

// A node whose parameters are known but whose place in the tree is not.
struct Resolved {
  std::string name;
  ParamSet params;
  std::vector<ChildRun> children;
};

// What a node says about how long messages take, other than by alpha.
struct Time {
  std::int32_t spec = 0;                            // the node of the file
  bool is_in_words = false;                         // it says its bandwidth or its latency in words
  bool is_known = false;                            // it says alpha
  std::optional<double> end_to_end = std::nullopt;  // of a switch
};

class Resolver {
 public:
  explicit Resolver(const TopologyDocument& document) : document_(document) {}

  Topology run() {
    const NodeId root = document_.has_flat ? resolve_flat() : resolve_nested();
    const std::string stem = escaped(std::filesystem::path(document_.source).stem().string());
    try {
      return Topology(document_.name.empty() ? stem : document_.name, std::move(nodes_), root);
    } catch (const InvalidArgument& error) {
      throw ParseError(fmt::format("{}: {}: {}", document_.source, document_.has_flat ? "nodes" : "tree",
                                   printable(error.what(), 1000)));
    }
  }

 private:
  const NodeSpec& spec(std::int32_t id) const { return document_.nodes[index(id)]; }
  [[noreturn]] void fail(std::int32_t id, const char* field, const std::string& problem) const {
    document_.fail(document_.path_of(id) + "." + field, problem);
  }

  ParamSet own_params(const NodeSpec& node) const;
  NodeId emit(std::int32_t id, Resolved node, bool is_root);
  double need(std::int32_t id, const ParamSet& params, std::size_t param, const char* why) const;
  LinkParams link_of(std::int32_t id, const ParamSet& params) const;
  ServerParams server_of(std::int32_t id, const ParamSet& params, bool is_in_words) const;
  void settle_latencies(const std::vector<NodeId>& order);
  void check_kind(std::int32_t id, bool is_server) const;

  NodeId resolve_nested();
  std::vector<std::int32_t> subtree_order() const;
  void resolve_tree(const TreeSpec& tree);
  Resolved resolve_node(std::int32_t id);
  NodeId place(std::int32_t id, bool is_root);

  NodeId resolve_flat();
  std::int32_t find_flat_root(const std::vector<std::int32_t>& parent) const;
  void check_flat_cycles(const std::vector<std::int32_t>& parent, const std::vector<NodeId>& order) const;

  const TopologyDocument& document_;
  std::vector<Node> nodes_;
  std::vector<Time> times_;                   // by node
  std::vector<NodeId> placed_;                // node of each spec, once it is known
  std::vector<Resolved> subtrees_;            // by subtree
  std::vector<std::optional<NodeId>> plain_;  // by subtree: the node of references that change nothing
  std::size_t copied_runs_ = 0;
};

// What a node says about itself: its classes from left to right, then its own fields.
ParamSet Resolver::own_params(const NodeSpec& node) const {
  ParamSet params;
  for (const std::int32_t id : node.classes) params.override_with(document_.classes[index(id)].params);
  params.override_with(node.params);
  return params;
}

void Resolver::check_kind(std::int32_t id, bool is_server) const {
  const NodeKind kind = spec(id).kind;
  if (kind == NodeKind::kServer && !is_server)
    fail(id, "kind", "is \"server\", but the node has children; a server has none");
  if (kind == NodeKind::kSwitch && is_server)
    fail(id, "kind", "is \"switch\", but the node has no children; a switch needs at least one");
}

// Stores a node after checking that it has what its place needs and nothing that it cannot use.
NodeId Resolver::emit(std::int32_t id, Resolved resolved, bool is_root) {
  const bool is_server = resolved.children.empty();
  ParamSet& params = resolved.params;
  if (params.is_usual_latency && params.has[kAlpha]) params.has[kLatency] = false;
  for (const std::size_t param : {kBandwidth, kLatency}) {
    if (const std::string problem = said_twice(params, param); !problem.empty()) fail(id, kParamNames[param], problem);
  }
  if (is_root) {
    for (std::size_t param = kFirstLinkParam; param < kNumFields; ++param) {
      const bool is_link = param < kFirstServerParam || param == kBandwidth;
      if (is_link && spec(id).params.has[param]) {
        fail(id, kParamNames[param], "the root has no link to a parent; leave this field out");
      }
    }
  }
  Node node;
  node.name = std::move(resolved.name);
  times_.push_back({.spec = id, .is_in_words = params.has[kBandwidth] || params.has[kLatency]});
  if (params.has[kAlpha]) {
    node.alpha = params.value[kAlpha];
    times_.back().is_known = true;
  } else if (is_server) {
    if (!times_.back().is_in_words) need(id, params, kAlpha, "every node needs its latency in seconds");
    node.alpha = (params.has[kLatency] ? params.value[kLatency] : kTypicalLatency) / 2;
  } else if (params.has[kLatency] && !params.is_usual_latency) {
    times_.back().end_to_end = params.value[kLatency];
  }
  if (!is_root) node.uplink = link_of(id, params);
  if (is_server) {
    node.server = server_of(id, params, times_.back().is_in_words);
  } else {
    for (std::size_t param = kFirstServerParam; param < kNumParams; ++param) {
      if (params.has[param]) {
        fail(id, spec(id).params.has[param] ? kParamNames[param] : "class",
             fmt::format("gives {} to a node with children; only servers have it, and a server has no children",
                         kParamNames[param]));
      }
    }
  }
  node.children = std::move(resolved.children);
  nodes_.push_back(std::move(node));
  return static_cast<NodeId>(nodes_.size() - 1);
}

double Resolver::need(std::int32_t id, const ParamSet& params, std::size_t param, const char* why) const {
  if (!params.has[param]) fail(id, kParamNames[param], missing_param(why));
  return params.value[param];
}

// A link whose speed is said in words has no incast where none is said.
LinkParams Resolver::link_of(std::int32_t id, const ParamSet& params) const {
  const bool is_in_words = params.has[kBandwidth];
  LinkParams out = link_without_incast(is_in_words ? params.value[kBandwidth] : 0);
  const auto has = [&](double LinkParams::*value) {
    for (std::size_t i = 0; i < kLinkParams.size(); ++i) {
      if (kLinkParams[i].value == value) return params.has[kFirstLinkParam + i];
    }
    return false;
  };
  const bool has_incast = has(&LinkParams::epsilon) || has(&LinkParams::incast_threshold);
  for (std::size_t i = 0; i < kLinkParams.size(); ++i) {
    const std::size_t param = kFirstLinkParam + i;
    const bool is_said_otherwise = is_in_words && (kLinkParams[i].value == &LinkParams::beta || !has_incast);
    if (!params.has[param] && (kLinkParams[i].is_optional || is_said_otherwise)) continue;
    out.*kLinkParams[i].value = need(id, params, param, "every node but the root needs it for the link to its parent");
  }
  return out;
}

// The memory of a server whose link is said in words is the usual one where nothing is said.
ServerParams Resolver::server_of(std::int32_t id, const ParamSet& params, bool is_in_words) const {
  ServerParams out = is_in_words ? find_network_class(kTypicalServer)->server() : ServerParams{};
  for (std::size_t i = 0; i < kServerParams.size(); ++i) {
    const std::size_t param = kFirstServerParam + i;
    if (!params.has[param] && (kServerParams[i].is_optional || is_in_words)) continue;
    out.*kServerParams[i].value = need(id, params, param, "a node without children is a server and needs it");
  }
  return out;
}

// The alphas of switches of which a latency in words or nothing is said. Latencies in words are those of whole ways
// (gar/network_words.hpp), so a switch gets what the longest way that turns round there lacks. `order` has children
// before their parents.
void Resolver::settle_latencies(const std::vector<NodeId>& order) {
  std::vector<double> up(nodes_.size());      // of the longest way from a server up to the node, both included
  std::vector<double> turn(nodes_.size());    // of the longest way that turns round at the node
  std::vector<bool> in_words(nodes_.size());  // do servers below say it in words?
  for (const NodeId id : order) {
    Node& node = nodes_[index(id)];
    const Time& time = times_[index(id)];
    double longest = 0;
    double second = 0;
    double below = 0;
    bool has_switch = false;
    std::int64_t num_children = 0;
    in_words[index(id)] = time.is_in_words;
    for (const ChildRun& run : node.children) {
      const double way = up[index(run.node)];
      second = way > longest ? (run.count > 1 ? way : longest) : std::max(second, way);
      longest = std::max(longest, way);
      below = std::max(below, turn[index(run.node)]);
      has_switch = has_switch || !nodes_[index(run.node)].children.empty();
      in_words[index(id)] = in_words[index(id)] || in_words[index(run.node)];
      num_children += run.count;
    }
    const double without = num_children == 1 ? 2 * longest : longest + second;
    if (!node.children.empty() && !time.is_known) {
      if (time.end_to_end) {
        if (*time.end_to_end < without * (1 - 1e-9)) {
          fail(time.spec, kParamNames[kLatency],
               fmt::format("is {} for messages between servers that meet here, but those on the way need {} already; a "
                           "latency is that of the whole way, as a ping-pong shows it",
                           format_seconds(*time.end_to_end), format_seconds(without)));
        }
        node.alpha = std::max(*time.end_to_end - without, 0.0);
      } else {
        if (!in_words[index(id)]) {
          fail(time.spec, kParamNames[kAlpha], missing_param("every node needs its latency in seconds"));
        }
        node.alpha = has_switch ? std::max(below + kTypicalLevelLatency - without, 0.0) : 0;
      }
    }
    up[index(id)] = longest + node.alpha;
    turn[index(id)] = node.children.empty() ? 0 : without + node.alpha;
  }
}

// ---- nested form ----

NodeId Resolver::resolve_nested() {
  placed_.assign(document_.nodes.size(), -1);
  subtrees_.resize(document_.subtrees.size());
  plain_.resize(document_.subtrees.size());
  for (const std::int32_t i : subtree_order()) {
    const TreeSpec& tree = document_.subtrees[index(i)];
    if (spec(tree.begin).has_repeat) fail(tree.begin, "repeat", "belongs to the places that refer to the subtree");
    resolve_tree(tree);
    Resolved top = resolve_node(tree.begin);
    if (top.name.empty()) top.name = tree.name;
    subtrees_[index(i)] = std::move(top);
  }
  if (spec(document_.tree.begin).has_repeat)
    fail(document_.tree.begin, "repeat", "the root is there once; leave this field out");
  resolve_tree(document_.tree);
  const NodeId root = place(document_.tree.begin, true);
  std::vector<NodeId> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  settle_latencies(order);
  return root;
}

// The subtrees, each after those that it refers to.
std::vector<std::int32_t> Resolver::subtree_order() const {
  enum class State : char { kNew, kOpen, kDone };
  struct Open {
    std::int32_t subtree;
    std::int32_t next;  // node to look at
  };
  std::vector<State> state(document_.subtrees.size(), State::kNew);
  std::vector<std::int32_t> order;
  std::vector<Open> path;
  for (std::int32_t start = 0; index(start) < state.size(); ++start) {
    if (state[index(start)] == State::kDone) continue;
    path.push_back({start, document_.subtrees[index(start)].begin});
    state[index(start)] = State::kOpen;
    while (!path.empty()) {
      Open& top = path.back();
      if (top.next == document_.subtrees[index(top.subtree)].end) {
        state[index(top.subtree)] = State::kDone;
        order.push_back(top.subtree);
        path.pop_back();
        continue;
      }
      const std::int32_t id = top.next++;
      if (!spec(id).has_target) continue;
      const auto found = document_.subtree_ids.find(spec(id).target);
      if (found == document_.subtree_ids.end()) continue;  // reported where it is used
      const std::int32_t other = found->second;
      if (state[index(other)] == State::kDone) continue;
      if (state[index(other)] == State::kOpen) {
        std::string cycle;
        bool inside = false;
        for (const Open& open : path) {
          inside = inside || open.subtree == other;
          if (inside && cycle.size() < 400) cycle += printable(document_.subtrees[index(open.subtree)].name) + " -> ";
        }
        fail(id, "ref",
             fmt::format("the subtrees form a cycle: {}{}; a subtree cannot contain itself", cycle,
                         printable(spec(id).target)));
      }
      state[index(other)] = State::kOpen;
      path.push_back({other, document_.subtrees[index(other)].begin});
    }
  }
  return order;
}

// Places all nodes of a tree but its top. Children stand behind their parents in the file.
void Resolver::resolve_tree(const TreeSpec& tree) {
  for (std::int32_t id = tree.end - 1; id > tree.begin; --id) placed_[index(id)] = place(id, false);
}

// A node with all that is known about it, references followed.
Resolved Resolver::resolve_node(std::int32_t id) {
  const NodeSpec& node = spec(id);
  Resolved resolved;
  if (node.has_target) {
    const auto found = document_.subtree_ids.find(node.target);
    if (found == document_.subtree_ids.end()) {
      std::string names;
      for (const TreeSpec& tree : document_.subtrees) {
        if (names.size() < 200) names += (names.empty() ? "" : ", ") + printable(tree.name);
      }
      fail(id, "ref",
           fmt::format("there is no subtree \"{}\"; \"subtrees\" has {}", printable(node.target),
                       names.empty() ? "no entries" : names));
    }
    if (node.has_children) fail(id, "children", "a node has \"ref\" or \"children\", not both");
    if (node.kind != NodeKind::kUnsaid) fail(id, "kind", "is decided by the subtree that \"ref\" names; leave it out");
    resolved = subtrees_[index(found->second)];
    copied_runs_ += resolved.children.size();
    if (copied_runs_ > kMaxCopiedRuns) {
      fail(id, "ref",
           fmt::format("references with changed fields copy more than {} lists of children; give them the "
                       "same fields, or write fewer",
                       kMaxCopiedRuns));
    }
  } else {
    for (const std::int32_t child : node.children)
      resolved.children.push_back({placed_[index(child)], spec(child).repeat});
    check_kind(id, node.children.empty());
  }
  if (node.has_name) resolved.name = node.name;
  resolved.params.override_with(own_params(node));
  return resolved;
}

NodeId Resolver::place(std::int32_t id, bool is_root) {
  const NodeSpec& node = spec(id);
  const bool is_plain = node.has_target && !is_root && !node.has_name && node.classes.empty() && node.params.empty();
  const auto found = is_plain ? document_.subtree_ids.find(node.target) : document_.subtree_ids.end();
  if (found == document_.subtree_ids.end()) return emit(id, resolve_node(id), is_root);
  std::optional<NodeId>& shared = plain_[index(found->second)];
  if (!shared || node.has_children || node.kind != NodeKind::kUnsaid) shared = emit(id, resolve_node(id), false);
  return *shared;
}

// ---- flat form ----

NodeId Resolver::resolve_flat() {
  const auto size = static_cast<std::int32_t>(document_.nodes.size());
  std::unordered_map<std::string_view, std::int32_t> by_name;
  by_name.reserve(document_.nodes.size());
  for (std::int32_t id = 0; id < size; ++id) {
    const NodeSpec& node = spec(id);
    const auto [first, is_new] = by_name.try_emplace(node.name, id);
    if (is_new) continue;
    const NodeSpec& other = spec(first->second);
    const bool two_parents = other.target != node.target;
    fail(id, "name",
         fmt::format("\"{}\" is the name of nodes[{}] already{}", printable(node.name), first->second,
                     two_parents ? fmt::format(", with the parent \"{}\"; a node has exactly one parent, and "
                                               "each node is listed once",
                                               printable(other.target))
                                 : "; each node is listed once"));
  }
  std::vector<std::int32_t> parent(document_.nodes.size(), -1);
  std::vector<std::vector<ChildRun>> children(document_.nodes.size());
  for (std::int32_t id = 0; id < size; ++id) {
    if (!spec(id).has_target) continue;
    const auto found = by_name.find(spec(id).target);
    if (found == by_name.end()) {
      fail(id, "parent",
           fmt::format("there is no node \"{}\"; expected the name of another node of the list",
                       printable(spec(id).target)));
    }
    parent[index(id)] = found->second;
    children[index(found->second)].push_back({id, spec(id).repeat});
  }
  const std::int32_t root = find_flat_root(parent);
  std::vector<NodeId> reached{root};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const ChildRun& run : children[index(reached[i])]) reached.push_back(run.node);
  }
  check_flat_cycles(parent, reached);
  if (spec(root).has_repeat) fail(root, "repeat", "the root is there once; leave this field out");
  for (std::int32_t id = 0; id < size; ++id) {
    check_kind(id, children[index(id)].empty());
    emit(id, {spec(id).name, own_params(spec(id)), std::move(children[index(id)])}, id == root);
  }
  std::reverse(reached.begin(), reached.end());
  settle_latencies(reached);
  return root;
}

std::int32_t Resolver::find_flat_root(const std::vector<std::int32_t>& parent) const {
  const auto root = std::find(parent.begin(), parent.end(), -1);
  if (root == parent.end()) {
    check_flat_cycles(parent, {});
    document_.fail("nodes", "there is no root");
  }
  const auto second = std::find(root + 1, parent.end(), -1);
  const auto id = static_cast<std::int32_t>(root - parent.begin());
  if (second != parent.end()) {
    const auto other = static_cast<std::int32_t>(second - parent.begin());
    fail(other, "parent",
         fmt::format("missing: \"{}\" and nodes[{}] \"{}\" are both roots ({} nodes have no parent); expected exactly "
                     "one root",
                     printable(spec(other).name), id, printable(spec(id).name),
                     std::count(parent.begin(), parent.end(), -1)));
  }
  return id;
}

// Every node has a parent, so whoever the root does not reach is on a cycle or below one.
void Resolver::check_flat_cycles(const std::vector<std::int32_t>& parent, const std::vector<NodeId>& reached) const {
  if (reached.size() == parent.size()) return;
  std::vector<bool> is_reached(parent.size(), false);
  for (const NodeId id : reached) is_reached[index(id)] = true;
  auto at = static_cast<std::int32_t>(std::find(is_reached.begin(), is_reached.end(), false) - is_reached.begin());
  std::vector<bool> seen(parent.size(), false);
  while (!seen[index(at)]) {
    seen[index(at)] = true;
    at = parent[index(at)];
  }
  std::string cycle = printable(spec(at).name);
  std::int32_t next = parent[index(at)];
  while (next != at && cycle.size() < 400) {
    cycle += " -> " + printable(spec(next).name);
    next = parent[index(next)];
  }
  fail(at, "parent",
       fmt::format("the parents form a cycle: {} -> {}; a topology is a tree with one root", cycle,
                   next == at ? printable(spec(at).name) : "..."));
}

}  // namespace

Topology parse_topology(std::string_view text, const std::string& source) {
  if (text.size() > static_cast<std::size_t>(kMaxTopologyBytes)) {
    throw ParseError(fmt::format("{}: has {} bytes; expected at most {}", source, text.size(), kMaxTopologyBytes));
  }
  const TopologyDocument document = parse_topology_document(text, source);
  return Resolver(document).run();
}

}  // namespace gar
