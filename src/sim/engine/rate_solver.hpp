// Max-min fair rates of flows over links, found again only where something has changed.
//
// Problem. Flows share links. The rates of all flows that cross a link add up to at most its capacity, and the rates
// are max-min fair: no flow can have more without taking from one that has no more than it. Equivalently, every flow
// has a *bottleneck*: a link on its path that is full and on which no flow is faster.
//
// Notation. All flows with the same bottleneck have the same rate, which is the *level* of that link; so a rate is
// stored per link, and a flow stores its bottleneck. A link *limits* the flows whose bottleneck it is. A link that
// limits no flow is *spare*.
//
// Idea. When flows come or go, only a *region* is solved again, and everything outside keeps its rates:
//   1. The links that have changed and limit flows join the region, with all flows that cross them. A change on a spare
//      link does not matter by itself. A new flow that crosses no link of the region brings its narrowest link along;
//      if it shares no link with other flows, that link is its bottleneck at once.
//   2. Progressive filling: the levels of all links of the region rise together; a link that becomes full first freezes
//      its flows at this level. Links outside are ignored. A heap finds the link that is full next.
//   3. The links outside that flows of the region cross are its *border*. A border link joins the region, and it is
//      solved once more, when the link is overfull now, or when it limits flows outside the region and either its load
//      has changed or a flow of the region is now faster on it than these.
// In the end every flow has a bottleneck again. Filling costs O(crossings in the region + links log links).
//
// Time. Floats that are left of a flow are brought up to date only when its bottleneck joins a region. All flows that a
// link limits have the same rate, so the time of the last update is stored per link, too.
//
// Without symmetry. Where single flows come and go and each of them makes a large region, the flows move to a
// BottleneckGraph, which finds new levels without going through them, and back when many change at once.
//
// Multiplicity. A flow may stand for many that do the same, and a link for many that are alike: `flows` of a crossing
// says how many of them cross each one of these links, which need not be a whole number.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/bottleneck_graph.hpp"
#include "sim/engine/hot.hpp"
#include "sim/engine/link_sums.hpp"
#include "sim/engine/time.hpp"
#include "sim/network.hpp"
#include "sim/worlds/world.hpp"

namespace gar::sim {

/// When rates are found on a graph of bottlenecks.
enum class GraphUse {
  kWherePays,  ///< while single flows come and go
  kAlways,     ///< wherever it is possible
  kNotAtAll,
};

/// How rates are found.
struct RateOptions {
  double tolerance =
      0;  ///< loads and levels that differ by less than this share are the same; 0: by less than rounding
  GraphUse graph = GraphUse::kWherePays;
};

/// Paths has `for_path(Route, use)`, which calls use(link, flows) for every link of a way, and `path_stride()`: the
/// number of links of the longest path if the solver should keep paths (then `flows` must always be 1), else 0.
///
/// One update, at one moment:
///   advance_to(now);
///   add_flow, add_senders, look_at ...                 what happens at this moment
///   while (!(arrived = collect_arrived()).empty())     and what follows from it
///     remove_flow for each of them; perhaps add_flow ...
///   solve(...)
template <class Paths>
class RateSolver {
 public:
  RateSolver(const Paths& paths, const std::vector<LinkState>& links, const RateOptions& options = {})
      : paths_(paths),
        stride_(paths.path_stride()),
        same_(std::max(options.tolerance, kSame)),
        graph_use_(options.graph) {
    links_.resize(links.size());
    for (std::size_t i = 0; i < links.size(); ++i) links_[i].state = links[i];
  }

  /// Time goes on; it never goes back.
  void advance_to(double now) {
    now_ = now;
    if (graph_) graph_->advance_to(now);
  }

  /// Begins a flow of `floats` floats. Calls on_link(link, flows) for every link of its path, when the sums of the link
  /// are up to date. Requires that these links have some capacity.
  template <class OnLink>
  FlowIndex add_flow(const Route& route, double floats, OnLink on_link);
  /// Takes a flow that collect_arrived() has returned off its links. Calls on_link as add_flow() does.
  template <class OnLink>
  void remove_flow(FlowIndex flow, OnLink on_link);
  /// Change the number of distinct senders on a link. Require that flows on it begin or end at the same moment.
  void add_senders(LinkIndex link, double senders) { links_[link].num_senders += senders; }
  void remove_senders(LinkIndex link, double senders) {
    double& num_senders = links_[link].num_senders;
    num_senders -= senders;
    if (num_senders < kNoFlow) num_senders = 0;
  }
  /// Makes collect_arrived() look at the flows that this link limits, because one of them should have arrived.
  void look_at(LinkIndex link) {
    if (!graph_) {
      mark(link);
    } else if (graph_->due(link) <= now_ * (1 + kTieTime)) {
      is_due_ = true;
    }
  }

  /// Has anything happened since the last solve()?
  [[nodiscard]] bool has_changes() const { return is_due_ || !changed_.empty() || !changed_spare_.empty(); }
  /// Has anything happened that collect_arrived() has not seen?
  [[nodiscard]] bool has_unseen_changes() const {
    return graph_ ? num_returned_ < arrived_.size() : num_seen_ < changed_.size();
  }
  /// Takes the changed links into the region and returns the flows on them that have arrived; valid until the next call
  /// of this function or of solve().
  [[nodiscard]] std::span<const FlowIndex> collect_arrived();
  /// Finds all rates again. Requires that collect_arrived() has nothing more to return. Calls on_due(link, time) for
  /// every link whose level was found again, with the time at which the first of the flows that it limits will arrive
  /// (kNever: it limits none). Calls on_change(link) for these links and for every link whose flows have changed.
  template <class OnDue, class OnChange>
  void solve(OnDue on_due, OnChange on_change);

  /// Floats per second. Requires that solve() has seen the flow.
  [[nodiscard]] double rate(FlowIndex flow) const { return links_[flows_[flow].bottleneck].level; }
  [[nodiscard]] LinkIndex bottleneck(FlowIndex flow) const { return flows_[flow].bottleneck; }
  [[nodiscard]] const Route& route(FlowIndex flow) const { return flows_[flow].route; }
  /// Seconds that incast at its bottlenecks has cost a flow that has arrived.
  [[nodiscard]] double incast_seconds(FlowIndex flow) const { return incast_seconds_[flow]; }

  [[nodiscard]] LinkIndex num_links() const { return static_cast<LinkIndex>(links_.size()); }
  [[nodiscard]] const LinkState& state(LinkIndex link) const { return links_[link].state; }
  [[nodiscard]] double num_flows(LinkIndex link) const { return links_[link].num_flows; }
  [[nodiscard]] double num_senders(LinkIndex link) const { return links_[link].num_senders; }
  /// Sum of the rates of its flows. Requires that nothing has changed since solve().
  [[nodiscard]] double load(LinkIndex link) const { return links_[link].load; }
  /// As of the last time that something happened on the link.
  [[nodiscard]] const LinkSums& sums(LinkIndex link) const { return links_[link].sums; }
  [[nodiscard]] const LinkSums& sums_until_now(LinkIndex link) {
    add_up(links_[link]);
    return links_[link].sums;
  }
  /// Adds what has happened on the links since `before` another `times` times; the time is `now` then. Requires that
  /// there is no flow.
  void repeat(double now, double times, const std::vector<LinkSums>& before);

  /// How often progressive filling has run.
  [[nodiscard]] std::int64_t num_solves() const { return num_solves_; }

 private:
  static constexpr std::size_t kLongList = std::size_t{1} << 20U;  // memory of longer lists is given back
  static constexpr double kSame = 1e-12;  // loads closer than this share of the capacity are the same, so are levels
  static constexpr double kHeapSlack = 1e-13;  // a heap entry that is too low by more than this is put back

  enum class FlowState : std::uint8_t {
    kNew,            // has no rate yet
    kFlowing,        // has a bottleneck, whose level is its rate
    kFilling,        // is in the region, and its rate is being found
    kArrived,        // nothing is left of it
    kArrivedAtOnce,  // the same, and it has never had a rate
    kRemoved,        // is on no link any more; another flow will get its index
  };

  struct Flow {
    Route route;
    LinkIndex bottleneck = kNone;
    FlowState state = FlowState::kNew;
    double floats_left = 0;  // when its bottleneck was brought up to date
  };

  // In the order of use, so that most of what happens to a link touches two or three cache lines.
  struct Link {
    double num_flows = 0;
    double num_senders = 0;
    double load = 0;         // sum of the rates
    double capacity = 0;     // with these senders
    double added_up_at = 0;  // until when `sums` are complete
    LinkSums sums;

    bool has_changed = false;  // is in changed_ or changed_spare_
    bool in_region = false;
    bool in_border = false;
    bool has_old_load = false;
    std::uint32_t num_limited = 0;  // flows whose bottleneck it is
    double level = 0;
    double incast_share = 0;      // of the time that passes now
    double updated_at = 0;        // when the flows that it limits were brought up to date
    double incast_at_update = 0;  // what sums.incast was then
    double load_at_update = 0;
    std::vector<FlowIndex> flows;

    // While the region is filled: flows that have no level yet, the load of those that have one, and which of them the
    // link itself has frozen. Flows that are frozen at one level are a group, whose load is one product, so that equal
    // flows give equal loads.
    double num_open = 0;
    double frozen_load = 0;
    double group_level = 0;
    double group_flows = 0;
    std::uint32_t num_frozen = 0;
    double least_left = 0;

    // At the border: what the flows of the region had before and have now.
    double old_load = 0;
    double new_load = 0;
    double fastest = 0;

    LinkState state;
  };

  template <class Use>
  void for_path(FlowIndex flow, Use use) const {
    if (stride_ == 0) {
      paths_.for_path(flows_[flow].route, use);
      return;
    }
    const LinkIndex* at = &kept_paths_[flow * stride_];
    for (std::size_t i = 0; i < stride_ && at[i] != kNone; ++i) use(at[i], 1.0);
  }

  // flows
  FlowIndex new_flow(const Route& route, double floats);
  void mark(LinkIndex index);
  void add_up(Link& link);
  double update(FlowIndex index);
  // the region
  void join_region(LinkIndex index, bool may_arrive);
  template <class OnDue>
  void place_new_flow(FlowIndex index, OnDue on_due);
  void forget_removed_flows();
  void fill();
  void freeze(LinkIndex index, double level);
  static void take(Link& link, double flows, double level);
  static double group_load(const Link& link) { return link.frozen_load + link.group_flows * link.group_level; }
  void find_border();
  [[nodiscard]] bool must_join(const Link& link) const;
  bool extend();
  template <class OnDue, class OnChange>
  void commit(OnDue on_due, OnChange on_change);
  template <class OnChange>
  void keep(LinkIndex index, OnChange on_change);
  // the graph
  static constexpr std::size_t kLargeRegion = 256;  // flows
  static constexpr std::size_t kFewChanges = 16;    // a region is large if it has this many flows for each that changed
  static constexpr int kPatience = 16;              // large regions before flows move to the graph
  static constexpr int kNotPossible = 1 << 20;      // as many if they cannot
  void weigh_region(std::size_t num_changes);
  void enter_graph();
  template <class OnDue, class OnChange>
  bool solve_graph(OnDue on_due, OnChange on_change);
  void leave_graph();
  void settle_incast(FlowIndex flow, LinkIndex to);
  void clear_update();

  const Paths& paths_;
  std::size_t stride_;
  double same_;
  GraphUse graph_use_;
  double now_ = 0;
  std::int64_t num_solves_ = 0;
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<double> incast_seconds_;  // by flow
  std::vector<LinkIndex> kept_paths_;   // by flow, stride_ for each; a shorter one ends with kNone
  std::vector<FlowIndex> free_flows_;

  // Of the present update.
  std::vector<LinkIndex> changed_;        // links that limited flows when they changed
  std::size_t num_seen_ = 0;              // of these, those that have joined the region
  std::vector<LinkIndex> changed_spare_;  // links that limited none
  std::vector<FlowIndex> new_flows_;
  std::vector<FlowIndex> arrived_;
  std::size_t num_returned_ = 0;  // of these, by collect_arrived()
  std::vector<LinkIndex> region_;
  std::vector<FlowIndex> region_flows_;
  std::vector<LinkIndex> with_old_load_;
  std::vector<LinkIndex> border_;
  std::vector<LinkIndex> joining_;
  std::vector<std::pair<double, LinkIndex>> heap_;  // {level at which a link is full, link}

  // While it is there, it has the bottlenecks, and what is left of flows.
  std::unique_ptr<BottleneckGraph> graph_;
  int num_large_regions_ = 0;      // in a row
  bool is_due_ = false;            // flows in the graph have arrived
  bool all_scheduled_ = true;      // on_due() has been called for each change of a link's first arrival
  std::vector<double> incast_at_;  // by flow: incast of its bottleneck when it became that
  std::vector<LinkIndex> path_;
};

// ----------------------------------------------------------------------------------------------------------- flows

// What has happened on a link since the last time.
template <class Paths>
void RateSolver<Paths>::add_up(Link& link) {
  const double elapsed = now_ - link.added_up_at;
  if (elapsed <= 0) return;
  link.added_up_at = now_;
  if (link.num_flows <= 0) return;
  link.sums.busy += elapsed;
  link.sums.full += link.load / link.capacity * elapsed;
  if (link.incast_share > 0) link.sums.incast += link.incast_share * elapsed;
}

template <class Paths>
void RateSolver<Paths>::mark(LinkIndex index) {
  Link& link = links_[index];
  if (link.has_changed) return;
  link.has_changed = true;
  (link.num_limited > 0 ? changed_ : changed_spare_).push_back(index);
}

template <class Paths>
FlowIndex RateSolver<Paths>::new_flow(const Route& route, double floats) {
  FlowIndex index = 0;
  if (free_flows_.empty()) {
    index = static_cast<FlowIndex>(flows_.size());
    flows_.emplace_back();
  } else {
    index = free_flows_.back();
    free_flows_.pop_back();
  }
  if (incast_seconds_.size() < flows_.size()) incast_seconds_.resize(flows_.capacity());
  flows_[index] = {.route = route, .bottleneck = kNone, .state = FlowState::kNew, .floats_left = floats};
  incast_seconds_[index] = 0;
  if (stride_ > 0) {
    if (kept_paths_.size() < flows_.size() * stride_) kept_paths_.resize(flows_.size() * stride_);
    LinkIndex* const begin = &kept_paths_[index * stride_];
    LinkIndex* end = begin;
    paths_.for_path(route, [&](LinkIndex link, double) { *end++ = link; });
    if (end < begin + stride_) *end = kNone;
  }
  return index;
}

template <class Paths>
template <class OnLink>
FlowIndex RateSolver<Paths>::add_flow(const Route& route, double floats, OnLink on_link) {
  const FlowIndex index = new_flow(route, floats);
  path_.clear();
  for_path(index, [&](LinkIndex at, double flows) {
    Link& link = links_[at];
    add_up(link);
    on_link(at, flows);
    link.num_flows += flows;
    if (graph_) {
      path_.push_back(at);
    } else {
      link.flows.push_back(index);
    }
    mark(at);
  });
  new_flows_.push_back(index);
  if (graph_) {
    Flow& flow = flows_[index];
    flow.bottleneck = graph_->add(index, path_, floats);
    flow.state = floats > 0 ? FlowState::kFlowing : FlowState::kArrivedAtOnce;
    if (incast_at_.size() < flows_.size()) incast_at_.resize(flows_.capacity());
    const Link& link = links_[flow.bottleneck];
    incast_at_[index] = link.sums.incast;
    if (!(floats > 0)) arrived_.push_back(index);
  }
  return index;
}

template <class Paths>
template <class OnLink>
void RateSolver<Paths>::remove_flow(FlowIndex index, OnLink on_link) {
  Flow& flow = flows_[index];
  const double rate = flow.state == FlowState::kArrivedAtOnce ? 0 : links_[flow.bottleneck].level;
  flow.state = FlowState::kRemoved;
  if (graph_) graph_->remove(index);
  for_path(index, [&](LinkIndex at, double flows) {
    Link& link = links_[at];
    add_up(link);
    on_link(at, flows);
    if (!graph_) link.load -= flows * rate;
    link.num_flows -= flows;
    if (link.num_flows < kNoFlow) link.num_flows = 0;
    mark(at);
  });
}

// Takes a flow off its bottleneck, with what is left of it now; returns the rate that it had.
template <class Paths>
double RateSolver<Paths>::update(FlowIndex index) {
  Flow& flow = flows_[index];
  if (flow.state == FlowState::kNew) return 0;
  Link& link = links_[flow.bottleneck];
  --link.num_limited;
  flow.floats_left -= link.level * (now_ - link.updated_at);
  add_up(link);
  if (link.sums.incast > link.incast_at_update) incast_seconds_[index] += link.sums.incast - link.incast_at_update;
  return link.level;
}

template <class Paths>
GAR_SIM_HOT std::span<const FlowIndex> RateSolver<Paths>::collect_arrived() {
  if (graph_) {
    if (std::exchange(is_due_, false)) {
      const std::size_t first = arrived_.size();
      graph_->collect_arrived(arrived_);
      for (std::size_t i = first; i < arrived_.size(); ++i) {
        flows_[arrived_[i]].state = FlowState::kArrived;
        settle_incast(arrived_[i], flows_[arrived_[i]].bottleneck);
      }
    }
  } else {
    while (num_seen_ < changed_.size()) join_region(changed_[num_seen_++], /*may_arrive=*/true);
  }
  const std::size_t begin = std::exchange(num_returned_, arrived_.size());
  return std::span(arrived_).subspan(begin);
}

// ---------------------------------------------------------------------------------------------------------- region

// A link joins with all its flows that are under way. Once rates have been found at this moment, flows that have
// nothing left stay, and arrive at the next one.
template <class Paths>
void RateSolver<Paths>::join_region(LinkIndex index, bool may_arrive) {
  Link& link = links_[index];
  if (link.in_region) return;
  link.in_region = true;
  region_.push_back(index);
  for (const FlowIndex f : link.flows) {
    Flow& flow = flows_[f];
    if (flow.state != FlowState::kNew && flow.state != FlowState::kFlowing) continue;
    const double rate = update(f);
    if (may_arrive && flow.floats_left <= rate * now_ * kDoneTime) {
      const bool is_new = flow.state == FlowState::kNew;
      if (is_new) flow.bottleneck = index;
      flow.state = is_new ? FlowState::kArrivedAtOnce : FlowState::kArrived;
      arrived_.push_back(f);
      continue;
    }
    flow.state = FlowState::kFilling;
    if (flow.floats_left < 0) flow.floats_left = 0;
    region_flows_.push_back(f);
    if (rate == 0) continue;
    for_path(f, [&](LinkIndex at, double flows) {
      Link& crossed = links_[at];
      if (!crossed.has_old_load) {
        crossed.has_old_load = true;
        crossed.old_load = 0;
        with_old_load_.push_back(at);
      }
      crossed.old_load += flows * rate;
    });
  }
}

// A new flow needs a link in the region that may be its bottleneck, unless it shares no link with others.
template <class Paths>
template <class OnDue>
void RateSolver<Paths>::place_new_flow(FlowIndex index, OnDue on_due) {
  Flow& flow = flows_[index];
  if (flow.state != FlowState::kNew) return;
  double least = kNever;
  LinkIndex narrowest = kNone;
  bool is_in_region = false;
  bool is_alone = true;
  for_path(index, [&](LinkIndex at, double flows) {
    const Link& link = links_[at];
    is_in_region = is_in_region || link.in_region;
    is_alone = is_alone && link.num_flows == flows;
    if (link.capacity < least * link.num_flows) {
      least = link.capacity / link.num_flows;
      narrowest = at;
    }
  });
  if (is_in_region) {
    flow.state = FlowState::kFilling;
    region_flows_.push_back(index);
  } else if (is_alone) {
    flow.state = FlowState::kFlowing;
    flow.bottleneck = narrowest;
    for_path(index, [&](LinkIndex at, double flows) { links_[at].load = flows * least; });
    Link& link = links_[narrowest];
    link.level = least;
    link.updated_at = now_;
    link.incast_at_update = link.sums.incast;
    link.load_at_update = link.load;
    link.num_limited = 1;
    on_due(narrowest, now_ + flow.floats_left / least);
  } else {
    join_region(narrowest, /*may_arrive=*/false);
  }
}

// Links that removed flows have crossed have all changed, so they are in the region or among the spare ones.
template <class Paths>
void RateSolver<Paths>::forget_removed_flows() {
  if (arrived_.empty()) return;
  for (const std::vector<LinkIndex>* links : {&region_, &changed_spare_}) {
    for (const LinkIndex at : *links) {
      Link& link = links_[at];
      if (link.num_flows > 0) {
        std::erase_if(link.flows, [&](FlowIndex f) { return flows_[f].state == FlowState::kRemoved; });
      } else {
        link.flows.clear();
      }
    }
  }
  if (free_flows_.empty()) {
    free_flows_.swap(arrived_);
  } else {
    free_flows_.insert(free_flows_.end(), arrived_.begin(), arrived_.end());
  }
  arrived_.clear();
  if (arrived_.capacity() > kLongList) arrived_.shrink_to_fit();
}

// ------------------------------------------------------------------------------------------------------------ filling

template <class Paths>
void RateSolver<Paths>::take(Link& link, double flows, double level) {
  link.num_open -= flows;
  if (link.group_level != level) {
    link.frozen_load += link.group_flows * link.group_level;
    link.group_level = level;
    link.group_flows = 0;
  }
  link.group_flows += flows;
}

template <class Paths>
void RateSolver<Paths>::freeze(LinkIndex index, double level) {
  Link& link = links_[index];
  link.level = level;
  for (const FlowIndex f : link.flows) {
    Flow& flow = flows_[f];
    if (flow.state != FlowState::kFilling) continue;
    flow.state = FlowState::kFlowing;
    flow.bottleneck = index;
    ++link.num_frozen;
    link.least_left = std::min(link.least_left, flow.floats_left);
    for_path(f, [&](LinkIndex at, double flows) { take(links_[at], flows, level); });
  }
}

template <class Paths>
void RateSolver<Paths>::fill() {
  ++num_solves_;
  heap_.clear();
  for (const LinkIndex at : region_) {
    Link& link = links_[at];
    link.capacity = link.state.capacity(link.num_senders);
    link.frozen_load = link.group_flows = 0;
    link.group_level = -1;
    link.num_open = link.num_flows;
    link.num_frozen = 0;
    link.least_left = kNever;
    link.level = 0;
  }
  for (const LinkIndex at : region_) {
    const Link& link = links_[at];
    if (link.num_open > 0) heap_.emplace_back(link.capacity / link.num_flows, at);
  }
  // Links of one level in the order of their numbers, whatever the library's heaps do with equal ones.
  const auto is_higher = [](const auto& a, const auto& b) { return a > b; };
  std::make_heap(heap_.begin(), heap_.end(), is_higher);
  double highest = 0;
  while (!heap_.empty()) {
    const auto [level, at] = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), is_higher);
    const Link& link = links_[at];
    if (link.num_open <= 0) {
      heap_.pop_back();
      continue;
    }
    // Entries are lower bounds: a link whose flows have been frozen elsewhere is full later than it seemed.
    double exact = (link.capacity - group_load(link)) / link.num_open;
    if (exact > level * (1 + kHeapSlack)) {
      heap_.back() = {exact, at};
      std::push_heap(heap_.begin(), heap_.end(), is_higher);
      continue;
    }
    heap_.pop_back();
    if (!(exact > highest * (1 + kSame))) exact = highest;  // ties stay ties
    highest = exact;
    freeze(at, exact);
  }
}

// ----------------------------------------------------------------------------------------------------------- the
// border

template <class Paths>
void RateSolver<Paths>::find_border() {
  border_.clear();
  for (const FlowIndex f : region_flows_) {
    const double rate = links_[flows_[f].bottleneck].level;
    for_path(f, [&](LinkIndex at, double flows) {
      Link& link = links_[at];
      if (link.in_region) return;
      if (!link.in_border) {
        link.in_border = true;
        link.new_load = link.fastest = 0;
        border_.push_back(at);
      }
      link.new_load += flows * rate;
      link.fastest = std::max(link.fastest, rate);
    });
  }
}

// Do the new rates make a link at the border part of the region?
template <class Paths>
bool RateSolver<Paths>::must_join(const Link& link) const {
  const double load = link.load + link.new_load - (link.has_old_load ? link.old_load : 0);
  const bool is_overfull = load > link.capacity * (1 + same_);
  const bool changes_others = link.num_limited > 0 && (std::abs(load - link.load_at_update) > link.capacity * same_ ||
                                                       link.fastest > link.level * (1 + same_));
  return is_overfull || changes_others;
}

// Returns whether links at the border have joined the region, so that it must be filled once more.
template <class Paths>
bool RateSolver<Paths>::extend() {
  if (region_flows_.empty()) return false;
  find_border();
  joining_.clear();
  for (const LinkIndex at : border_) {
    links_[at].in_border = false;
    if (must_join(links_[at])) joining_.push_back(at);
  }
  if (joining_.empty()) return false;
  for (const FlowIndex f : region_flows_) flows_[f].state = FlowState::kFilling;
  for (const LinkIndex at : joining_) join_region(at, /*may_arrive=*/false);
  return true;
}

// ---------------------------------------------------------------------------------------------------------- the result

template <class Paths>
template <class OnChange>
void RateSolver<Paths>::keep(LinkIndex index, OnChange on_change) {
  Link& link = links_[index];
  link.has_changed = false;
  add_up(link);
  link.incast_share = link.num_flows > 0 ? link.state.incast_share(link.num_senders) : 0;
  on_change(index);
}

template <class Paths>
template <class OnDue, class OnChange>
void RateSolver<Paths>::commit(OnDue on_due, OnChange on_change) {
  for (const LinkIndex at : border_) {
    Link& link = links_[at];
    add_up(link);
    link.load += link.new_load - (link.has_old_load ? link.old_load : 0);
  }
  for (const LinkIndex at : changed_spare_) {
    if (!links_[at].in_region) keep(at, on_change);
  }
  for (const LinkIndex at : region_) {
    Link& link = links_[at];
    link.in_region = false;
    add_up(link);
    link.updated_at = now_;
    link.incast_at_update = link.sums.incast;
    link.load = link.num_flows > 0 ? link.frozen_load + link.group_flows * std::max(link.group_level, 0.0) : 0;
    link.load_at_update = link.load;
    link.num_limited += link.num_frozen;
    on_due(at, link.num_frozen > 0 ? now_ + link.least_left / link.level : kNever);
    keep(at, on_change);
  }
  for (const LinkIndex at : with_old_load_) links_[at].has_old_load = false;
}

template <class Paths>
template <class OnDue, class OnChange>
GAR_SIM_HOT void RateSolver<Paths>::solve(OnDue on_due, OnChange on_change) {
  const std::size_t num_changes = new_flows_.size() + arrived_.size();
  if (graph_) {
    const bool has_few = num_changes <= kLargeRegion + graph_->num_flows() / kFewChanges;
    if ((has_few || graph_use_ == GraphUse::kAlways) && solve_graph(on_due, on_change)) {
      if (graph_->num_flows() == 0) graph_.reset();
      clear_update();
      return;
    }
    leave_graph();
  } else {
    for (const LinkIndex at : changed_spare_) {
      Link& link = links_[at];
      link.capacity = link.state.capacity(link.num_senders);
      if (link.num_flows <= 0) link.load = 0;
    }
    for (const FlowIndex f : new_flows_) place_new_flow(f, on_due);
    forget_removed_flows();
  }
  do {
    fill();
  } while (extend());
  commit(on_due, on_change);
  weigh_region(num_changes);
  clear_update();
}

template <class Paths>
void RateSolver<Paths>::clear_update() {
  changed_.clear();
  changed_spare_.clear();
  new_flows_.clear();
  if (new_flows_.capacity() > kLongList) new_flows_.shrink_to_fit();
  region_.clear();
  region_flows_.clear();
  with_old_load_.clear();
  border_.clear();
  num_seen_ = num_returned_ = 0;
}

// --------------------------------------------------------------------------------------------------------- the graph

template <class Paths>
void RateSolver<Paths>::weigh_region(std::size_t num_changes) {
  if (graph_use_ == GraphUse::kNotAtAll) return;
  const bool is_large = region_flows_.size() > kLargeRegion + kFewChanges * num_changes;
  num_large_regions_ = is_large ? num_large_regions_ + 1 : std::min(num_large_regions_, 0);
  const bool shall_try = graph_use_ == GraphUse::kAlways && num_large_regions_ > -kNotPossible;
  if (num_large_regions_ >= kPatience || shall_try) enter_graph();
}

// Incast that a flow has seen at its bottleneck until now; another link may be its bottleneck from now on.
template <class Paths>
void RateSolver<Paths>::settle_incast(FlowIndex flow, LinkIndex to) {
  Link& from = links_[flows_[flow].bottleneck];
  add_up(from);
  incast_seconds_[flow] += std::max(from.sums.incast - incast_at_[flow], 0.0);
  add_up(links_[to]);
  incast_at_[flow] = links_[to].sums.incast;
}

// All flows move to the graph, if each crosses a link at most once and stands for itself alone.
template <class Paths>
void RateSolver<Paths>::enter_graph() {
  num_large_regions_ = 0;
  bool stands_for_itself = true;
  for (FlowIndex f = 0; f < flows_.size(); ++f) {
    if (flows_[f].state != FlowState::kFlowing) continue;
    for_path(f, [&](LinkIndex, double flows) { stands_for_itself = stands_for_itself && flows == 1; });
  }
  if (!stands_for_itself) {
    num_large_regions_ = -kNotPossible;
    return;
  }
  graph_ = std::make_unique<BottleneckGraph>(links_.size(), same_);
  graph_->advance_to(now_);
  for (LinkIndex at = 0; at < links_.size(); ++at) {
    Link& link = links_[at];
    graph_->set_capacity(at, link.state.capacity(link.num_senders));
    if (link.num_limited > 0) graph_->set_level(at, link.level);
  }
  incast_at_.assign(flows_.capacity(), 0);
  for (FlowIndex f = 0; f < flows_.size(); ++f) {
    const Flow& flow = flows_[f];
    if (flow.state != FlowState::kFlowing) continue;
    const Link& link = links_[flow.bottleneck];
    path_.clear();
    for_path(f, [&](LinkIndex at, double) { path_.push_back(at); });
    graph_->add(f, path_, flow.bottleneck, flow.floats_left - link.level * (now_ - link.updated_at));
    incast_at_[f] = link.incast_at_update;
  }
  graph_->find_all_due();
  for (Link& link : links_) link.flows.clear();
  all_scheduled_ = true;
}

template <class Paths>
template <class OnDue, class OnChange>
bool RateSolver<Paths>::solve_graph(OnDue on_due, OnChange on_change) {
  for (const std::vector<LinkIndex>* links : {&changed_, &changed_spare_}) {
    for (const LinkIndex at : *links) {
      Link& link = links_[at];
      add_up(link);
      link.capacity = link.state.capacity(link.num_senders);
      graph_->set_capacity(at, link.capacity);
    }
  }
  ++num_solves_;
  const bool is_solved = graph_->solve();
  for (const BottleneckGraph::Switch& one : graph_->switches()) {
    Flow& flow = flows_[one.flow];
    settle_incast(one.flow, one.to);
    flow.bottleneck = one.to;
  }
  if (!is_solved) return false;
  const std::vector<LinkIndex>& touched = graph_->touched();
  for (const LinkIndex at : touched) {
    Link& link = links_[at];
    add_up(link);
    link.load = link.num_flows > 0 ? graph_->load(at) : 0;
    link.level = graph_->level(at);
  }
  if (touched.size() > graph_->num_limiting() / 8) all_scheduled_ = false;
  if (all_scheduled_) {
    for (const LinkIndex at : touched) on_due(at, graph_->due(at));
  } else if (const LinkIndex first = graph_->first_due(); first != kNone) {
    on_due(first, graph_->due(first));
  }
  for (const std::vector<LinkIndex>* links : {&changed_, &changed_spare_}) {
    for (const LinkIndex at : *links) keep(at, on_change);
  }
  free_flows_.insert(free_flows_.end(), arrived_.begin(), arrived_.end());
  arrived_.clear();
  return true;
}

// All flows move back, and all links are the region.
template <class Paths>
void RateSolver<Paths>::leave_graph() {
  num_large_regions_ = -4 * kPatience;
  for (LinkIndex at = 0; at < links_.size(); ++at) {
    Link& link = links_[at];
    add_up(link);
    link.num_limited = 0;
    link.in_region = true;
    region_.push_back(at);
  }
  for (FlowIndex f = 0; f < flows_.size(); ++f) {
    Flow& flow = flows_[f];
    if (flow.state != FlowState::kFlowing) continue;
    settle_incast(f, flow.bottleneck);
    flow.floats_left = std::max(graph_->left(f), 0.0);
    flow.state = FlowState::kFilling;
    region_flows_.push_back(f);
    for_path(f, [&](LinkIndex at, double) { links_[at].flows.push_back(f); });
  }
  free_flows_.insert(free_flows_.end(), arrived_.begin(), arrived_.end());
  arrived_.clear();
  graph_.reset();
}

template <class Paths>
void RateSolver<Paths>::repeat(double now, double times, const std::vector<LinkSums>& before) {
  now_ = now;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    link.sums.repeat(times, before[i]);
    link.added_up_at = now_;
    link.incast_at_update = link.sums.incast;
  }
}

}  // namespace gar::sim
