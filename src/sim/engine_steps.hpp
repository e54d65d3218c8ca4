// What ranks do: steps that start when those before them are finished, and calculations. Part of engine.hpp.
#pragma once

#include "sim/engine.hpp"

namespace gar::sim {

template <class World>
void Engine<World>::advance(std::uint32_t rank, Lane& l) {
  ++l.finished;
  l.instance = kNone;
  if (++l.repetition < world_.step(l.step).repeat) return;
  l.repetition = 0;
  if (!l.is_mirror) {
    if (l.step + 1 < world_.end(rank)) {
      ++l.step;
    } else {
      l.is_mirror = true;  // the last step is the first one of the mirror image
    }
  } else if (l.step > world_.first(rank)) {
    --l.step;
  }
}

template <class World>
void Engine<World>::try_start(std::uint32_t rank, std::uint32_t chunk, const Terms& path, std::uint32_t record) {
  const Lane& l = lane(rank, chunk);
  if (l.instance != kNone || l.finished == world_.length(rank)) return;
  if (chunk > 0) {
    const Lane& before = lane(rank, chunk - 1);
    if (before.finished < l.finished || (before.finished == l.finished && before.instance == kNone)) return;
  }
  ready_.push_back({rank, chunk, l.finished, path, record});
}

template <class World>
std::uint32_t Engine<World>::new_instance() {
  if (free_instances_.empty()) {
    instances_.emplace_back();
    return static_cast<std::uint32_t>(instances_.size() - 1);
  }
  const std::uint32_t id = free_instances_.back();
  free_instances_.pop_back();
  Instance& x = instances_[id];
  x.is_done = false;
  x.refs = x.arrived = 0;
  x.delay = 1;
  x.last = {};
  x.gamma_share = 0;
  x.next = x.before = x.behind = kNone;
  return id;
}

template <class World>
void Engine<World>::release(std::uint32_t id) {
  const Instance& x = instances_[id];
  if (x.is_done && x.flows_left == 0 && x.refs == 0) free_instances_.push_back(id);
}

template <class World>
void Engine<World>::start_ready() {
  while (!ready_.empty()) {
    const Ready r = ready_.back();
    ready_.pop_back();
    if (lane(r.rank, r.chunk).instance == kNone && lane(r.rank, r.chunk).finished == r.finished) start(r);
  }
}

template <class World>
void Engine<World>::start(const Ready& ready) {
  Lane& l = lane(ready.rank, ready.chunk);
  const SimStep& s = world_.step(l.step);
  const std::uint32_t id = new_instance();
  l.instance = id;
  Instance& x = instances_[id];
  x.rank = ready.rank;
  x.chunk = ready.chunk;
  x.step = l.step;
  x.is_mirror = l.is_mirror;
  x.number = number_of(l);
  x.stage = job_.stages.of_step(x.number);
  x.start = now_;
  x.path = ready.path;
  x.record = ready.record;
  x.expected = l.is_mirror ? s.num_sends : s.num_recvs;
  x.flows_left = l.is_mirror ? s.num_recvs : s.num_sends;
  if (job_.options.jitter > 0) {
    x.delay = 1 + job_.options.jitter * exponential(job_.options.seed, world_.rank_id(x.rank), x.chunk, x.number,
                                                    /*is_calculation=*/false);
  }
  StageUse& stage = stages_[x.stage];
  if (stage_started_[x.stage] == 0) {
    stage_started_[x.stage] = 1;
    stage.begin = now_;
  }
  ++running_;
  if (x.flows_left > 0) {
    x.sends.assign(x.flows_left, SendState::kUnsent);
    sending(x).push_back(id);
    if (x.chunk > 0) {
      for (const std::uint32_t other : sending_[lane_index(x.rank, x.chunk - 1)]) {
        if (instances_[other].number != x.number) continue;
        x.before = other;
        instances_[other].behind = id;
      }
    }
  }
  if (!job_.options.barrier && x.chunk + 1 < job_.num_chunks) try_start(x.rank, x.chunk + 1, x.path, x.record);

  if (x.flows_left > 0) {
    double first = -1;
    std::vector<double> others;
    world_.for_sends(x.rank, s, x.is_mirror, [&](std::uint32_t, std::uint32_t, double, double latency) {
      if (first < 0) {
        first = latency;
      } else if (latency != first && std::find(others.begin(), others.end(), latency) == others.end()) {
        others.push_back(latency);
      }
    });
    queue_.push(now_ + latency_of(x, first), {EventKind::kActivate, id, 0, first});
    for (const double latency : others) {
      queue_.push(now_ + latency_of(x, latency), {EventKind::kActivate, id, 0, latency});
    }
  }

  std::vector<Arrival>& inbox = inbox_[x.rank];
  for (std::size_t i = 0; i < inbox.size(); ++i) {
    if (inbox[i].number != x.number || inbox[i].chunk != x.chunk) continue;
    x.arrived = inbox[i].count;
    x.last = inbox[i].last;  // its reference moves over
    inbox[i] = inbox.back();
    inbox.pop_back();
    break;
  }
  if (x.arrived == x.expected) begin_calculation(id);
}

template <class World>
bool Engine<World>::start_barrier() {
  while (true) {
    // The next step number that any rank has in this chunk.
    std::int64_t next = std::numeric_limits<std::int64_t>::max();
    for (std::uint32_t r = 0; r < world_.num_ranks(); ++r) {
      const Lane& l = lane(r, barrier_chunk_);
      if (l.finished < world_.length(r)) next = std::min(next, number_of(l));
    }
    if (next != std::numeric_limits<std::int64_t>::max()) {
      barrier_number_ = next;
      break;
    }
    if (++barrier_chunk_ == job_.num_chunks) return false;
  }
  for (std::uint32_t r = 0; r < world_.num_ranks(); ++r) {
    const Lane& l = lane(r, barrier_chunk_);
    if (l.finished < world_.length(r) && number_of(l) == barrier_number_) {
      ready_.push_back({r, barrier_chunk_, l.finished, last_path_, last_record_});
    }
  }
  start_ready();
  return true;
}

template <class World>
void Engine<World>::arrive(const Flow& flow, std::uint32_t bottleneck, double incast) {
  const Instance& sender = instances_[flow.instance];
  const Lane& l = lane(flow.b, sender.chunk);
  if (l.instance != kNone && instances_[l.instance].number == sender.number) {
    Instance& x = instances_[l.instance];
    if (++x.arrived < x.expected) return;
    ++instances_[flow.instance].refs;
    if (x.last.instance != kNone) {
      --instances_[x.last.instance].refs;
      if (x.last.instance != flow.instance) release(x.last.instance);
    }
    x.last = {flow.instance, bottleneck, flow.a, flow.b, now_, incast};
    begin_calculation(l.instance);
    return;
  }
  std::vector<Arrival>& inbox = inbox_[flow.b];
  auto a = std::find_if(inbox.begin(), inbox.end(),
                        [&](const Arrival& x) { return x.number == sender.number && x.chunk == sender.chunk; });
  ++instances_[flow.instance].refs;
  if (a == inbox.end()) {
    inbox.push_back({sender.chunk, sender.number, 0, {}});
    a = std::prev(inbox.end());
  } else {
    --instances_[a->last.instance].refs;
    if (a->last.instance != flow.instance) release(a->last.instance);
  }
  ++a->count;
  a->last = {flow.instance, bottleneck, flow.a, flow.b, now_, incast};
}

template <class World>
void Engine<World>::begin_calculation(std::uint32_t id) {
  Instance& x = instances_[id];
  x.received = now_;
  const SimStep& s = world_.step(x.step);
  const ServerParams server = world_.server(x.rank);
  const double gamma = x.is_mirror ? 0 : s.adds * job_.chunk_floats * server.gamma;
  const double delta = x.is_mirror ? 0 : s.accesses * job_.chunk_floats * server.delta;
  x.calculation = gamma + delta;
  if (!(x.calculation > 0)) {
    finish(id);
    return;
  }
  x.gamma_share = gamma / x.calculation;
  if (job_.options.jitter > 0) {
    x.calculation *= 1 + job_.options.jitter * exponential(job_.options.seed, world_.rank_id(x.rank), x.chunk, x.number,
                                                           /*is_calculation=*/true);
  }
  if (!calculation_.empty()) calculation_[x.rank * stages_.size() + x.stage] += x.calculation;
  update_processor(x.rank);
  Processor& p = processors_[x.rank];
  x.next = p.head;
  p.head = id;
  ++p.count;
  schedule_processor(x.rank);
}

// Brings the calculations of a server up to date; they share it equally.
template <class World>
void Engine<World>::update_processor(std::uint32_t rank) {
  Processor& p = processors_[rank];
  if (p.count > 0) {
    const double each = (now_ - p.since) / p.count;
    for (std::uint32_t i = p.head; i != kNone; i = instances_[i].next) instances_[i].calculation -= each;
  }
  p.since = now_;
}

template <class World>
void Engine<World>::schedule_processor(std::uint32_t rank) {
  Processor& p = processors_[rank];
  ++p.version;
  if (p.count == 0) return;
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t i = p.head; i != kNone; i = instances_[i].next) least = std::min(least, instances_[i].calculation);
  queue_.push(now_ + std::max(least, 0.0) * p.count, {EventKind::kCalculation, rank, p.version, 0});
}

// Those that are done leave the server.
template <class World>
void Engine<World>::end_calculations(std::uint32_t rank) {
  update_processor(rank);
  Processor& p = processors_[rank];
  std::uint32_t done = kNone;
  for (std::uint32_t* at = &p.head; *at != kNone;) {
    const std::uint32_t id = *at;
    Instance& x = instances_[id];
    if (x.calculation > now_ * kDoneTime) {
      at = &x.next;
      continue;
    }
    *at = x.next;
    --p.count;
    x.next = done;
    done = id;
  }
  schedule_processor(rank);
  while (done != kNone) {
    const std::uint32_t id = done;
    done = instances_[id].next;
    finish(id);
  }
}

template <class World>
void Engine<World>::finish(std::uint32_t id) {
  Instance& x = instances_[id];
  x.is_done = true;
  Terms path = x.path;
  double begin = x.start;
  double latency = 0;
  double epsilon = 0;
  std::uint32_t from = x.rank;
  std::uint32_t previous = x.record;
  const bool waited = x.last.instance != kNone && x.last.time > x.start;
  if (waited) {
    const Instance& sender = instances_[x.last.instance];
    path = sender.path;
    begin = sender.start;
    from = sender.rank;
    previous = sender.record;
    const double flowing = begin + latency_of(sender, world_.latency(x.last.a, x.last.b));
    latency = flowing - begin;
    epsilon = std::clamp(x.last.incast, 0.0, x.received - flowing);
    path.alpha += latency;
    path.epsilon += epsilon;
    path.beta += x.received - flowing - epsilon;
  }
  const double calculation = now_ - x.received;
  path.gamma += calculation * x.gamma_share;
  path.delta += calculation * (1 - x.gamma_share);
  std::uint32_t record = kNone;
  if (keeps_records_) {
    record = static_cast<std::uint32_t>(records_.size());
    records_.push_back({previous, from, x.rank, x.chunk, x.number, begin, x.received, now_, latency, epsilon,
                        waited ? x.last.link : kNone, x.gamma_share});
  }
  if (now_ >= last_time_) {
    last_time_ = now_;
    last_path_ = path;
    last_record_ = record;
  }
  stages_[x.stage].end = std::max(stages_[x.stage].end, now_);
  if (job_.options.observer != nullptr) {
    job_.options.observer->on_step(world_.rank_id(x.rank), x.chunk, x.number, x.start, x.received, now_);
  }
  if (x.last.instance != kNone) {
    const std::uint32_t last = x.last.instance;
    x.last.instance = kNone;
    --instances_[last].refs;
    if (last != id) release(last);
  }
  const std::uint32_t rank = x.rank;
  const std::uint32_t chunk = x.chunk;
  advance(rank, lane(rank, chunk));
  release(id);
  --running_;
  if (job_.options.barrier) return;
  try_start(rank, chunk, path, record);
}

}  // namespace gar::sim
