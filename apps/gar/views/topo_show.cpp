#include "apps/gar/views/topo_show.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "apps/gar/cli/output.hpp"

namespace gar::cli {
namespace {

constexpr double kBitsPerFloat = 32;
// Lines of a drawing, and folded children of one switch, beyond which the rest is only counted.
constexpr std::size_t kMaxLines = 120;
constexpr std::size_t kMaxFolds = 16;

std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

// Children of one switch that are drawn as one line: they have the same shape.
struct Fold {
  NodeId first = 0;
  NodeId last = 0;
  std::int64_t count = 0;
  std::int64_t first_index = -1;  // of the numbered names, where siblings outside the fold have the same name
  bool is_interleaved = false;
};

// "rack0 ... rack7" instead of "rack" when other siblings are racks too.
void number_folds(const Topology& topology, const std::vector<ChildRun>& runs, std::vector<Fold>& folds) {
  std::map<std::string_view, std::int64_t> total;
  for (const ChildRun& run : runs) total[topology.node(run.node).name] += run.count;
  std::map<std::string_view, std::int64_t> before;
  std::size_t run = 0;
  for (Fold& fold : folds) {
    const std::string_view name = topology.node(fold.first).name;
    bool is_one_name = true;
    const std::int64_t first_index = before[name];
    for (std::int64_t left = fold.count; left > 0; ++run) {
      const std::string_view run_name = topology.node(runs[run].node).name;
      is_one_name = is_one_name && run_name == name;
      before[run_name] += runs[run].count;
      left -= runs[run].count;
    }
    if (is_one_name && total[name] > fold.count) fold.first_index = first_index;
  }
}

// Neighbours of one shape are folded. When that leaves too many, so are those that stand apart.
std::vector<Fold> fold_children(const Topology& topology, NodeId id) {
  std::vector<Fold> folds;
  for (const ChildRun& run : topology.node(id).children) {
    if (!folds.empty() && topology.shape(folds.back().first) == topology.shape(run.node)) {
      folds.back().last = run.node;
      folds.back().count += run.count;
    } else {
      folds.push_back({run.node, run.node, run.count});
    }
  }
  number_folds(topology, topology.node(id).children, folds);
  if (folds.size() <= kMaxFolds) return folds;
  std::map<std::int32_t, std::size_t> by_shape;
  std::vector<Fold> merged;
  for (const Fold& fold : folds) {
    const auto [found, is_new] = by_shape.try_emplace(topology.shape(fold.first), merged.size());
    if (is_new) {
      merged.push_back(fold);
    } else {
      Fold& into = merged[found->second];
      into.last = fold.last;
      into.count += fold.count;
      into.is_interleaved = true;
    }
  }
  return merged;
}

std::string fold_name(const Topology& topology, const Fold& fold) {
  const std::string& base = topology.node(fold.first).name;
  std::string name = base;
  if (fold.first_index >= 0 && !fold.is_interleaved) {
    name = fmt::format("{}{}", base, fold.first_index);
    if (fold.count > 1) name += fmt::format(" ... {}{}", base, fold.first_index + fold.count - 1);
  } else if (fold.count > 1 && topology.node(fold.last).name != base) {
    name += " ... " + topology.node(fold.last).name;
  }
  if (fold.count > 1) name = fmt::format("{} x {}", format_grouped(fold.count), name);
  if (fold.is_interleaved) name += " (interleaved)";
  return name;
}

// Bandwidth of all children over that of the uplink; below 0 where a link is unlimited or there is none.
double oversubscription(const Topology& topology, NodeId id) {
  const Node& node = topology.node(id);
  if (id == topology.root() || node.is_server() || node.uplink.beta == 0) return -1;
  double children = 0;
  for (const ChildRun& run : node.children) {
    const double beta = topology.node(run.node).uplink.beta;
    if (beta == 0) return -1;
    children += static_cast<double>(run.count) / beta;
  }
  return children * node.uplink.beta;
}

class Drawing {
 public:
  Drawing(const Topology& topology, const TopoShowOptions& options)
      : topology_(topology),
        options_(options),
        is_drawn_(index(topology.num_shapes()), false),
        table_({{"network"},
                {"servers", true},
                {"latency", true},
                {"uplink", true},
                {"s/float", true},
                {"incast", false},
                {""}}) {}

  std::string draw() {
    add_node("", topology_.node(topology_.root()).name, topology_.root());
    add_children("", topology_.root());
    return table_.to_string(options_.color);
  }

 private:
  void add_node(const std::string& branch, const std::string& name, NodeId id) {
    const Node& node = topology_.node(id);
    std::vector<Cell> cells{Cell(branch + name, node.is_server() ? Paint::kPlain : Paint::kCyan),
                            node.is_server() ? Cell("") : Cell(format_grouped(topology_.num_servers(id))),
                            format_seconds(node.alpha, 3)};
    if (id == topology_.root()) {
      cells.resize(6, Cell(""));
    } else {
      cells.emplace_back(format_link_speed(node.uplink.beta));
      cells.emplace_back(fmt::format("{:.4g}", node.uplink.beta));
      cells.emplace_back(node.uplink.epsilon == 0
                             ? "none"
                             : fmt::format("+{:.4g} > {:.4g}", node.uplink.epsilon, node.uplink.incast_threshold));
    }
    const double ratio = oversubscription(topology_, id);
    if (node.is_server()) {
      cells.emplace_back(fmt::format("gamma {:.4g}, delta {:.4g}", node.server.gamma, node.server.delta));
    } else if (ratio >= 0) {
      cells.emplace_back(fmt::format("{:.3g}:1 {}", ratio, ratio > 1 + 1e-9 ? "oversubscribed" : "(full bandwidth)"),
                         ratio > 1 + 1e-9 ? Paint::kYellow : Paint::kPlain);
    }
    table_.add_row(std::move(cells));
    ++num_lines_;
  }

  bool is_full() const { return !options_.full && num_lines_ >= kMaxLines; }

  // At most kMaxDepth levels deep.
  void add_children(const std::string& indent, NodeId id) {
    const std::vector<Fold> folds = fold_children(topology_, id);
    std::size_t shown = options_.full ? folds.size() : std::min(folds.size(), kMaxFolds);
    for (std::size_t i = 0; i < shown; ++i) {
      if (is_full()) shown = i + 1;
      const bool is_last = i + 1 == folds.size();
      const NodeId child = folds[i].first;
      const bool is_known = !topology_.node(child).is_server() && is_drawn_[index(topology_.shape(child))];
      add_node(indent + (is_last ? "└─ " : "├─ "), fold_name(topology_, folds[i]) + (is_known ? " (as above)" : ""),
               child);
      if (is_known || topology_.node(child).is_server()) continue;
      const std::string below = indent + (is_last ? "   " : "│  ");
      if (is_full()) {
        table_.add_row({Cell(below + "└─ ...", Paint::kDim)});
        continue;
      }
      is_drawn_[index(topology_.shape(child))] = true;
      add_children(below, child);
    }
    if (shown < folds.size()) add_rest(indent, folds, shown);
  }

  void add_rest(const std::string& indent, const std::vector<Fold>& folds, std::size_t shown) {
    std::int64_t children = 0;
    std::int64_t servers = 0;
    for (std::size_t i = shown; i < folds.size(); ++i) {
      children += folds[i].count;
      servers += folds[i].count * topology_.num_servers(folds[i].first);
    }
    table_.add_row(
        {Cell(fmt::format("{}└─ ... {} more of {} kinds", indent, children, folds.size() - shown), Paint::kDim),
         format_grouped(servers)});
    ++num_lines_;
  }

  const Topology& topology_;
  TopoShowOptions options_;
  std::vector<bool> is_drawn_;  // by shape
  Table table_;
  std::size_t num_lines_ = 0;
};

// The last stored node of each shape, the root first.
std::vector<NodeId> one_of_each_shape(const Topology& topology) {
  std::vector<NodeId> nodes;
  std::vector<bool> seen(index(topology.num_shapes()), false);
  for (NodeId id = topology.root(); id >= 0; --id) {
    if (seen[index(topology.shape(id))]) continue;
    seen[index(topology.shape(id))] = true;
    nodes.push_back(id);
  }
  return nodes;
}

// Instances of each shape in the whole tree.
std::vector<std::int64_t> shape_counts(const Topology& topology) {
  std::vector<std::int64_t> instances(index(topology.num_nodes()), 0);
  std::vector<std::int64_t> counts(index(topology.num_shapes()), 0);
  instances[index(topology.root())] = 1;
  for (NodeId id = topology.root(); id >= 0; --id) {
    counts[index(topology.shape(id))] += instances[index(id)];
    for (const ChildRun& run : topology.node(id).children) {
      instances[index(run.node)] += instances[index(id)] * run.count;
    }
  }
  return counts;
}

}  // namespace

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

std::string draw_topology(const Topology& topology, const TopoShowOptions& options) {
  constexpr const char* kLegend =
      "latency       alpha; the nodes on a path, both servers included, add up\n"
      "s/float       beta: seconds for one float of 4 bytes\n"
      "incast        epsilon: extra s/float for every sender beyond the threshold\n"
      "gamma, delta  s/float added, s/float read from or written to memory\n";
  return fmt::format("{}: {}\n\n{}\n{}", paint(topology.name(), Paint::kBold, options.color), topology_totals(topology),
                     Drawing(topology, options).draw(), paint(kLegend, Paint::kDim, options.color));
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

void add_topology_json(const Topology& topology, Json& document) {
  document["name"] = topology.name();
  document["num_servers"] = topology.num_servers();
  document["num_switches"] = topology.num_switches();
  document["levels"] = topology.height(topology.root());
  document["distinct_subtrees"] = topology.num_shapes();
  document["longest_path_seconds"] = longest_path_latency(topology);
  const std::vector<std::int64_t> counts = shape_counts(topology);
  const std::vector<NodeId> nodes = one_of_each_shape(topology);
  std::vector<std::size_t> place(index(topology.num_shapes()));
  for (std::size_t i = 0; i < nodes.size(); ++i) place[index(topology.shape(nodes[i]))] = i;
  Json list = Json::array();
  for (const NodeId id : nodes) {
    const Node& node = topology.node(id);
    Json entry;
    entry["name"] = node.name;
    entry["kind"] = node.is_server() ? "server" : "switch";
    entry["count"] = counts[index(topology.shape(id))];
    entry["num_servers"] = topology.num_servers(id);
    entry["alpha"] = node.alpha;
    if (id != topology.root()) {
      for (const auto& param : kLinkParams) {
        if (!param.is_optional) entry[param.name] = node.uplink.*param.value;
      }
      if (node.uplink.beta > 0) entry["bits_per_s"] = kBitsPerFloat / node.uplink.beta;
    }
    if (node.is_server()) {
      for (const auto& param : kServerParams) entry[param.name] = node.server.*param.value;
    }
    const double ratio = oversubscription(topology, id);
    if (ratio >= 0) entry["oversubscription"] = ratio;
    for (const ChildRun& run : node.children) {
      const std::size_t child = place[index(topology.shape(run.node))];
      Json& children = entry["children"];
      if (!children.empty() && children.back()["node"] == child) {
        children.back()["count"] = children.back()["count"].get<std::int64_t>() + run.count;
      } else {
        children.push_back({{"node", child}, {"count", run.count}});
      }
    }
    list.push_back(std::move(entry));
  }
  document["nodes"] = std::move(list);
}

}  // namespace gar::cli
