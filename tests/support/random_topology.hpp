// Seeded random trees for property tests. The same generator state and options give the same tree.
//
// A tree with exactly n servers is drawn by splitting n among the children of each switch: into equal parts that share
// one node (an even switch) or into random parts (an uneven one). Parameters start from the paper's values and are
// multiplied by a power of ten drawn from [-decades, decades]. The paper has no mu: it is 0 for a third of the servers,
// and some hundredths of a latency for the others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gar/topology.hpp"

namespace gar::test {

struct RandomTopologyOptions {
  std::int64_t min_servers = 1;
  std::int64_t max_servers = 64;
  int max_levels = 4;               ///< levels of links; at least 1 (a tree of one server may have none)
  double uneven_probability = 0.5;  ///< chance that a switch's children differ; 0 draws even trees only
  double chain_probability = 0.1;   ///< chance that one child makes up a whole switch, where levels allow it
  double decades = 0.5;             ///< spread of every parameter; 0 keeps the paper's values
  bool has_mu = true;               ///< servers pay for handling messages, unless decades is 0
  bool same_per_level = true;       ///< one draw of the parameters per level instead of one per node
};

namespace detail {

class RandomTree {
 public:
  RandomTree(std::mt19937_64& random, const RandomTopologyOptions& options) : random_(random), options_(options) {}

  Topology draw() {
    const std::int64_t n = uniform(std::max<std::int64_t>(1, options_.min_servers), options_.max_servers);
    const int min_levels = n == 1 ? 0 : 1;
    const int levels = static_cast<int>(uniform(min_levels, std::max(min_levels, options_.max_levels)));
    const NodeId root = subtree(n, levels);
    return Topology("random" + std::to_string(n), nodes_, root);
  }

 private:
  std::int64_t uniform(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  double unit() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }
  bool chance(double p) { return unit() < p; }
  double spread(double value) {
    return options_.decades == 0 ? value : value * std::pow(10.0, (2 * unit() - 1) * options_.decades);
  }

  Node parameters(int level) {
    if (options_.same_per_level) {
      const auto found = per_level_.find(level);
      if (found != per_level_.end()) return found->second;
    }
    const PaperParams paper;
    Node node;
    static const char* const kNames[] = {"server", "rack", "pod", "zone", "region"};
    node.name = level < 5 ? kNames[level] : "tier" + std::to_string(level);
    node.alpha = spread(paper.alpha);
    node.uplink = level == 0 ? paper.server_link : paper.inner_link;
    node.uplink.beta = spread(node.uplink.beta);
    node.uplink.epsilon = spread(node.uplink.epsilon);
    if (options_.decades > 0) node.uplink.incast_threshold = static_cast<double>(uniform(1, 16));
    if (level == 0) node.server = {spread(paper.server.gamma), spread(paper.server.delta)};
    if (level == 0 && options_.has_mu && options_.decades > 0) {
      node.server.mu = chance(1.0 / 3) ? 0 : spread(paper.alpha / 30);
    }
    per_level_.insert_or_assign(level, node);
    return node;
  }

  NodeId add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeId>(nodes_.size() - 1);
  }

  // A subtree of exactly n servers and at most `levels` levels of links.
  NodeId subtree(std::int64_t n, int levels) {
    if (n == 1 && (levels == 0 || !chance(options_.chain_probability))) return add(parameters(0));
    Node node = parameters(levels);
    if (levels <= 1) {
      add_leaves(node, n);
    } else if (n == 1 || chance(options_.chain_probability)) {
      node.children = {{subtree(n, levels - 1), 1}};
    } else if (chance(options_.uneven_probability)) {
      for (std::int64_t left = n; left > 0;) {
        const std::int64_t part = uniform(1, std::max<std::int64_t>(1, std::min(left, 2 * n / 3)));
        node.children.push_back({subtree(part, levels - 1), 1});
        left -= part;
      }
    } else {
      const std::int64_t parts = divisor(n);
      node.children = {{subtree(n / parts, levels - 1), parts}};
    }
    return add(std::move(node));
  }

  void add_leaves(Node& node, std::int64_t n) {
    if (options_.same_per_level || !chance(options_.uneven_probability)) {
      node.children = {{add(parameters(0)), n}};
      return;
    }
    for (std::int64_t left = n; left > 0;) {
      const std::int64_t run = uniform(1, left);
      node.children.push_back({add(parameters(0)), run});
      left -= run;
    }
  }

  // A random divisor of n above 1 (n itself included).
  std::int64_t divisor(std::int64_t n) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d * d <= n; ++d) {
      if (n % d != 0) continue;
      if (d > 1) divisors.push_back(d);
      if (n / d != d) divisors.push_back(n / d);
    }
    return divisors[static_cast<std::size_t>(uniform(0, static_cast<std::int64_t>(divisors.size()) - 1))];
  }

  std::mt19937_64& random_;
  RandomTopologyOptions options_;
  std::vector<Node> nodes_;
  std::map<int, Node> per_level_;
};

}  // namespace detail

/// Draws a tree with a number of servers between min_servers and max_servers.
inline Topology random_topology(std::mt19937_64& random, const RandomTopologyOptions& options = {}) {
  return detail::RandomTree(random, options).draw();
}

}  // namespace gar::test
