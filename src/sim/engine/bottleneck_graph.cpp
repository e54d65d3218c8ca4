#include "sim/engine/bottleneck_graph.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/engine/time.hpp"
#include "sim/worlds/world.hpp"

namespace gar::sim {

BottleneckGraph::BottleneckGraph(std::size_t num_links, double tolerance)
    : tolerance_(tolerance),
      level_(num_links, kNever),
      capacity_(num_links, 0),
      load_(num_links, 0),
      work_(num_links, 0),
      work_at_(num_links, 0),
      due_(num_links, kNever),
      num_own_(num_links, 0),
      position_(num_links, kNowhere),
      is_dirty_(num_links, 0),
      is_touched_(num_links, 0),
      foreign_(num_links),
      dependents_(num_links),
      crossing_(num_links),
      marks_(num_links) {}

// ----------------------------------------------------------------------------------------------------------- flows

void BottleneckGraph::widen(std::size_t stride) {
  std::vector<LinkIndex> paths(lengths_.size() * stride);
  std::vector<std::uint32_t> places(lengths_.size() * stride);
  for (std::size_t f = 0; f < lengths_.size(); ++f) {
    for (std::size_t i = 0; i < lengths_[f]; ++i) {
      paths[f * stride + i] = paths_[f * stride_ + i];
      places[f * stride + i] = places_[f * stride_ + i];
    }
  }
  stride_ = stride;
  paths_.swap(paths);
  places_.swap(places);
}

void BottleneckGraph::place(FlowIndex flow, std::span<const LinkIndex> path, LinkIndex bottleneck, double floats) {
  if (path.size() > stride_) widen(path.size());
  if (flow >= lengths_.size()) {
    const std::size_t size = std::max<std::size_t>(flow + 1, 2 * lengths_.size());
    lengths_.resize(size, 0);
    bottleneck_.resize(size, kNone);
    mark_.resize(size, 0);
    paths_.resize(size * stride_);
    places_.resize(size * stride_);
  }
  ++num_flows_;
  lengths_[flow] = static_cast<std::uint8_t>(path.size());
  bottleneck_[flow] = bottleneck;
  mark_[flow] = work(bottleneck) + floats;
  ++num_own_[bottleneck];
  push(bottleneck, flow);
  for (std::size_t i = 0; i < path.size(); ++i) {
    const LinkIndex link = path[i];
    paths_[flow * stride_ + i] = link;
    places_[flow * stride_ + i] = static_cast<std::uint32_t>(crossing_[link].size());
    crossing_[link].push_back(flow);
    if (link != bottleneck) add_edge(link, bottleneck);
    mark_dirty(link);
  }
}

void BottleneckGraph::add(FlowIndex flow, std::span<const LinkIndex> path, LinkIndex bottleneck, double floats) {
  place(flow, path, bottleneck, floats);
}

LinkIndex BottleneckGraph::add(FlowIndex flow, std::span<const LinkIndex> path, double floats) {
  LinkIndex best = path[0];
  double least = kNever;
  for (const LinkIndex link : path) {
    const double share = capacity_[link] / static_cast<double>(crossing_[link].size() + 1);
    const double level = limits(link) ? level_[link] : share;
    if (level < least) {
      least = level;
      best = link;
    }
  }
  if (!limits(best)) enter_order(best, std::min(least, 1e300));
  place(flow, path, best, floats);
  return best;
}

void BottleneckGraph::remove(FlowIndex flow) {
  const LinkIndex bottleneck = bottleneck_[flow];
  const std::span<const LinkIndex> links = path(flow);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const LinkIndex link = links[i];
    std::vector<FlowIndex>& all = crossing_[link];
    const std::uint32_t place = places_[flow * stride_ + i];
    const FlowIndex last = all.back();
    all[place] = last;
    all.pop_back();
    if (last != flow) {
      std::size_t k = last * stride_;
      while (paths_[k] != link) ++k;
      places_[k] = place;
    }
    if (link != bottleneck) remove_edge(link, bottleneck);
    mark_dirty(link);
  }
  --num_own_[bottleneck];
  bottleneck_[flow] = kNone;
  lengths_[flow] = 0;
  --num_flows_;
}

void BottleneckGraph::add_edge(LinkIndex to, LinkIndex from) {
  for (Edge& edge : foreign_[to]) {
    if (edge.from != from) continue;
    ++edge.flows;
    return;
  }
  foreign_[to].push_back({from, 1});
  dependents_[from].push_back(to);
}

void BottleneckGraph::remove_edge(LinkIndex to, LinkIndex from) {
  std::vector<Edge>& edges = foreign_[to];
  std::size_t i = 0;
  while (edges[i].from != from) ++i;
  if (--edges[i].flows > 0) return;
  edges[i] = edges.back();
  edges.pop_back();
  std::vector<LinkIndex>& dependents = dependents_[from];
  *std::find(dependents.begin(), dependents.end(), to) = dependents.back();
  dependents.pop_back();
}

void BottleneckGraph::push(LinkIndex link, FlowIndex flow) {
  std::vector<Mark>& marks = marks_[link];
  if (marks.size() > 2 * std::size_t{num_own_[link]} + 32) {
    std::erase_if(marks, [&](const Mark& mark) { return !is_valid(link, mark) || mark.flow == flow; });
    std::make_heap(marks.begin(), marks.end(), Later{});
  }
  marks.push_back({mark_[flow], flow});
  std::push_heap(marks.begin(), marks.end(), Later{});
}

// ------------------------------------------------------------------------------------------------------------ marks

void BottleneckGraph::touch(LinkIndex link) {
  if (is_touched_[link] != 0) return;
  is_touched_[link] = 1;
  touched_.push_back(link);
}

void BottleneckGraph::mark_dirty(LinkIndex link) {
  if (is_dirty_[link] != 0) return;
  is_dirty_[link] = 1;
  if (limits(link)) {
    ++num_dirty_;
    first_dirty_ = std::min<std::size_t>(first_dirty_, position_[link]);
  } else {
    dirty_spare_.push_back(link);
  }
}

void BottleneckGraph::mark_all_from(std::size_t position) {
  is_dense_ = true;
  frontier_ = position;
  for (std::size_t i = position; i < order_.size(); ++i) mark_dirty(order_[i]);
  for (LinkIndex link = 0; link < level_.size(); ++link) {
    if (!limits(link) && !crossing_[link].empty()) mark_dirty(link);
  }
}

// A level has changed: its dependents are dirty. They come behind it, or have the same level as it had.
void BottleneckGraph::mark_dependents(LinkIndex link, double old_level) {
  const std::size_t position = position_[link];
  if (is_dense_ && position + 1 >= frontier_) {
    const double least = old_level * (1 - 4 * tolerance_);
    for (std::size_t i = position; i-- > 0 && level_[order_[i]] >= least;) mark_dirty(order_[i]);
    return;
  }
  for (const LinkIndex dependent : dependents_[link]) mark_dirty(dependent);
}

// ------------------------------------------------------------------------------------------------------------ order

void BottleneckGraph::enter_order(LinkIndex link, double level) {
  level_[link] = level;
  work_at_[link] = now_;
  if (is_dirty_[link] != 0) {  // it is in dirty_spare_, where it does no harm
    ++num_dirty_;
  }
  order_.push_back(link);
  position_[link] = static_cast<std::uint32_t>(order_.size() - 1);
  sort_in(link);
  if (is_dirty_[link] != 0) first_dirty_ = std::min<std::size_t>(first_dirty_, position_[link]);
}

void BottleneckGraph::leave_order(LinkIndex link) {
  work_[link] = work(link);
  const std::size_t position = position_[link];
  for (std::size_t i = position; i + 1 < order_.size(); ++i) put(order_[i + 1], i);
  order_.pop_back();
  position_[link] = kNowhere;
  level_[link] = kNever;
  marks_[link].clear();
  touch(link);
  first_dirty_ = std::min(first_dirty_, position);
  if (frontier_ > position) --frontier_;
}

// Puts a link whose level has changed where it belongs. Links that it passes on its way up are looked at again, for
// flows that it limits may be too fast for them now.
void BottleneckGraph::sort_in(LinkIndex link) {
  const double level = level_[link];
  std::size_t at = position_[link];
  first_dirty_ = std::min(first_dirty_, at);
  while (at + 1 < order_.size() && level_[order_[at + 1]] < level) {
    mark_dirty(order_[at + 1]);
    put(order_[at + 1], at);
    ++at;
  }
  while (at > 0 && level_[order_[at - 1]] > level) {
    put(order_[at - 1], at);
    --at;
  }
  put(link, at);
  first_dirty_ = std::min(first_dirty_, at);
  if (is_dense_ && at >= frontier_) mark_dirty(link);
}

void BottleneckGraph::set_level(LinkIndex link, double level) { enter_order(link, level); }

// ----------------------------------------------------------------------------------------------------------- levels

// The level at which a link is full if no flow on it may be faster; at least `level`, which is too low.
double BottleneckGraph::fair_level(LinkIndex link, double level) const {
  for (;;) {
    double rest = 0;
    double open = num_own_[link];
    for (const Edge& edge : foreign_[link]) {
      const double other = level_[edge.from];
      if (other > level) {
        open += edge.flows;
      } else {
        rest += edge.flows * other;
      }
    }
    if (open == 0) return level;
    const double next = (capacity_[link] - rest) / open;
    if (!(next > level)) return level;
    level = next;
  }
}

// The flows are on this link, and on those that limit them now: the shorter lists are looked through.
void BottleneckGraph::take_over(LinkIndex link, double limit) {
  too_fast_.clear();
  std::size_t num_there = 0;
  for (const Edge& edge : foreign_[link]) {
    if (!(level_[edge.from] > limit)) continue;
    too_fast_.push_back(edge.from);
    num_there += crossing_[edge.from].size();
  }
  if (num_there >= crossing_[link].size()) {
    for (const FlowIndex flow : crossing_[link]) {
      const LinkIndex from = bottleneck_[flow];
      if (from != link && level_[from] > limit) change_bottleneck(flow, link);
    }
    return;
  }
  for (const LinkIndex from : too_fast_) {
    for (const FlowIndex flow : crossing_[from]) {
      if (bottleneck_[flow] != from) continue;
      const std::span<const LinkIndex> links = path(flow);
      if (std::find(links.begin(), links.end(), link) != links.end()) change_bottleneck(flow, link);
    }
  }
}

void BottleneckGraph::change_bottleneck(FlowIndex flow, LinkIndex to) {
  const LinkIndex from = bottleneck_[flow];
  const double floats = left(flow);
  switches_.push_back({flow, from, to});
  --num_own_[from];
  ++num_own_[to];
  bottleneck_[flow] = to;
  mark_[flow] = work(to) + floats;
  push(to, flow);
  touch(from);
  touch(to);
  for (const LinkIndex link : path(flow)) {
    if (link != from) remove_edge(link, from);
    if (link != to) {
      add_edge(link, to);
      mark_dirty(link);
    }
  }
}

void BottleneckGraph::change_level(LinkIndex link, double level) {
  if (!limits(link)) {
    enter_order(link, level);
    return;
  }
  const double old = level_[link];
  if (std::abs(level - old) <= tolerance_ * old) return;
  work_[link] = work(link);
  work_at_[link] = now_;
  level_[link] = level;
  mark_dependents(link, old);
  sort_in(link);
}

// In four sums, none of which waits for the others.
BottleneckGraph::Foreign BottleneckGraph::add_foreign(LinkIndex link) const {
  const std::vector<Edge>& edges = foreign_[link];
  std::array<double, 4> load{};
  std::array<double, 4> fastest{};
  const auto take = [&](std::size_t i, std::size_t lane) {
    const double level = level_[edges[i].from];
    load[lane] += edges[i].flows * level;
    fastest[lane] = level > fastest[lane] ? level : fastest[lane];
  };
  std::size_t i = 0;
  for (; i + 4 <= edges.size(); i += 4) {
    take(i, 0);
    take(i + 1, 1);
    take(i + 2, 2);
    take(i + 3, 3);
  }
  for (; i < edges.size(); ++i) take(i, 0);
  return {(load[0] + load[1]) + (load[2] + load[3]),
          std::max(std::max(fastest[0], fastest[1]), std::max(fastest[2], fastest[3]))};
}

void BottleneckGraph::evaluate(LinkIndex link) {
  const auto [foreign_load, fastest] = add_foreign(link);
  double foreign = foreign_load;
  const double capacity = capacity_[link];
  const bool has_own = num_own_[link] > 0;
  double level = has_own ? (capacity - foreign) / num_own_[link] : 0;
  const bool is_wrong = has_own ? fastest > level * (1 + tolerance_) : foreign > capacity * (1 + tolerance_);
  if (is_wrong) {
    level = fair_level(link, level);
    take_over(link, level * (1 + tolerance_));
    foreign = add_foreign(link).load;
    if (num_own_[link] > 0) level = (capacity - foreign) / num_own_[link];
  }
  if (num_own_[link] == 0) {
    if (limits(link)) {
      leave_order(link);
      // What limits its flows now may come behind it, and in a dense sweep a spare link is not told of that.
      if (is_dense_) mark_dirty(link);
    }
    set_load(link, foreign);
    return;
  }
  const double before = level_[link];
  change_level(link, level);
  if (level_[link] != before) touch(link);
  set_load(link, foreign + num_own_[link] * level_[link]);
}

// Touches links that have changed alone: the same flows at the same rates give the same load to the last digit.
void BottleneckGraph::set_load(LinkIndex link, double load) {
  if (load == load_[link]) return;
  load_[link] = load;
  touch(link);
}

bool BottleneckGraph::solve() {
  for (const LinkIndex link : touched_) is_touched_[link] = 0;
  touched_.clear();
  for (const LinkIndex link : changed_) touch(link);
  changed_.clear();
  switches_.clear();
  is_dense_ = false;
  std::size_t budget = 16 * (order_.size() + dirty_spare_.size()) + 4096;
  std::vector<LinkIndex> spare;
  while (num_dirty_ > 0 || !dirty_spare_.empty()) {
    std::size_t at = first_dirty_;
    while (num_dirty_ > 0) {
      const LinkIndex link = order_[at];
      first_dirty_ = at + 1;
      if (is_dirty_[link] != 0) {
        is_dirty_[link] = 0;
        --num_dirty_;
        if (budget-- == 0) return false;
        if (is_dense_) frontier_ = std::max(frontier_, at + 1);
        evaluate(link);
        if (!is_dense_ && num_dirty_ > 64 && num_dirty_ > order_.size() / 3) {
          mark_all_from(at + 1);
          budget += 16 * level_.size();
        }
      }
      at = first_dirty_;
    }
    first_dirty_ = order_.size();
    is_dense_ = false;
    spare.swap(dirty_spare_);
    dirty_spare_.clear();
    for (const LinkIndex link : spare) {
      if (is_dirty_[link] == 0 || limits(link)) continue;
      is_dirty_[link] = 0;
      if (budget-- == 0) return false;
      evaluate(link);
    }
  }
  for (const LinkIndex link : touched_) find_due(link);
  return true;
}

void BottleneckGraph::set_capacity(LinkIndex link, double capacity) {
  capacity_[link] = capacity;
  changed_.push_back(link);
  mark_dirty(link);
}

// --------------------------------------------------------------------------------------------------------- arrivals

void BottleneckGraph::find_due(LinkIndex link) {
  std::vector<Mark>& marks = marks_[link];
  while (!marks.empty() && !is_valid(link, marks.front())) {
    std::pop_heap(marks.begin(), marks.end(), Later{});
    marks.pop_back();
  }
  due_[link] =
      marks.empty() || !limits(link) ? kNever : now_ + std::max(marks.front().work - work(link), 0.0) / level_[link];
}

void BottleneckGraph::find_all_due() {
  for (const LinkIndex link : order_) find_due(link);
}

LinkIndex BottleneckGraph::first_due() const {
  LinkIndex first = kNone;
  double time = kNever;
  for (const LinkIndex link : order_) {
    if (due_[link] >= time) continue;
    time = due_[link];
    first = link;
  }
  return first;
}

void BottleneckGraph::collect_arrived(std::vector<FlowIndex>& arrived) {
  for (const LinkIndex link : order_) {
    if (due_[link] > now_ * (1 + kTieTime)) continue;
    const double done = work(link) + level_[link] * now_ * kDoneTime;
    std::vector<Mark>& marks = marks_[link];
    bool is_first = true;  // it is due, even if rounding says that some of it is left
    while (!marks.empty() && (is_first || marks.front().work <= done)) {
      const Mark mark = marks.front();
      std::pop_heap(marks.begin(), marks.end(), Later{});
      marks.pop_back();
      if (!is_valid(link, mark)) continue;
      arrived.push_back(mark.flow);
      mark_[mark.flow] = kNever;
      is_first = false;
    }
    changed_.push_back(link);
    mark_dirty(link);
  }
}

}  // namespace gar::sim
