// The network as the simulator sees it: instances of the tree, link directions with the conditions of a what-if laid
// over them, latencies, and what a server's calculation costs.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gar/simulate.hpp"
#include "gar/topology.hpp"

namespace gar::sim {

/// The parameters of one link direction.
struct LinkState {
  double beta = 0;
  double epsilon = 0;
  double threshold = 0;
  double scale = 1;          ///< what is left of its capacity
  double extra_senders = 0;  ///< for other traffic, and for the receiver where w counts participants
  /// Seconds per float that incast adds.
  [[nodiscard]] double incast_cost(double num_senders) const {
    const double beyond = num_senders + extra_senders - threshold;
    return beyond > 0 ? beyond * epsilon : 0;
  }
  /// Floats per second; very large instead of infinite.
  [[nodiscard]] double capacity(double num_senders) const {
    const double cost = beta + incast_cost(num_senders);
    return scale / (cost > 1e-200 ? cost : 1e-200);
  }
  /// The share that incast has in the cost of a float.
  [[nodiscard]] double incast_share(double num_senders) const {
    const double cost = incast_cost(num_senders);
    return cost > 0 ? cost / (beta + cost) : 0;
  }
  bool operator==(const LinkState&) const = default;
};

/// Where an instance is in the tree: below its parent, and above a range of ranks.
struct NodeSpan {
  std::int32_t parent = -1;     ///< -1: it is the root
  std::int32_t first_rank = 0;  ///< the ranks below: [first_rank, end_rank)
  std::int32_t end_rank = 0;
  [[nodiscard]] bool contains(std::int32_t rank) const { return first_rank <= rank && rank < end_rank; }
  [[nodiscard]] std::int32_t num_ranks() const { return end_rank - first_rank; }
};

class Network {
 public:
  /// Throws InvalidArgument for conditions that name no rank or link, or are out of range.
  Network(const Topology& topology, const SimulationOptions& options);

  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] std::int32_t num_ranks() const { return tree_.num_ranks(); }
  [[nodiscard]] std::int32_t num_instances() const { return static_cast<std::int32_t>(spans_.size()); }
  [[nodiscard]] const NodeSpan& span(std::int32_t instance) const { return spans_[static_cast<std::size_t>(instance)]; }
  [[nodiscard]] std::int32_t leaf(std::int32_t rank) const { return tree_.leaf[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool is_leaf(std::int32_t instance) const { return leaf(span(instance).first_rank) == instance; }
  [[nodiscard]] std::int32_t depth(std::int32_t instance) const {
    return tree_.depth[static_cast<std::size_t>(instance)];
  }
  [[nodiscard]] NodeId node(std::int32_t instance) const { return tree_.node[static_cast<std::size_t>(instance)]; }
  [[nodiscard]] LinkState link(std::int32_t instance, bool is_down) const;
  [[nodiscard]] LinkId link_id(std::int32_t instance, bool is_down) const;
  /// gamma and delta of a rank, slowness included.
  [[nodiscard]] ServerParams server(std::int32_t rank) const;
  /// The lowest instance above both.
  [[nodiscard]] std::int32_t meeting(std::int32_t a, std::int32_t b) const {
    std::int32_t i = leaf(a);
    while (!span(i).contains(b)) i = span(i).parent;
    return i;
  }
  /// Latency of a path that turns at `top`.
  [[nodiscard]] double latency(std::int32_t a, std::int32_t b, std::int32_t top) const {
    const auto at = [&](std::int32_t i) { return latency_[static_cast<std::size_t>(i)]; };
    const std::int32_t above = span(top).parent;
    const double shared = above < 0 ? 0 : at(above);
    return (at(leaf(a)) - at(top)) + (at(leaf(b)) - at(top)) + (at(top) - shared);
  }
  /// Calls f(instance, is_down) for every link direction on the way.
  template <class F>
  void for_path(std::int32_t a, std::int32_t b, F f) const {
    std::int32_t i = leaf(a);
    while (!span(i).contains(b)) {
      f(i, false);
      i = span(i).parent;
    }
    for (std::int32_t j = leaf(b); j != i; j = span(j).parent) f(j, true);
  }
  /// Ranks and instances that a what-if singles out.
  [[nodiscard]] const std::vector<std::int32_t>& marked_ranks() const { return marked_ranks_; }
  [[nodiscard]] const std::vector<std::int32_t>& marked_instances() const { return marked_instances_; }

 private:
  struct Condition {
    double scale = 1;
    double background = 0;
  };
  void add_slow_server(const SlowServer& slow);
  void add_condition(const LinkCondition& link);
  [[nodiscard]] std::int32_t instance_of(const NodePlace& place) const;

  const Topology& topology_;
  ModelKind model_;
  double extra_senders_;
  ExpandedTree tree_;
  std::vector<NodeSpan> spans_;
  std::vector<double> latency_;                             // sum of alpha from the root to the instance
  std::unordered_map<std::int64_t, Condition> conditions_;  // 2 * instance + is_down
  std::unordered_map<std::int32_t, double> slow_;           // rank
  std::vector<std::int32_t> marked_ranks_;
  std::vector<std::int32_t> marked_instances_;
};

/// "rank 37 cannot be reached: the uplink of rack1/server13 has failed".
[[noreturn]] void throw_unreachable(const Topology& topology, const LinkId& link);

}  // namespace gar::sim
