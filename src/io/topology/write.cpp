// Topology to a file of schema "gar.topology/1".
//
// Nodes that stand in several places become "subtrees", parameters that several nodes share become "classes", so that
// the file is as large as the distinct parts of the tree and reads like one written by hand. Numbers are written with
// as many digits as it takes to read the same double again.
#include <fmt/format.h>

#include <array>
#include <map>
#include <ostream>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/index.hpp"
#include "gar/topology_io.hpp"
#include "io/json_text.hpp"
#include "io/topology/document.hpp"

namespace gar {
namespace {

// Names that are new each time: "rack", "rack-2", "rack-3".
class UniqueNames {
 public:
  std::string next(const std::string& base) {
    int& count = counts_[base];
    std::string name = count == 0 ? base : fmt::format("{}-{}", base, count + 1);
    ++count;
    while (!taken_.insert(name).second) name = fmt::format("{}-{}", base, ++count);
    return name;
  }

 private:
  std::unordered_map<std::string, int> counts_;
  std::unordered_set<std::string> taken_;
};

/// Whether a node is a server, and all its parameters.
using ParamKey = std::pair<bool, std::array<double, kNumParams>>;

class Writer {
 public:
  Writer(const Topology& topology, std::ostream& out) : topology_(topology), out_(out) {}

  void write() {
    find_subtrees();
    find_classes();
    out_ << "{\n  \"schema\": \"" << kTopologySchema << "\",\n  \"name\": " << quoted(topology_.name());
    if (!classes_.empty()) write_classes();
    if (!subtree_order_.empty()) write_subtrees();
    out_ << ",\n  \"tree\": ";
    write_node(topology_.root(), 1, 2);
    out_ << "\n}\n";
  }

 private:
  ParamKey key(const Node& node) const {
    ParamKey out{node.is_server(), {node.alpha}};
    for (std::size_t i = 0; i < kLinkParams.size(); ++i) {
      out.second[kFirstLinkParam + i] = node.uplink.*kLinkParams[i].value;
    }
    for (std::size_t i = 0; i < kServerParams.size(); ++i) {
      out.second[kFirstServerParam + i] = node.server.*kServerParams[i].value;
    }
    return out;
  }

  // Nodes that more than one run refers to.
  void find_subtrees() {
    std::vector<int> uses(idx(topology_.num_nodes()), 0);
    for (NodeId id = 0; id < topology_.num_nodes(); ++id) {
      for (const ChildRun& run : topology_.node(id).children) ++uses[idx(run.node)];
    }
    subtree_name_.resize(uses.size());
    UniqueNames names;
    for (NodeId id = 0; id < topology_.num_nodes(); ++id) {
      if (uses[idx(id)] < 2) continue;
      subtree_name_[idx(id)] = names.next(topology_.node(id).name);
      subtree_order_.push_back(id);
    }
  }

  // Parameters that more than one node has. The root has no link, so it stays outside.
  void find_classes() {
    std::map<ParamKey, std::pair<int, NodeId>> uses;
    for (NodeId id = 0; id < topology_.num_nodes(); ++id) {
      if (id != topology_.root()) ++uses.try_emplace(key(topology_.node(id)), 0, id).first->second.first;
    }
    UniqueNames names;
    for (NodeId id = 0; id < topology_.num_nodes(); ++id) {
      if (id == topology_.root()) continue;
      const auto& [count, first] = uses.at(key(topology_.node(id)));
      if (count < 2 || first != id) continue;
      class_name_[key(topology_.node(id))] = names.next(topology_.node(id).name);
      classes_.push_back(id);
    }
  }

  void write_params(const Node& node, bool is_root) {
    out_ << fmt::format("\"alpha\": {}", node.alpha);
    const auto write_all = [&](const auto& table, const auto& params) {
      for (const auto& [name, unit, value, is_optional, most] : table) {
        if (!is_optional || params.*value > 0) out_ << fmt::format(", \"{}\": {}", name, params.*value);
      }
    };
    if (!is_root) write_all(kLinkParams, node.uplink);
    if (node.is_server()) write_all(kServerParams, node.server);
  }

  void write_classes() {
    out_ << ",\n  \"classes\": {";
    const char* separator = "\n";
    for (const NodeId id : classes_) {
      out_ << separator << "    " << quoted(class_name_.at(key(topology_.node(id)))) << ": {";
      write_params(topology_.node(id), false);
      out_ << "}";
      separator = ",\n";
    }
    out_ << "\n  }";
  }

  void write_subtrees() {
    out_ << ",\n  \"subtrees\": {";
    const char* separator = "\n";
    for (const NodeId id : subtree_order_) {
      out_ << separator << "    " << quoted(subtree_name_[idx(id)]) << ": ";
      write_node(id, 1, 4);
      separator = ",\n";
    }
    out_ << "\n  }";
  }

  // At most kMaxDepth levels deep.
  void write_node(NodeId id, std::int64_t repeat, int indent) {
    const Node& node = topology_.node(id);
    out_ << "{\"name\": " << quoted(node.name) << ", ";
    if (repeat > 1) out_ << fmt::format("\"repeat\": {}, ", repeat);
    const auto shared = id == topology_.root() ? class_name_.end() : class_name_.find(key(node));
    if (shared != class_name_.end()) {
      out_ << "\"class\": " << quoted(shared->second);
    } else {
      write_params(node, id == topology_.root());
    }
    if (!node.is_server()) {
      out_ << ", \"children\": [";
      const char* separator = "\n";
      for (const ChildRun& run : node.children) {
        out_ << separator << fmt::format("{:{}}", "", indent + 2);
        if (subtree_name_[idx(run.node)].empty()) {
          write_node(run.node, run.count, indent + 2);
        } else {
          out_ << "{\"ref\": " << quoted(subtree_name_[idx(run.node)]);
          if (run.count > 1) out_ << fmt::format(", \"repeat\": {}", run.count);
          out_ << "}";
        }
        separator = ",\n";
      }
      out_ << "]";
    }
    out_ << "}";
  }

  const Topology& topology_;
  std::ostream& out_;
  std::vector<std::string> subtree_name_;  // by node; empty when the node stands in one place
  std::vector<NodeId> subtree_order_;
  std::map<ParamKey, std::string> class_name_;
  std::vector<NodeId> classes_;
};

}  // namespace

void write_topology(const Topology& topology, std::ostream& out) { Writer(topology, out).write(); }

}  // namespace gar
