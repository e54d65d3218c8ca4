// The numbers of servers at which another kind of algorithm becomes best.
#include <algorithm>
#include <cmath>

#include "gar/predict.hpp"
#include "planner/changes.hpp"

namespace gar {

namespace {

constexpr std::int64_t kMaxServersTried = 1 << 12;
constexpr int kNearbyTried = 16;  // numbers of servers next to the one that was asked about, all of which are tried

std::optional<std::int64_t> middle_of(std::int64_t near, std::int64_t far) {
  if (std::abs(far - near) <= 1) return std::nullopt;
  return (near + far) / 2;
}

}  // namespace

std::int64_t servers_per_switch(const Topology& topology) {
  std::int64_t per_switch = -1;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const Node& n = topology.node(id);
    const bool has_servers = std::any_of(n.children.begin(), n.children.end(),
                                         [&](const ChildRun& run) { return topology.node(run.node).is_server(); });
    if (!has_servers) continue;
    const bool one_run = n.children.size() == 1;
    if (!one_run || (per_switch >= 0 && per_switch != n.children[0].count)) return 0;
    per_switch = n.children[0].count;
  }
  return std::max<std::int64_t>(per_switch, 0);
}

std::optional<Topology> with_servers_per_switch(const Topology& topology, std::int64_t servers) {
  if (servers_per_switch(topology) == 0 || servers < 1) return std::nullopt;
  std::vector<Node> nodes;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    nodes.push_back(topology.node(id));
    std::vector<ChildRun>& children = nodes.back().children;
    if (children.size() == 1 && topology.node(children[0].node).is_server()) children[0].count = servers;
  }
  return Topology(topology.name(), std::move(nodes), topology.root());
}

std::optional<Flips> rank_flips(const Topology& topology, const std::vector<AlgorithmSpec>& algorithms,
                                double size_floats, const ModelOptions& options) {
  const std::int64_t here = servers_per_switch(topology);
  if (here == 0) return std::nullopt;
  for (const AlgorithmSpec& a : algorithms) {
    if (!a.factors.empty()) return std::nullopt;  // factors fit one number of ranks only
  }
  const std::int64_t switches = topology.num_servers() / here;
  ChangeSearch<std::int64_t> search;
  search.best = [&](std::int64_t servers) {
    return Predictor(*with_servers_per_switch(topology, servers), algorithms, options).best_kind(size_floats);
  };
  search.middle = middle_of;
  const KnownBest<std::int64_t> start{here, search.best(here)};
  // Every number nearby, then wider and wider steps. `limit` becomes the last number that was looked at.
  const auto flip = [&](std::int64_t direction, double& limit) -> std::optional<Flip> {
    KnownBest<std::int64_t> near = start;
    std::int64_t step = 1;
    for (int tried = 0;; ++tried) {
      if (tried >= kNearbyTried) step *= 2;
      const std::int64_t next = near.place + direction * step;
      if (next < 1 || next * switches < 2 || next > 2 * here + 32 || next * switches > kMaxServersTried) break;
      const KnownBest<std::int64_t> far{next, search.best(next)};
      if (const auto change = first_change(search, near, far)) {
        limit = static_cast<double>(change->place * switches);
        return Flip{limit, change->best};
      }
      near = far;
    }
    limit = static_cast<double>(near.place * switches);
    return std::nullopt;
  };
  Flips out;
  out.below = flip(-1, out.searched_from);
  out.above = flip(+1, out.searched_to);
  return out;
}

}  // namespace gar
