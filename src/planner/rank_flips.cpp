// The numbers of servers at which another kind of algorithm becomes best.
#include <algorithm>
#include <bit>
#include <map>

#include "gar/predict.hpp"
#include "planner/changes.hpp"

namespace gar {

namespace {

constexpr std::int64_t kMaxServersTried = 1 << 12;
constexpr int kNearbyTried = 16;  // numbers of servers next to the one that was asked about, all of which are tried

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

namespace {

/// Looks for flips on one network, whose lowest switches are all alike. Places are numbers of servers per lowest
/// switch.
///
/// At powers of two some algorithms (rhd) need no rank that sits out, and may win there and nowhere else. So the ranges
/// are those of all other numbers, and powers of two of which they are not true are named one by one.
class RankSearch {
 public:
  RankSearch(const Topology& topology, const std::vector<AlgorithmSpec>& algorithms, double size_floats,
             const ModelOptions& options)
      : topology_(topology),
        algorithms_(algorithms),
        size_(size_floats),
        options_(options),
        here_(servers_per_switch(topology)),
        num_switches_(topology.num_servers() / here_) {
    search_.best = [this](std::int64_t servers) { return best(servers); };
    search_.middle = [this](std::int64_t near, std::int64_t far) { return middle(near, far); };
  }

  Flips run() {
    const std::int64_t first = start();
    Flips out;
    out.around = best(first);
    out.below = flip({first, out.around}, -1, out.searched_from);
    out.above = flip({first, out.around}, +1, out.searched_to);
    if (!(out.searched_from < out.searched_to)) return out;
    for (std::int64_t servers = 1; is_in_reach(servers); ++servers) {
      if (!is_power(servers)) continue;
      const std::string& expected = out.best_at(static_cast<double>(servers * num_switches_));
      if (is_better(best(servers), expected, servers)) {
        out.exceptions.push_back({static_cast<double>(servers * num_switches_), best(servers)});
      }
    }
    return out;
  }

 private:
  /// Where it was asked, or the next number where that is a power of two at which what is best is best nowhere nearby.
  std::int64_t start() {
    if (!is_power(here_) || !is_in_reach(here_)) return here_;
    std::int64_t before = here_ - 1;
    while (is_power(before)) --before;
    std::int64_t after = here_ + 1;
    while (is_power(after)) ++after;
    const bool is_alone =
        (before * num_switches_ < 2 || best(before) != best(here_)) && is_in_reach(after) && best(after) != best(here_);
    return is_alone ? after : here_;
  }

  [[nodiscard]] bool is_power(std::int64_t servers) const {
    const auto ranks = static_cast<std::uint64_t>(servers * num_switches_);
    return ranks > 2 && std::has_single_bit(ranks);  // two ranks do the same with every algorithm
  }
  [[nodiscard]] bool is_in_reach(std::int64_t servers) const {
    return servers <= 2 * here_ + 32 && servers * num_switches_ <= kMaxServersTried;
  }

  const std::string& best(std::int64_t servers) {
    const auto [known, is_new] = best_.try_emplace(servers);
    if (is_new) {
      known->second = Predictor(*with_servers_per_switch(topology_, servers), algorithms_, options_).best_kind(size_);
    }
    return known->second;
  }

  // Does `one` win over `other`? Where both take the same time, it does not.
  [[nodiscard]] bool is_better(const std::string& one, const std::string& other, std::int64_t servers) const {
    constexpr double kSame = 1 + 1e-9;
    if (one == other) return false;
    const auto seconds_of = [&](const std::string& kind) {
      const auto spec =
          std::find_if(algorithms_.begin(), algorithms_.end(), [&](const AlgorithmSpec& a) { return a.name == kind; });
      return Predictor(*with_servers_per_switch(topology_, servers), {*spec}, options_).at(size_).front().seconds();
    };
    return seconds_of(other) > kSame * seconds_of(one);
  }

  [[nodiscard]] std::optional<std::int64_t> middle(std::int64_t near, std::int64_t far) const {
    const std::int64_t middle = (near + far) / 2;
    for (const std::int64_t between : {middle, middle + 1}) {
      if (between > std::min(near, far) && between < std::max(near, far) && !is_power(between)) return between;
    }
    return std::nullopt;
  }

  // Every number nearby, then wider and wider steps. `limit` becomes the last number that was looked at.
  std::optional<Flip> flip(KnownBest<std::int64_t> near, std::int64_t direction, double& limit) {
    std::int64_t step = 1;
    for (int tried = 0;; ++tried) {
      if (tried >= kNearbyTried) step *= 2;
      std::int64_t next = near.place + direction * step;
      while (next > 0 && is_power(next)) next += direction;
      if (next < 1 || next * num_switches_ < 2 || !is_in_reach(next)) break;
      const KnownBest<std::int64_t> far{next, best(next)};
      if (const auto change = first_change(search_, near, far)) {
        std::int64_t place = change->place;
        while (is_power(place - direction) && best(place - direction) == change->best) place -= direction;
        limit = static_cast<double>(place * num_switches_);
        return Flip{limit, change->best};
      }
      near = far;
    }
    limit = static_cast<double>(near.place * num_switches_);
    return std::nullopt;
  }

  const Topology& topology_;
  const std::vector<AlgorithmSpec>& algorithms_;
  double size_;
  ModelOptions options_;
  std::int64_t here_;
  std::int64_t num_switches_;
  ChangeSearch<std::int64_t> search_;
  std::map<std::int64_t, std::string> best_;
};

}  // namespace

std::optional<Flips> rank_flips(const Topology& topology, const std::vector<AlgorithmSpec>& algorithms,
                                double size_floats, const ModelOptions& options) {
  if (servers_per_switch(topology) == 0) return std::nullopt;
  for (const AlgorithmSpec& a : algorithms) {
    if (!a.factors.empty()) return std::nullopt;  // factors fit one number of ranks only
  }
  return RankSearch(topology, algorithms, size_floats, options).run();
}

}  // namespace gar
