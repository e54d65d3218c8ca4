// Max-min fair rates where single flows come and go and every one of them changes the rates of most others.
//
// Problem. As in rate_solver.hpp: every flow has a bottleneck, a full link on which no flow is faster, and all flows
// that a link limits have one rate, its level. Where nothing is symmetric, flows end one by one, and each end changes
// all levels a little but hardly any bottleneck. To go through all flows for each of these ends costs their square.
//
// Notation. A flow is *own* to the link that limits it and *foreign* to the other links that it crosses. Link l has n_l
// own flows, capacity C_l and level L_l; of its foreign flows m_lk are own to link k.
//
// Idea. The links are the nodes of a graph with an edge from k to l of weight m_lk wherever it is not 0, and
//     L_l = (C_l - sum over k of m_lk L_k) / n_l.
// Foreign flows are slower than own ones, so in ascending order of levels each link needs only those before it: new
// levels are one sweep over the edges, and only over those behind a link that has changed. What a sweep finds is right
// if no foreign flow of a link is faster than its level and no link without own flows is overfull: then every flow has
// a bottleneck. Where it is not, the link takes the flows that are too fast over (water filling at one link), and the
// sweep goes on from there. Where sweeps do not end soon, solve() gives up, and the caller fills all links anew.
//
// Time. W_l is the integral of L_l: what each own flow has got. A flow that becomes own to l with x floats left arrives
// when W_l has grown by x, however often the level changes until then; a heap for each link knows which flow is next.
//
// Complexity. O(edges behind the change) for new levels and O(crossings of the link) for a link that takes over; memory
// O(crossings).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/link_sums.hpp"

namespace gar::sim {

class BottleneckGraph {
 public:
  /// Levels that differ by less than this share are the same.
  BottleneckGraph(std::size_t num_links, double tolerance);

  void set_capacity(LinkIndex link, double capacity);
  /// A flow that crosses these links, each of them once, and has this bottleneck.
  void add(FlowIndex flow, std::span<const LinkIndex> path, LinkIndex bottleneck, double floats);
  /// The same with a bottleneck that is a guess; returns it.
  LinkIndex add(FlowIndex flow, std::span<const LinkIndex> path, double floats);
  void remove(FlowIndex flow);
  /// Before the first solve(): the level that a link has.
  void set_level(LinkIndex link, double level);

  /// Before the first solve(), when all flows are there.
  void find_all_due();

  /// Time goes on.
  void advance_to(double now) { now_ = now; }
  /// Finds all levels again. Returns false when it gave up; then only the flows, and what is left of them, may be asked
  /// for.
  bool solve();

  struct Switch {
    FlowIndex flow;
    LinkIndex from;
    LinkIndex to;
  };
  /// Of the last solve(): flows that have another bottleneck, in the order in which it happened.
  [[nodiscard]] const std::vector<Switch>& switches() const { return switches_; }
  /// Of the last solve(): links whose level, load or next arrival may have changed.
  [[nodiscard]] const std::vector<LinkIndex>& touched() const { return touched_; }

  [[nodiscard]] std::size_t num_flows() const { return num_flows_; }
  [[nodiscard]] std::size_t num_limiting() const { return order_.size(); }
  [[nodiscard]] LinkIndex bottleneck(FlowIndex flow) const { return bottleneck_[flow]; }
  /// 0 where the link limits no flow.
  [[nodiscard]] double level(LinkIndex link) const { return limits(link) ? level_[link] : 0; }
  [[nodiscard]] double load(LinkIndex link) const { return load_[link]; }
  /// Floats that are left of a flow now.
  [[nodiscard]] double left(FlowIndex flow) const { return mark_[flow] - work(bottleneck_[flow]); }
  /// When the first of its own flows arrives.
  [[nodiscard]] double due(LinkIndex link) const { return due_[link]; }
  /// The link with the first arrival of all, kNone if there is none.
  [[nodiscard]] LinkIndex first_due() const;
  /// Appends the flows that have arrived by now; they must be removed.
  void collect_arrived(std::vector<FlowIndex>& arrived);

 private:
  struct Edge {
    LinkIndex from;
    std::uint32_t flows;
  };
  struct Mark {
    double work;
    FlowIndex flow;
  };
  struct Later {
    bool operator()(const Mark& a, const Mark& b) const { return a.work != b.work ? a.work > b.work : a.flow > b.flow; }
  };

  [[nodiscard]] bool limits(LinkIndex link) const { return position_[link] != kNowhere; }
  [[nodiscard]] double work(LinkIndex link) const {
    return limits(link) ? work_[link] + level_[link] * (now_ - work_at_[link]) : work_[link];
  }
  [[nodiscard]] std::span<const LinkIndex> path(FlowIndex flow) const {
    return {&paths_[flow * stride_], lengths_[flow]};
  }
  void widen(std::size_t stride);
  void place(FlowIndex flow, std::span<const LinkIndex> path, LinkIndex bottleneck, double floats);
  void add_edge(LinkIndex to, LinkIndex from);
  void remove_edge(LinkIndex to, LinkIndex from);
  void push(LinkIndex link, FlowIndex flow);
  [[nodiscard]] bool is_valid(LinkIndex link, const Mark& mark) const {
    return bottleneck_[mark.flow] == link && mark_[mark.flow] == mark.work;
  }
  void touch(LinkIndex link);
  void mark_dirty(LinkIndex link);
  void mark_dependents(LinkIndex link, double old_level);
  void mark_all_from(std::size_t position);
  void enter_order(LinkIndex link, double level);
  void leave_order(LinkIndex link);
  void sort_in(LinkIndex link);
  void put(LinkIndex link, std::size_t position) {
    order_[position] = link;
    position_[link] = static_cast<std::uint32_t>(position);
  }
  struct Foreign {
    double load;
    double fastest;
  };
  [[nodiscard]] Foreign add_foreign(LinkIndex link) const;
  void evaluate(LinkIndex link);
  void set_load(LinkIndex link, double load);
  [[nodiscard]] double fair_level(LinkIndex link, double level) const;
  void take_over(LinkIndex link, double limit);
  void change_bottleneck(FlowIndex flow, LinkIndex to);
  void change_level(LinkIndex link, double level);
  void find_due(LinkIndex link);

  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  double tolerance_;
  double now_ = 0;
  std::size_t num_flows_ = 0;
  // by link
  std::vector<double> level_;
  std::vector<double> capacity_;
  std::vector<double> load_;
  std::vector<double> work_;
  std::vector<double> work_at_;
  std::vector<double> due_;
  std::vector<std::uint32_t> num_own_;
  std::vector<std::uint32_t> position_;  // in order_
  std::vector<std::uint8_t> is_dirty_;
  std::vector<std::uint8_t> is_touched_;
  std::vector<std::vector<Edge>> foreign_;
  std::vector<std::vector<LinkIndex>> dependents_;  // where foreign_ has an edge from this link
  std::vector<std::vector<FlowIndex>> crossing_;
  std::vector<std::vector<Mark>> marks_;  // heaps; marks of flows that have left are void
  // by flow
  std::size_t stride_ = 2;
  std::vector<LinkIndex> paths_;       // stride_ for each
  std::vector<std::uint32_t> places_;  // in crossing_, likewise
  std::vector<std::uint8_t> lengths_;
  std::vector<LinkIndex> bottleneck_;
  std::vector<double> mark_;

  std::vector<LinkIndex> order_;    // links with own flows, by level
  std::vector<LinkIndex> changed_;  // whose capacity or flows have changed
  std::vector<LinkIndex> dirty_spare_;
  std::size_t num_dirty_ = 0;    // in order_
  std::size_t first_dirty_ = 0;  // none comes before it
  bool is_dense_ = false;        // all links from frontier_ on are dirty
  std::size_t frontier_ = 0;
  std::vector<LinkIndex> too_fast_;
  std::vector<Switch> switches_;
  std::vector<LinkIndex> touched_;
};

}  // namespace gar::sim
