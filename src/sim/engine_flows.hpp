// Flows come and go, and what is kept of the links. Part of engine.hpp.
#pragma once

#include "sim/engine.hpp"

namespace gar::sim {

// Adds up what has happened on a link since it was touched last.
template <class World>
void Engine<World>::touch(Link& l) {
  const double elapsed = now_ - l.touched;
  if (elapsed <= 0) return;
  l.touched = now_;
  if (l.n <= 0) return;
  l.busy += elapsed;
  l.full += l.load / l.capacity * elapsed;
  if (l.share > 0) l.incast += l.share * elapsed;
}

// Changes the number of a stage's flows on a link that has been touched. What has happened until a stage's flows came
// is taken off its sums, and what has happened until they left is added.
template <class World>
void Engine<World>::count_stage(Link& l, std::uint32_t stage, double n) {
  if (l.stage >= l.stages.size() || l.stages[l.stage].stage != stage) {
    l.stage = 0;
    while (l.stage < l.stages.size() && l.stages[l.stage].stage != stage) ++l.stage;
    if (l.stage == l.stages.size()) l.stages.push_back({stage, 0, 0, 0, 0, 0});
  }
  StageLoad& s = l.stages[l.stage];
  const bool was_there = s.n > 0;
  s.n += n;
  if (s.n < kFraction) s.n = 0;
  if (was_there == (s.n > 0)) return;
  const double sign = was_there ? 1 : -1;
  s.busy += sign * l.busy;
  s.incast += sign * l.incast;
  s.full += sign * l.full;
}

template <class World>
void Engine<World>::mark(std::uint32_t l) {
  if (links_[l].is_dirty) return;
  links_[l].is_dirty = true;
  links_[l].is_slack = links_[l].bottlenecked == 0;
  dirty_.push_back(l);
}

// Does a flow of an earlier step or chunk between the same two ranks come first?
template <class World>
bool Engine<World>::is_held(const Instance& x, std::uint32_t nth, std::uint32_t a, std::uint32_t b) {
  if (x.before != kNone && instances_[x.before].sends[nth] != SendState::kDone) return true;
  for (const std::uint32_t other : sending(x)) {
    const Instance& y = instances_[other];
    if (y.number >= x.number) break;
    const std::uint32_t k = world_.find_send(y.rank, world_.step(y.step), y.is_mirror, a, b);
    if (k != kNone && y.sends[k] != SendState::kDone) return true;
  }
  return false;
}

template <class World>
void Engine<World>::activate(std::uint32_t id, double latency) {
  const SimStep& s = world_.step(instances_[id].step);
  const bool is_first = instances_[id].before == kNone && sending(instances_[id]).front() == id;
  world_.for_sends(instances_[id].rank, s, instances_[id].is_mirror,
                   [&, nth = std::uint32_t{0}](std::uint32_t a, std::uint32_t b, double part, double l) mutable {
                     if (l == latency) {
                       if (!is_first && is_held(instances_[id], nth, a, b)) {
                         instances_[id].sends[nth] = SendState::kWaiting;
                       } else {
                         add_flow(a, b, part * job_.chunk_floats, id, nth);
                       }
                     }
                     ++nth;
                   });
}

template <class World>
void Engine<World>::add_waiting(std::uint32_t id, std::uint32_t nth) {
  const Instance& x = instances_[id];
  if (x.sends[nth] != SendState::kWaiting) return;
  const auto [a, b, part] = world_.nth_send(x.rank, world_.step(x.step), x.is_mirror, nth);
  add_flow(a, b, part * job_.chunk_floats, id, nth);
}

// Those that waited for a flow between the same two ranks follow it, unless they wait for another one, too.
template <class World>
void Engine<World>::free_followers(std::uint32_t id, const Flow& flow) {
  Instance& x = instances_[id];
  x.sends[world_.find_send(x.rank, world_.step(x.step), x.is_mirror, flow.a, flow.b)] = SendState::kDone;
  const auto look_at = [&](std::uint32_t other) {
    const Instance& y = instances_[other];
    world_.for_followers(y.rank, world_.step(y.step), y.is_mirror, flow.a, flow.b, [&](std::uint32_t k) {
      if (y.sends[k] != SendState::kWaiting) return;
      const auto [a, b, part] = world_.nth_send(y.rank, world_.step(y.step), y.is_mirror, k);
      if (!is_held(y, k, a, b)) following_.emplace_back(other, k);
    });
  };
  if (x.behind != kNone) look_at(x.behind);
  std::vector<std::uint32_t>& others = sending(x);
  if (others.back() != id) {
    for (const std::uint32_t other : others) {
      if (instances_[other].number > x.number) look_at(other);
    }
  }
  if (x.flows_left == 0) {
    if (x.behind != kNone) instances_[x.behind].before = kNone;
    std::erase(others, id);
  }
}

template <class World>
void Engine<World>::add_flow(std::uint32_t a, std::uint32_t b, double floats, std::uint32_t instance,
                             std::uint32_t nth) {
  std::uint32_t f = 0;
  if (free_flows_.empty()) {
    f = static_cast<std::uint32_t>(flows_.size());
    flows_.emplace_back();
  } else {
    f = free_flows_.back();
    free_flows_.pop_back();
  }
  if (incast_.size() < flows_.size()) incast_.resize(flows_.capacity());
  flows_[f] = {a, b, kNew, instance, floats};
  incast_[f] = 0;
  Instance& x = instances_[instance];
  x.sends[nth] = SendState::kFlowing;
  if (job_.options.observer != nullptr) {
    if (flowing_.size() < flows_.size()) flowing_.resize(flows_.size());
    flowing_[f] = now_;
  }
  const std::uint32_t stage = x.stage;
  if (stride_ > 0) {
    if (paths_.size() < flows_.size() * stride_) paths_.resize(flows_.size() * stride_);
    std::uint32_t* at = &paths_[f * stride_];
    world_.for_path(a, b, [&](std::uint32_t id, double) { *at++ = id; });
    if (at < &paths_[f * stride_] + stride_) *at = kNone;
  }
  world_.for_path(a, b, [&](std::uint32_t id, double n) {
    Link& l = links_[id];
    if (!(l.state.scale > 0)) throw_unreachable(job_.network.topology(), world_.link_id(id));
    touch(l);
    count_stage(l, stage, n);
    l.n += n;
    l.floats += n * floats;
    l.flows.push_back(f);
    mark(id);
  });
  world_.add_senders(x.rank, a, b, [&](std::uint32_t id, double w) { links_[id].w += w; });
  new_flows_.push_back(f);
  ++out_.flow_classes;
}

// The flow has been taken out of its region already.
template <class World>
void Engine<World>::end_flow(std::uint32_t f) {
  const Flow flow = flows_[f];
  const std::uint32_t bottleneck = flow.bottleneck;
  flows_[f].bottleneck = kDead;
  Instance& x = instances_[flow.instance];
  const double rate = flow.left > -2 ? links_[bottleneck].level : 0;
  for_path(f, [&](std::uint32_t id, double n) {
    Link& l = links_[id];
    touch(l);
    count_stage(l, x.stage, -n);
    l.load -= n * rate;
    l.n -= n;
    if (l.n < kFraction) l.n = 0;
    mark(id);
  });
  world_.remove_senders(x.rank, flow.a, flow.b, [&](std::uint32_t id, double w) {
    Link& l = links_[id];
    l.w -= w;
    if (l.w < kFraction) l.w = 0;
  });
  const double count = world_.flow_count(flow.a, flow.b);
  out_.flows_done += count;
  if (job_.options.observer != nullptr) {
    double floats = 0;
    world_.for_sends(x.rank, world_.step(x.step), x.is_mirror,
                     [&](std::uint32_t a, std::uint32_t b, double part, double) {
                       if (a == flow.a && b == flow.b) floats = part * job_.chunk_floats;
                     });
    job_.options.observer->on_flow(world_.rank_id(x.rank), world_.rank_id(flow.b), x.chunk, x.number, x.start,
                                   flowing_[f], now_, floats, static_cast<std::int64_t>(count));
  }
  ++x.refs;  // it stays while its message is being received
  arrive(flow, bottleneck, incast_[f]);
  --x.refs;
  --x.flows_left;
  free_followers(flow.instance, flow);
  release(flow.instance);
}

}  // namespace gar::sim
