// Draws a topology as a tree.
#include "apps/gar/views/topo_show.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "apps/gar/cli/network.hpp"
#include "apps/gar/cli/output.hpp"
#include "gar/explain_topology.hpp"
#include "gar/shapes.hpp"

namespace gar::cli {
namespace {

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

class Drawing {
 public:
  Drawing(const Topology& topology, const TopoShowOptions& options)
      : topology_(topology),
        options_(options),
        is_drawn_(index(topology.num_shapes()), false),
        table_(columns(options)) {
    table_.keep_empty_rows();
  }

  std::string draw() {
    add_node("", topology_.node(topology_.root()).name, topology_.root());
    add_children("", topology_.root());
    return table_.folded(options_.color);
  }

 private:
  static std::vector<Column> columns(const TopoShowOptions& options) {
    std::vector<Column> out{{"network"}, {"servers", true}, {"latency", true}, {"uplink", true}};
    if (options.greek) out.push_back({"s/float", true});
    out.insert(out.end(), {{"incast"}, {""}});
    return out;
  }

  // What each sender beyond the threshold adds to the time of a float.
  [[nodiscard]] std::string incast_words(const LinkParams& link) const {
    if (link.epsilon == 0) return "none";
    if (options_.greek) return fmt::format("+{:.4g} > {:.4g}", link.epsilon, link.incast_threshold);
    if (link.beta == 0) return fmt::format("above {:.4g} senders", link.incast_threshold);
    const double share = link.epsilon / link.beta;
    return fmt::format("> {:.4g} senders: +{:.{}f}% each", link.incast_threshold, 100 * share, share < 0.1 ? 1 : 0);
  }

  // How fast a server adds, and reads and writes its memory.
  [[nodiscard]] std::string server_words(const ServerParams& server) const {
    if (options_.greek) {
      const std::string mu = server.mu > 0 ? fmt::format(", mu {:.4g}", server.mu) : "";
      return fmt::format("gamma {:.4g}, delta {:.4g}{}", server.gamma, server.delta, mu);
    }
    const std::string adding =
        server.gamma > 0 ? fmt::format("adds {}/s", format_rate(1 / server.gamma)) : "adds at once";
    const std::string memory = server.delta > 0 ? ", memory " + format_memory_bandwidth(4 / server.delta) : "";
    const std::string mu = server.mu > 0 ? fmt::format(", {} a message", format_seconds(server.mu, 3)) : "";
    return adding + memory + mu;
  }

  static std::string format_rate(double per_s) {
    for (const auto& [unit, scale] : {std::pair{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}}) {
      if (per_s >= 0.9995 * scale) return fmt::format("{:.3g} {}", per_s / scale, unit);
    }
    return fmt::format("{:.3g}", per_s);
  }

  void add_node(const std::string& branch, const std::string& name, NodeId id) {
    const Node& node = topology_.node(id);
    std::vector<Cell> cells{Cell(branch + name, node.is_server() ? Paint::kPlain : Paint::kCyan),
                            node.is_server() ? Cell("") : Cell(format_grouped(topology_.num_servers(id))),
                            format_seconds(node.alpha, 3)};
    if (id == topology_.root()) {
      cells.resize(options_.greek ? 6 : 5, Cell(""));
    } else {
      cells.emplace_back(format_link_speed(node.uplink.beta));
      if (options_.greek) cells.emplace_back(fmt::format("{:.4g}", node.uplink.beta));
      cells.emplace_back(incast_words(node.uplink));
    }
    const double ratio = oversubscription(topology_, id);
    if (node.is_server()) {
      cells.emplace_back(server_words(node.server));
    } else if (ratio > 1 + 1e-9) {
      cells.emplace_back(fmt::format("{:.3g}:1 oversubscribed", ratio), Paint::kYellow);
    } else if (ratio >= 0) {
      cells.emplace_back("not oversubscribed");
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

}  // namespace

std::string draw_topology(const Topology& topology, const TopoShowOptions& options) {
  constexpr const char* kWords =
      "latency  added by every node on a path, both servers included\n"
      "incast   how many senders a link can take, and what each further one costs\n"
      "adds     floats of 4 bytes per second; memory: bytes read and written per second\n";
  constexpr const char* kLetters =
      "latency       alpha; the nodes on a path, both servers included, add up\n"
      "s/float       beta: seconds for one float of 4 bytes\n"
      "incast        epsilon: extra s/float for every sender beyond the threshold\n"
      "gamma, delta  s/float added, s/float read from or written to memory\n";
  bool has_mu = false;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) has_mu = has_mu || topology.node(id).server.mu > 0;
  const std::string legend = !options.greek
                                 ? std::string(kWords)
                                 : std::string(kLetters) + (has_mu ? "mu            s/message sent or received\n" : "");
  return fmt::format("{}: {}\n{}\n{}\n{}", paint(escaped(topology.name()), Paint::kBold, options.color),
                     topology_totals(topology), parameter_line(topology), Drawing(topology, options).draw(),
                     paint(legend, Paint::kDim, options.color));
}

}  // namespace gar::cli
