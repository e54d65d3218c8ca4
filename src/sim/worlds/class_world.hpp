// One rank, link and flow of every class. The key of a route is the number of the class of flows. Links are numbered 2
// c (up) and 2 c + 1 (down) for every class c of instances. See world.hpp for what a world offers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gar/plan.hpp"
#include "sim/network.hpp"
#include "sim/programs.hpp"
#include "sim/worlds/partition.hpp"
#include "sim/worlds/world.hpp"

namespace gar::sim {

class ClassWorld {
 public:
  static constexpr bool kMemoises = true;

  /// Throws PlanError when a message has no receiver.
  ClassWorld(const Network& network, const PlanIndex& index, const Partition& partition);

  [[nodiscard]] std::uint32_t num_ranks() const { return static_cast<std::uint32_t>(partition_.first_rank.size()); }
  [[nodiscard]] std::int64_t rank_id(std::uint32_t r) const { return partition_.first_rank[r]; }
  [[nodiscard]] std::int64_t rank_count(std::uint32_t r) const { return partition_.rank_count[r]; }
  [[nodiscard]] const ServerParams& server(std::uint32_t r) const { return servers_[r]; }

  [[nodiscard]] std::uint32_t num_links() const { return static_cast<std::uint32_t>(partition_.first_node.size()) * 2; }
  [[nodiscard]] LinkState link(std::uint32_t l) const {
    return network_.link(partition_.first_node[l / 2], l % 2 != 0);
  }
  [[nodiscard]] LinkId link_id(std::uint32_t l) const {
    return network_.link_id(partition_.first_node[l / 2], l % 2 != 0);
  }
  [[nodiscard]] std::int64_t link_count(std::uint32_t l) const { return partition_.node_count[l / 2]; }

  [[nodiscard]] std::uint64_t first(std::uint32_t r) const { return first_[r]; }
  [[nodiscard]] std::uint64_t end(std::uint32_t r) const { return first_[r + 1]; }
  [[nodiscard]] std::int64_t length(std::uint32_t r) const { return length_[r]; }
  [[nodiscard]] const SimStep& step(std::uint64_t k) const { return steps_[k]; }
  [[nodiscard]] double num_flows() const { return num_flows_; }

  template <class F>
  void for_sends(std::uint32_t, const SimStep& s, bool, F f) const {
    for (std::uint32_t a = s.sends; a < s.sends + s.num_sends; ++a) {
      f(Send{{a, flows_[a].to}, flows_[a].part}, flows_[a].latency);
    }
  }
  [[nodiscard]] Send nth_send(std::uint32_t, const SimStep& s, bool, std::uint32_t nth) const {
    const std::uint32_t a = s.sends + nth;
    return {{a, flows_[a].to}, flows_[a].part};
  }
  /// Which message of an earlier step goes to the same ranks as those of the route; a step has at most one.
  [[nodiscard]] std::uint32_t find_send(const SimStep& s, bool, const Route& route) const {
    for (std::uint32_t k = route.key; k != kNone; k = flows_[k].before) {
      if (k >= s.sends && k < s.sends + s.num_sends) return k - s.sends;
    }
    return kNone;
  }
  template <class F>
  void for_followers(const SimStep& s, bool, const Route& route, F f) const {
    for (std::uint32_t k = s.sends; k < s.sends + s.num_sends; ++k) {
      std::uint32_t before = k;
      while (before != kNone && before != route.key) before = flows_[before].before;
      if (before == route.key) f(k - s.sends);
    }
  }
  [[nodiscard]] double latency(const Route& route) const { return flows_[route.key].latency; }
  template <class F>
  void for_path(const Route& route, F f) const {
    const std::uint32_t end = flows_[route.key + 1].path;
    for (std::uint32_t k = flows_[route.key].path; k < end; ++k) f(path_[k].link, path_[k].flows);
  }
  [[nodiscard]] std::size_t path_stride() const { return 0; }
  [[nodiscard]] double flow_count(const Route& route) const { return flows_[route.key].count; }

  template <class F>
  void add_senders(std::uint32_t, const Route& route, F f) {
    for (std::uint32_t k = flows_[route.key].patterns; k < flows_[route.key + 1].patterns; ++k) {
      Pattern& pattern = patterns_[pattern_of_[k]];
      if (pattern.active++ == 0) f(pattern.link, pattern.senders);
    }
  }
  template <class F>
  void remove_senders(std::uint32_t, const Route& route, F f) {
    for (std::uint32_t k = flows_[route.key].patterns; k < flows_[route.key + 1].patterns; ++k) {
      Pattern& pattern = patterns_[pattern_of_[k]];
      if (--pattern.active == 0) f(pattern.link, pattern.senders);
    }
  }

 private:
  struct Crossing {
    std::uint32_t link = 0;
    double flows = 0;  // on each link of the class
  };
  // Flows of one class to one class in one step that meet at the same height; its path and patterns end where those of
  // the next one begin.
  struct Flow {
    std::uint32_t to = 0;
    std::uint32_t path = 0;
    std::uint32_t patterns = 0;
    double part = 0;
    double latency = 0;
    double count = 0;              // of all members
    std::uint32_t before = kNone;  // the last earlier flow to the same ranks
  };
  // Senders of one class on a link of one class that send the same flows over it: they are there as long as one of
  // these flows is.
  struct Pattern {
    std::uint32_t link = 0;
    double senders = 0;
    std::uint32_t active = 0;
  };
  struct Draft {  // a flow that is being put together
    std::uint32_t to = 0;
    std::int32_t top = 0;   // depth of the instance where it turns
    std::int32_t peer = 0;  // an example
    double part = 0;
    std::uint32_t before = kNone;
    double per_member = 0;
  };
  struct Reached {
    std::int32_t instance = 0;
    std::uint32_t flow = 0;
  };

  void add_class(std::uint32_t c, const Programs& programs);
  void add_flows(std::uint32_t c, const PeerRun* runs, std::uint32_t num_runs, std::uint32_t first_of_class,
                 std::vector<Reached>& reached);
  void add_patterns(std::uint32_t c, std::uint32_t first_flow, std::vector<Reached>& reached);
  void align_steps();
  void count_receives();

  const Network& network_;
  const Partition& partition_;
  std::vector<ServerParams> servers_;
  std::vector<SimStep> steps_;
  std::vector<std::uint64_t> first_{0};
  std::vector<std::int64_t> length_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> last_;  // rank: the last flow to it; of another class when before its first
  std::vector<Crossing> path_;
  std::vector<Pattern> patterns_;
  std::vector<std::uint32_t> pattern_of_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> memberships_;  // {flow, pattern}
  double num_flows_ = 0;
  std::int64_t num_steps_ = 0;
};

}  // namespace gar::sim
