// What a digit stage puts on a link, and how far its groups reach.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gar/plan.hpp"
#include "gar/topology.hpp"
#include "model/link_loads.hpp"

namespace gar {

/// What leaves and enters a range of active indices in one step.
struct Crossing {
  std::int64_t pieces = 0;  ///< the same number in both directions
  std::int64_t senders_out = 0;
  std::int64_t senders_in = 0;
};
/// For the active indices [a, b) and a digit stage. O(1).
Crossing crossing(const Stage& stage, std::int64_t a, std::int64_t b);

/// Longest paths inside groups of ranks.
class GroupPaths {
 public:
  /// Longest path between any two members: every switch remembers the slowest member seen below each of its two slowest
  /// children; a new member meets the one of another child there. O(members * height).
  template <class RankOf>
  double longest(const PricingTree& pt, const Topology& topology, RankOf rank_of, std::int64_t members) {
    best_.resize(pt.tree.size());
    double longest = 0;
    for (std::int64_t d = 0; d < members; ++d) longest = std::max(longest, meet(pt, topology, rank_of(d)));
    for (const std::int32_t i : touched_) best_[static_cast<std::size_t>(i)] = {};
    touched_.clear();
    return longest;
  }

 private:
  struct TwoBest {
    std::int32_t child[2] = {-1, -1};
    double latency[2] = {0, 0};
    void offer(std::int32_t c, double l);
  };
  double meet(const PricingTree& pt, const Topology& topology, std::int32_t rank);

  std::vector<TwoBest> best_;
  std::vector<std::int32_t> touched_;
};

}  // namespace gar
