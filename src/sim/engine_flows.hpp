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

template <class World>
void Engine<World>::activate(std::uint32_t id, double latency) {
  const SimStep& s = world_.step(instances_[id].step);
  const std::uint32_t rank = instances_[id].rank;
  world_.begin_senders(rank, instances_[id].flowing == 0, [&](std::uint32_t uplink, auto f) {
    for (const std::uint32_t other : links_[uplink].flows) {
      if (flows_[other].bottleneck != kDead) f(flows_[other].b);
    }
  });
  world_.for_sends(rank, s, instances_[id].is_mirror,
                   [&, nth = std::uint32_t{0}](std::uint32_t a, std::uint32_t b, double part, double l) mutable {
                     if (l == latency) {
                       const std::uint32_t before = instances_[id].before;
                       if (before != kNone && instances_[before].sends[nth] != SendState::kDone) {
                         instances_[id].sends[nth] = SendState::kWaiting;
                       } else {
                         add_flow(a, b, part * job_.chunk_floats, id, nth);
                       }
                     }
                     ++nth;
                   });
}

// The chunk before has left the connection: the nth flow of this one follows.
template <class World>
void Engine<World>::add_waiting(std::uint32_t id, std::uint32_t nth) {
  const Instance& x = instances_[id];
  world_.begin_senders(x.rank, x.flowing == 0, [](std::uint32_t, auto) {});
  const auto [a, b, part] = world_.nth_send(x.rank, world_.step(x.step), x.is_mirror, nth);
  add_flow(a, b, part * job_.chunk_floats, id, nth);
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
  ++x.flowing;
  if (has_queues_) {
    x.sends[nth] = SendState::kFlowing;
    if (nth_.size() < flows_.size()) {
      nth_.resize(flows_.size());
      flowing_.resize(flows_.size());
    }
    nth_[f] = nth;
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
void Engine<World>::end_flow(std::uint32_t f, std::uint32_t bottleneck) {
  const Flow flow = flows_[f];
  flows_[f].bottleneck = kDead;
  Instance& x = instances_[flow.instance];
  const double rate = links_[bottleneck].level;
  for_path(f, [&](std::uint32_t id, double n) {
    Link& l = links_[id];
    touch(l);
    count_stage(l, x.stage, -n);
    l.load -= n * rate;
    l.n -= n;
    if (l.n < kFraction) l.n = 0;
    mark(id);
  });
  const auto is_alive = [&](std::uint32_t other) { return flows_[other].bottleneck != kDead; };
  world_.remove_senders(
      x.rank, flow.a, flow.b,
      [&](std::uint32_t id, double w) {
        Link& l = links_[id];
        l.w -= w;
        if (l.w < kFraction) l.w = 0;
      },
      [&](std::uint32_t uplink, auto found) {  // is there another flow like this on the sender's link?
        for (const std::uint32_t other : links_[uplink].flows) {
          if (other != f && is_alive(other) && found(flows_[other].b)) return true;
        }
        return false;
      });
  --x.flowing;
  world_.end_senders(x.rank, x.flowing == 0);
  const double count = world_.flow_count(flow.a, flow.b);
  out_.flows_done += count;
  if (job_.options.observer != nullptr) {
    double floats = 0;
    world_.for_sends(x.rank, world_.step(x.step), x.is_mirror,
                     [&](std::uint32_t a, std::uint32_t b, double part, double) {
                       if (a == flow.a && b == flow.b) floats = part * job_.chunk_floats;
                     });
    job_.options.observer->on_flow(world_.rank_id(x.rank), world_.rank_id(flow.b), x.chunk, x.number, x.start,
                                   has_queues_ ? flowing_[f] : x.start + latency_of(x, world_.latency(flow.a, flow.b)),
                                   now_, floats, static_cast<std::int64_t>(count));
  }
  ++x.refs;  // it stays while its message is being received
  arrive(flow, bottleneck, static_cast<double>(incast_[f]));
  --x.refs;
  --x.flows_left;
  if (has_queues_) {
    x.sends[nth_[f]] = SendState::kDone;
    if (x.behind != kNone && instances_[x.behind].sends[nth_[f]] == SendState::kWaiting) {
      following_.emplace_back(x.behind, nth_[f]);
    }
    if (x.flows_left == 0) {
      if (x.behind != kNone) instances_[x.behind].before = kNone;
      std::erase(sending_[x.rank], flow.instance);
    }
  }
  release(flow.instance);
}

}  // namespace gar::sim
