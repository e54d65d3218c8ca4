// Every rank, link direction and flow on its own. The key of a route is the sending rank; link 2 i is the direction up
// from instance i, 2 i + 1 the one down to it. See world.hpp for what a world offers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gar/limits.hpp"
#include "gar/plan.hpp"
#include "sim/network.hpp"
#include "sim/programs.hpp"
#include "sim/worlds/world.hpp"

namespace gar::sim {

class FlowWorld {
 public:
  static constexpr bool kMemoises = false;

  FlowWorld(const Network& network, const PlanIndex& index) : network_(network), programs_(index.plan()) {
    counts_pairs_ = index.plan().num_chunks > 1;
    const auto ranks = static_cast<std::size_t>(network.num_ranks());
    WorkMeter messages(kFlowLimit, "the plan");
    for (std::size_t r = 0; r < ranks; ++r) programs_.add(index, static_cast<std::int64_t>(r), messages);
    check_work(kFlowLimit, num_flows() * static_cast<double>(index.plan().num_chunks), "the plan");
    servers_.reserve(ranks);
    for (std::size_t r = 0; r < ranks; ++r) servers_.push_back(network.server(static_cast<std::int32_t>(r)));
    for (std::int32_t i = 0; i < network.num_instances(); ++i) {
      depth_ = std::max(depth_, network.depth(i));
      if (!network.is_leaf(i) && i > 0) {
        if (inner_.empty()) inner_.resize(static_cast<std::size_t>(network.num_instances()), -1);
        inner_[static_cast<std::size_t>(i)] = num_inner_++;
      }
    }
    up_.resize(ranks * static_cast<std::size_t>(depth_));
    if (depth_ == 1 && ranks > 1) {
      one_latency_ = network.latency(0, 1, 0);
      has_one_latency_ = true;
      for (std::int32_t r = 2; r < network.num_ranks(); ++r) {
        has_one_latency_ = has_one_latency_ && network.latency(0, r, 0) == one_latency_;
      }
      has_one_latency_ = has_one_latency_ && (ranks < 3 || network.latency(1, 2, 0) == one_latency_);
    }
    const double most = 3.2e7;
    if (static_cast<double>(ranks) * num_inner_ <= most) down_.resize(ranks * static_cast<std::size_t>(num_inner_));
    if (counts_pairs_ && static_cast<double>(ranks) * static_cast<double>(ranks) <= most) pairs_.resize(ranks * ranks);
  }

  [[nodiscard]] std::uint32_t num_ranks() const { return static_cast<std::uint32_t>(network_.num_ranks()); }
  [[nodiscard]] std::int64_t rank_id(std::uint32_t r) const { return r; }
  [[nodiscard]] std::int64_t rank_count(std::uint32_t) const { return 1; }
  [[nodiscard]] const ServerParams& server(std::uint32_t r) const { return servers_[r]; }

  [[nodiscard]] std::uint32_t num_links() const { return static_cast<std::uint32_t>(network_.num_instances()) * 2; }
  [[nodiscard]] LinkState link(std::uint32_t l) const {
    return network_.link(static_cast<std::int32_t>(l / 2), l % 2 != 0);
  }
  [[nodiscard]] LinkId link_id(std::uint32_t l) const {
    return network_.link_id(static_cast<std::int32_t>(l / 2), l % 2 != 0);
  }
  [[nodiscard]] std::int64_t link_count(std::uint32_t) const { return 1; }

  [[nodiscard]] std::uint64_t first(std::uint32_t r) const { return programs_.first(r); }
  [[nodiscard]] std::uint64_t end(std::uint32_t r) const { return programs_.end(r); }
  [[nodiscard]] std::int64_t length(std::uint32_t r) const { return programs_.length(r); }
  [[nodiscard]] const SimStep& step(std::uint64_t k) const { return programs_.step(k); }
  [[nodiscard]] double num_flows() const { return programs_.num_flows() * (programs_.is_mirrored() ? 2 : 1); }

  /// Calls f(send, latency) for every message of a step.
  template <class F>
  void for_sends(std::uint32_t rank, const SimStep& s, bool is_mirror, F f) const {
    const std::uint32_t begin = s.sends + (is_mirror ? s.num_send_runs : 0);
    const std::uint32_t end = begin + (is_mirror ? s.num_recv_runs : s.num_send_runs);
    for (std::uint32_t k = begin; k < end; ++k) {
      const PeerRun& run = programs_.run(k);
      for (std::int32_t i = 0; i < run.count; ++i) {
        const Route route{rank, static_cast<std::uint32_t>(run.first + i * run.stride)};
        f(Send{route, run.part}, latency(route));
      }
    }
  }
  /// The nth of them.
  [[nodiscard]] Send nth_send(std::uint32_t rank, const SimStep& s, bool is_mirror, std::uint32_t nth) const {
    for (std::uint32_t k = s.sends + (is_mirror ? s.num_send_runs : 0);; ++k) {
      const PeerRun& run = programs_.run(k);
      const auto count = static_cast<std::uint32_t>(run.count);
      if (nth < count) {
        const auto peer = run.first + static_cast<std::int32_t>(nth) * run.stride;
        return {{rank, static_cast<std::uint32_t>(peer)}, run.part};
      }
      nth -= count;
    }
  }
  /// Which message of a step of the same rank takes this route; kNone: none does.
  [[nodiscard]] std::uint32_t find_send(const SimStep& s, bool is_mirror, const Route& route) const {
    const std::uint32_t begin = s.sends + (is_mirror ? s.num_send_runs : 0);
    const std::uint32_t end = begin + (is_mirror ? s.num_recv_runs : s.num_send_runs);
    std::uint32_t before = 0;
    for (std::uint32_t k = begin; k < end; ++k) {
      const PeerRun& run = programs_.run(k);
      const std::int32_t distance = static_cast<std::int32_t>(route.receiver) - run.first;
      if (distance % run.stride == 0 && distance / run.stride >= 0 && distance / run.stride < run.count) {
        return before + static_cast<std::uint32_t>(distance / run.stride);
      }
      before += static_cast<std::uint32_t>(run.count);
    }
    return kNone;
  }
  /// Calls f(nth) for the messages of a later step that must follow the one on this route.
  template <class F>
  void for_followers(const SimStep& s, bool is_mirror, const Route& route, F f) const {
    const std::uint32_t nth = find_send(s, is_mirror, route);
    if (nth != kNone) f(nth);
  }
  [[nodiscard]] double latency(const Route& route) const {
    if (has_one_latency_) return one_latency_;
    const std::int32_t from = sender(route);
    const std::int32_t to = receiver(route);
    return network_.latency(from, to, network_.meeting(from, to));
  }
  /// Calls f(link, 1.0) for every link of the way.
  template <class F>
  void for_path(const Route& route, F f) const {
    if (depth_ == 1) {  // one switch: server r is instance r + 1
      f(route.key * 2 + 2, 1.0);
      f(route.receiver * 2 + 3, 1.0);
      return;
    }
    network_.for_path(sender(route), receiver(route), [&](std::int32_t i, bool is_down) {
      f(static_cast<std::uint32_t>(i) * 2 + (is_down ? 1 : 0), 1.0);
    });
  }
  /// Links of the longest path if climbing the tree for each of them costs more than keeping them; else 0.
  [[nodiscard]] std::size_t path_stride() const { return depth_ > 1 ? static_cast<std::size_t>(depth_) * 2 : 0; }
  [[nodiscard]] double flow_count(const Route&) const { return 1; }

  // Distinct senders. On a server's uplink there is one. On a switch's links a table counts the flows of each sender.
  // On a server's downlink every flow is a sender of its own, for flows between the same two ranks follow each other;
  // with several chunks those of different steps do not, and a table counts them, too.
  template <class F>
  void add_senders(std::uint32_t rank, const Route& route, F f) {
    for_switch_links(route, [&](std::uint32_t link, std::uint32_t& count) {
      if (count++ == 0) f(link, 1.0);
    });
    if (up_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(depth_)]++ == 0) f(uplink(rank), 1.0);
    if (!counts_pairs_ || pair(route)++ == 0) f(downlink(route.receiver), 1.0);
  }
  template <class F>
  void remove_senders(std::uint32_t rank, const Route& route, F f) {
    for_switch_links(route, [&](std::uint32_t link, std::uint32_t& count) {
      if (--count == 0) f(link, 1.0);
    });
    if (--up_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(depth_)] == 0) f(uplink(rank), 1.0);
    if (!counts_pairs_ || --pair(route) == 0) f(downlink(route.receiver), 1.0);
  }

 private:
  static std::int32_t sender(const Route& route) { return static_cast<std::int32_t>(route.key); }
  static std::int32_t receiver(const Route& route) { return static_cast<std::int32_t>(route.receiver); }
  [[nodiscard]] std::uint32_t uplink(std::uint32_t rank) const {
    return static_cast<std::uint32_t>(network_.leaf(static_cast<std::int32_t>(rank))) * 2;
  }
  [[nodiscard]] std::uint32_t downlink(std::uint32_t rank) const { return uplink(rank) + 1; }

  // Calls f(link, how many flows of this sender are on it) for the links of switches.
  template <class F>
  void for_switch_links(const Route& route, F f) {
    if (inner_.empty()) return;
    std::size_t level = static_cast<std::size_t>(route.key) * static_cast<std::size_t>(depth_);
    network_.for_path(sender(route), receiver(route), [&](std::int32_t i, bool is_down) {
      if (inner_[static_cast<std::size_t>(i)] < 0) return;
      if (is_down) {
        const auto k = static_cast<std::uint64_t>(inner_[static_cast<std::size_t>(i)]);
        const std::uint64_t key = std::uint64_t{route.key} * static_cast<std::uint64_t>(num_inner_) + k;
        f(static_cast<std::uint32_t>(i) * 2 + 1, down_.empty() ? sparse_down_[key] : down_[key]);
      } else {
        f(static_cast<std::uint32_t>(i) * 2, up_[++level]);
      }
    });
  }

  std::uint32_t& pair(const Route& route) {
    const std::uint64_t key = std::uint64_t{route.key} * servers_.size() + route.receiver;
    return pairs_.empty() ? sparse_pairs_[key] : pairs_[key];
  }

  const Network& network_;
  Programs programs_;
  bool counts_pairs_ = false;
  std::vector<std::uint32_t> pairs_;  // flows from a rank to a rank; else
  std::unordered_map<std::uint64_t, std::uint32_t> sparse_pairs_;
  std::vector<ServerParams> servers_;
  std::int32_t depth_ = 1;
  bool has_one_latency_ = false;
  double one_latency_ = 0;
  std::int32_t num_inner_ = 0;
  std::vector<std::int32_t> inner_;  // instance: which switch it is, -1 for a server; empty on one switch
  std::vector<std::uint32_t> up_;    // flows of a rank that climb to each height
  std::vector<std::uint32_t> down_;  // flows of a rank to below each switch; else
  std::unordered_map<std::uint64_t, std::uint32_t> sparse_down_;
};

}  // namespace gar::sim
