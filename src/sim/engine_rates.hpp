// Max-min fair rates. Part of engine.hpp, which says how.
#pragma once

#include "sim/engine.hpp"

namespace gar::sim {

template <class World>
void Engine<World>::collect(std::uint32_t id, bool may_end) {
  Link& l = links_[id];
  if (l.in_region) return;
  l.in_region = true;
  region_.push_back(id);
  for (const std::uint32_t f : l.flows) {
    Flow& flow = flows_[f];
    if ((flow.bottleneck >= kDead && flow.bottleneck != kNew) || flow.left < 0) continue;
    double rate = 0;
    const std::uint32_t bottleneck = flow.bottleneck;
    if (bottleneck != kNew) {
      Link& b = links_[bottleneck];
      --b.bottlenecked;
      rate = b.level;
      flow.left -= rate * (now_ - b.since);
      touch(b);
      if (b.incast > b.incast_since) incast_[f] += b.incast - b.incast_since;
    }
    if (may_end && flow.left <= rate * now_ * kDoneTime) {
      flow.bottleneck = bottleneck == kNew ? id : bottleneck;
      flow.left = bottleneck == kNew ? -2 : -1;  // done, without or with a rate
      done_.push_back(f);
      continue;
    }
    flow.bottleneck = kRegion;
    if (flow.left < 0) flow.left = 0;  // it ends in a moment
    region_flows_.push_back(f);
    if (rate == 0) continue;
    for_path(f, [&](std::uint32_t m, double n) {
      Link& k = links_[m];
      if (!k.has_old) {
        k.has_old = true;
        k.old_rates = 0;
        old_.push_back(m);
      }
      k.old_rates += n * rate;
    });
  }
}

template <class World>
void Engine<World>::freeze(std::uint32_t id, double level) {
  Link& l = links_[id];
  l.level = level;
  for (const std::uint32_t f : l.flows) {
    Flow& flow = flows_[f];
    if (flow.bottleneck != kRegion) continue;
    flow.bottleneck = id;
    ++l.frozen;
    l.least_left = std::min(l.least_left, flow.left);
    for_path(f, [&](std::uint32_t m, double n) {
      Link& k = links_[m];
      k.open -= n;
      take(k, n, level);
    });
  }
}

template <class World>
void Engine<World>::fill() {
  ++out_.solves;
  heap_.clear();
  for (const std::uint32_t id : region_) {
    Link& l = links_[id];
    l.capacity = l.state.capacity(l.w);
    l.used = l.group_n = 0;
    l.group_level = -1;
    l.open = l.n;
    l.frozen = 0;
    l.least_left = std::numeric_limits<double>::infinity();
    l.level = 0;
  }
  for (const std::uint32_t id : region_) {
    const Link& l = links_[id];
    if (l.open > 0) heap_.emplace_back(l.capacity / l.n, id);
  }
  const auto later = [](const auto& a, const auto& b) { return a.first > b.first; };
  std::make_heap(heap_.begin(), heap_.end(), later);
  double current = 0;
  while (!heap_.empty()) {
    const auto [level, id] = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Link& l = links_[id];
    if (l.open <= 0) {
      heap_.pop_back();
      continue;
    }
    double exact = (l.capacity - (l.used + l.group_n * l.group_level)) / l.open;
    if (exact > level * (1 + 1e-13)) {
      heap_.back() = {exact, id};
      std::push_heap(heap_.begin(), heap_.end(), later);
      continue;
    }
    heap_.pop_back();
    if (!(exact > current * (1 + 1e-12))) exact = current;  // ties stay ties
    current = exact;
    freeze(id, exact);
  }
}

// Links at the border that the new rates do not suit join the region. True when there were any.
template <class World>
bool Engine<World>::extend() {
  border_.clear();
  added_.clear();
  for (const std::uint32_t f : region_flows_) {
    const Flow& flow = flows_[f];
    const double rate = links_[flow.bottleneck].level;
    for_path(f, [&](std::uint32_t m, double n) {
      Link& l = links_[m];
      if (l.in_region) return;
      if (!l.in_border) {
        l.in_border = true;
        l.new_rates = l.fastest = 0;
        border_.push_back(m);
      }
      l.new_rates += n * rate;
      l.fastest = std::max(l.fastest, rate);
    });
  }
  for (const std::uint32_t m : border_) {
    Link& l = links_[m];
    l.in_border = false;
    const double load = l.load + l.new_rates - (l.has_old ? l.old_rates : 0);
    const bool is_overfull = load > l.capacity * (1 + kSameLoad);
    const bool has_changed = l.bottlenecked > 0 && (std::abs(load - l.reference) > l.capacity * kSameLoad ||
                                                    l.fastest > l.level * (1 + kSameLoad));
    if (is_overfull || has_changed) added_.push_back(m);
  }
  if (added_.empty()) return false;
  for (const std::uint32_t f : region_flows_) flows_[f].bottleneck = kRegion;
  for (const std::uint32_t m : added_) collect(m, false);
  return true;
}

// What is kept of a link whose flows have changed.
template <class World>
void Engine<World>::keep_load(std::uint32_t id) {
  Link& l = links_[id];
  touch(l);
  const double share = l.n > 0 ? l.state.incast_share(l.w) : 0;
  l.share = share;
  if (l.stage < l.stages.size() && l.w > l.stages[l.stage].senders) l.stages[l.stage].senders = l.w;
  if (job_.options.observer != nullptr) {
    job_.options.observer->on_load(world_.link_id(id), now_, std::llround(l.n), std::llround(l.w));
  }
}

// When the first flow with this bottleneck will end. An event that comes too early stays where it is and looks again.
template <class World>
void Engine<World>::schedule_link(std::uint32_t id, double time) {
  Link& l = links_[id];
  l.due = time;
  if (time >= l.scheduled) return;
  l.scheduled = time;
  queue_.push(time, {EventKind::kLink, id, ++l.version, 0});
}

template <class World>
void Engine<World>::commit() {
  for (const std::uint32_t m : border_) {
    Link& l = links_[m];
    touch(l);
    l.load += l.new_rates - (l.has_old ? l.old_rates : 0);
  }
  for (const std::uint32_t id : slack_) {
    if (links_[id].in_region) continue;
    links_[id].is_dirty = false;
    keep_load(id);
  }
  for (const std::uint32_t id : region_) {
    Link& l = links_[id];
    l.in_region = l.is_dirty = false;
    touch(l);
    l.since = now_;
    l.incast_since = l.incast;
    l.load = l.reference = l.n > 0 ? l.used + l.group_n * std::max(l.group_level, 0.0) : 0;
    l.bottlenecked += l.frozen;
    schedule_link(id, l.frozen > 0 ? now_ + l.least_left / l.level : kNever);
    keep_load(id);
  }
  for (const std::uint32_t m : old_) links_[m].has_old = false;
}

template <class World>
void Engine<World>::solve() {
  if (dirty_.empty()) return;
  region_.clear();
  region_flows_.clear();
  old_.clear();
  done_.clear();
  // The links that have changed; flows that are done change more of them.
  slack_.clear();
  std::size_t ended = 0;
  for (std::size_t i = 0; i < dirty_.size() || ended < done_.size() || !following_.empty();) {
    if (i < dirty_.size()) {
      const std::uint32_t id = dirty_[i++];
      if (links_[id].is_slack) {
        slack_.push_back(id);
      } else {
        collect(id, true);
      }
    } else if (ended < done_.size()) {
      for (; ended < done_.size(); ++ended) end_flow(done_[ended]);
    } else {
      for (const auto& [id, nth] : following_) add_waiting(id, nth);
      following_.clear();
    }
  }
  dirty_.clear();
  for (const std::uint32_t id : slack_) {
    Link& l = links_[id];
    l.capacity = l.state.capacity(l.w);
    if (l.n <= 0) l.load = 0;
  }
  // New flows need a link in the region that may be their bottleneck, unless they share no link with others.
  for (const std::uint32_t f : new_flows_) {
    if (flows_[f].bottleneck != kNew) continue;
    double least = std::numeric_limits<double>::infinity();
    std::uint32_t narrowest = kNone;
    bool is_in = false;
    bool is_alone = true;
    for_path(f, [&](std::uint32_t m, double n) {
      const Link& l = links_[m];
      is_in = is_in || l.in_region;
      is_alone = is_alone && l.n == n;
      if (l.capacity < least * l.n) {
        least = l.capacity / l.n;
        narrowest = m;
      }
    });
    if (is_in) {
      flows_[f].bottleneck = kRegion;
      region_flows_.push_back(f);
    } else if (is_alone) {
      flows_[f].bottleneck = narrowest;
      for_path(f, [&](std::uint32_t m, double n) { links_[m].load = n * least; });
      Link& l = links_[narrowest];
      l.level = least;
      l.since = now_;
      l.incast_since = l.incast;
      l.reference = l.load;
      l.bottlenecked = 1;
      schedule_link(narrowest, now_ + flows_[f].left / least);
    } else {
      collect(narrowest, false);
    }
  }
  new_flows_.clear();
  if (new_flows_.capacity() > kMuch) new_flows_.shrink_to_fit();
  if (!done_.empty()) {
    for (const std::vector<std::uint32_t>* ids : {&region_, &slack_}) {
      for (const std::uint32_t id : *ids) {
        Link& l = links_[id];
        if (l.n > 0) {
          std::erase_if(l.flows, [&](std::uint32_t f) { return flows_[f].bottleneck == kDead; });
        } else {
          l.flows.clear();
        }
      }
    }
    if (free_flows_.empty()) {
      free_flows_.swap(done_);
    } else {
      free_flows_.insert(free_flows_.end(), done_.begin(), done_.end());
    }
    done_.clear();
    if (done_.capacity() > kMuch) done_.shrink_to_fit();
  }
  border_.clear();
  do {
    fill();
  } while (!region_flows_.empty() && extend());
  commit();
}

}  // namespace gar::sim
