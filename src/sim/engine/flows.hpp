// Messages on their way: they begin to flow when their latency is over and those before them have arrived, share the
// links while they flow, and are delivered.
//
// Order. What a rank sends to another stays in order, as on one connection: a message waits until the message of an
// earlier step of its chunk to the same rank has arrived, and that of the same step of the chunk before.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gar/limits.hpp"
#include "gar/simulate.hpp"
#include "sim/engine/hot.hpp"
#include "sim/engine/job.hpp"
#include "sim/engine/link_ledger.hpp"
#include "sim/engine/rate_solver.hpp"
#include "sim/engine/steps.hpp"
#include "sim/engine/time.hpp"
#include "sim/network.hpp"
#include "sim/programs.hpp"
#include "sim/worlds/world.hpp"

namespace gar::sim {

/// When an engine finds rates on a graph of bottlenecks.
constexpr GraphUse graph_use(SimulationEngine engine) {
  return engine == SimulationEngine::kGraph     ? GraphUse::kAlways
         : engine == SimulationEngine::kFilling ? GraphUse::kNotAtAll
                                                : GraphUse::kWherePays;
}

template <class World>
class Flows {
 public:
  Flows(World& world, const Job& job, Timeline& timeline, Steps<World>& steps)
      : world_(world),
        job_(job),
        timeline_(timeline),
        steps_(steps),
        solver_(world, links_of(world), {.tolerance = job.options.tolerance, .graph = graph_use(job.options.engine)}),
        ledger_(world.num_links()),
        timers_(world.num_links()) {}

  /// The messages of a step that have this latency begin to flow, or wait for those before them.
  GAR_SIM_HOT void begin(StepIndex step, double latency);
  /// The first of the flows that a link limits should have arrived.
  void look_at(LinkIndex link, std::uint32_t version);
  /// Delivers what has arrived, starts what has waited for it, and finds the rates again.
  void settle();

  RateSolver<World>& solver() { return solver_; }
  LinkLedger& ledger() { return ledger_; }
  /// Messages that have arrived; those of all members of a class count.
  [[nodiscard]] double num_delivered() const { return num_delivered_; }
  void add_delivered(double messages) { num_delivered_ += messages; }
  /// Flows so far.
  [[nodiscard]] std::int64_t num_added() const { return num_added_; }

 private:
  // The event at which the flows that a link limits are looked at. An event that comes too early stays where it is, and
  // is then put off.
  struct Timer {
    double due = kNever;        // when the first of them arrives
    double scheduled = kNever;  // the event
    std::uint32_t version = 0;
  };
  struct Follower {
    StepIndex step = kNone;
    std::uint32_t nth = 0;  // of its sends
  };

  static std::vector<LinkState> links_of(const World& world) {
    std::vector<LinkState> links;
    links.reserve(world.num_links());
    for (LinkIndex link = 0; link < world.num_links(); ++link) links.push_back(world.link(link));
    return links;
  }
  [[nodiscard]] const SimStep& program_step(const ActiveStep& step) const { return world_.step(step.program_step); }

  void add(const Send& send, StepIndex step, std::uint32_t nth);
  GAR_SIM_HOT void add_waiting(const Follower& follower);
  GAR_SIM_HOT void end(FlowIndex flow);
  void observe_end(FlowIndex flow, const ActiveStep& step, double count);
  bool must_wait(const ActiveStep& step, std::uint32_t nth, const Route& route);
  void find_followers(StepIndex index, const Route& route);
  void find_followers_in(StepIndex index, const Route& route);
  void schedule(LinkIndex link, double time);
  void note_load(LinkIndex link);

  World& world_;
  const Job& job_;
  Timeline& timeline_;
  Steps<World>& steps_;
  RateSolver<World> solver_;
  LinkLedger ledger_;
  std::vector<Timer> timers_;          // by link
  std::vector<StepIndex> senders_;     // by flow: the step that sends it
  std::vector<double> flowing_since_;  // by flow, for the observer
  std::vector<Follower> followers_;    // that nothing holds any more
  std::int64_t num_added_ = 0;
  double num_delivered_ = 0;
};

// ---------------------------------------------------------------------------------------------------------- beginning

// Must a message wait for one of an earlier step or chunk between the same two ranks?
template <class World>
bool Flows<World>::must_wait(const ActiveStep& step, std::uint32_t nth, const Route& route) {
  if (step.chunk_before != kNone && steps_.at(step.chunk_before).sends[nth] != SendState::kArrived) return true;
  for (const StepIndex other : steps_.sending(step)) {
    const ActiveStep& earlier = steps_.at(other);
    if (earlier.number >= step.number) break;
    const std::uint32_t k = world_.find_send(program_step(earlier), earlier.is_mirror, route);
    if (k != kNone && earlier.sends[k] != SendState::kArrived) return true;
  }
  return false;
}

template <class World>
void Flows<World>::begin(StepIndex index, double latency) {
  ActiveStep& step = steps_.at(index);
  const bool is_first = step.chunk_before == kNone && steps_.sending(step).front() == index;
  std::uint32_t nth = 0;
  world_.for_sends(step.rank, program_step(step), step.is_mirror, [&](const Send& send, double latency_of_send) {
    if (latency_of_send == latency) {
      if (!is_first && must_wait(step, nth, send.route)) {
        step.sends[nth] = SendState::kWaiting;
      } else {
        add(send, index, nth);
      }
    }
    ++nth;
  });
}

template <class World>
void Flows<World>::add(const Send& send, StepIndex index, std::uint32_t nth) {
  ActiveStep& step = steps_.at(index);
  step.sends[nth] = SendState::kFlowing;
  const double floats = send.part * job_.chunk_floats;
  const FlowIndex flow = solver_.add_flow(send.route, floats, [&](LinkIndex link, double flows) {
    if (!(solver_.state(link).scale > 0)) throw_unreachable(job_.network.topology(), world_.link_id(link));
    ledger_.add(link, {.stage = step.stage, .count = flows, .floats = floats}, solver_.sums(link));
  });
  world_.add_senders(step.rank, send.route,
                     [&](LinkIndex link, double senders) { solver_.add_senders(link, senders); });
  if (flow == senders_.size()) senders_.push_back(index);
  senders_[flow] = index;
  if (job_.options.observer != nullptr) {
    flowing_since_.resize(senders_.size());
    flowing_since_[flow] = timeline_.now;
  }
  ++num_added_;
}

template <class World>
void Flows<World>::add_waiting(const Follower& follower) {
  const ActiveStep& step = steps_.at(follower.step);
  if (step.sends[follower.nth] != SendState::kWaiting) return;
  add(world_.nth_send(step.rank, program_step(step), step.is_mirror, follower.nth), follower.step, follower.nth);
}

// ------------------------------------------------------------------------------------------------------------- ending

// The flow has been taken out of its region already.
template <class World>
void Flows<World>::end(FlowIndex flow) {
  const StepIndex index = senders_[flow];
  const Route route = solver_.route(flow);
  ActiveStep& step = steps_.at(index);
  solver_.remove_flow(flow, [&](LinkIndex link, double flows) {
    ledger_.remove(link, {.stage = step.stage, .count = flows}, solver_.sums(link));
  });
  world_.remove_senders(step.rank, route,
                        [&](LinkIndex link, double senders) { solver_.remove_senders(link, senders); });
  const double count = world_.flow_count(route);
  num_delivered_ += count;
  if (job_.options.observer != nullptr) observe_end(flow, step, count);
  steps_.deliver({.sender = index,
                  .bottleneck = solver_.bottleneck(flow),
                  .route = route,
                  .time = timeline_.now,
                  .incast = solver_.incast_seconds(flow)});
  --step.num_flows_left;
  find_followers(index, route);
  steps_.release(index);
}

template <class World>
void Flows<World>::observe_end(FlowIndex flow, const ActiveStep& step, double count) {
  const Route& route = solver_.route(flow);
  double floats = 0;
  world_.for_sends(step.rank, program_step(step), step.is_mirror, [&](const Send& send, double) {
    if (send.route == route) floats = send.part * job_.chunk_floats;
  });
  job_.options.observer->on_flow({.from = world_.rank_id(step.rank),
                                  .to = world_.rank_id(route.receiver),
                                  .chunk = step.chunk,
                                  .step = step.number,
                                  .start = step.sent,
                                  .flowing = flowing_since_[flow],
                                  .end = timeline_.now,
                                  .floats = floats,
                                  .alike = static_cast<std::int64_t>(count)});
}

// Messages that have waited for one between the same two ranks follow it, unless they wait for another one as well.
template <class World>
void Flows<World>::find_followers(StepIndex index, const Route& route) {
  ActiveStep& step = steps_.at(index);
  step.sends[world_.find_send(program_step(step), step.is_mirror, route)] = SendState::kArrived;
  if (step.chunk_behind != kNone) find_followers_in(step.chunk_behind, route);
  std::vector<StepIndex>& others = steps_.sending(step);
  if (others.back() != index) {
    for (const StepIndex other : others) {
      if (steps_.at(other).number > step.number) find_followers_in(other, route);
    }
  }
  if (step.num_flows_left > 0) return;
  if (step.chunk_behind != kNone) steps_.at(step.chunk_behind).chunk_before = kNone;
  std::erase(others, index);
}

template <class World>
void Flows<World>::find_followers_in(StepIndex index, const Route& route) {
  const ActiveStep& step = steps_.at(index);
  world_.for_followers(program_step(step), step.is_mirror, route, [&](std::uint32_t nth) {
    if (step.sends[nth] != SendState::kWaiting) return;
    const Send send = world_.nth_send(step.rank, program_step(step), step.is_mirror, nth);
    if (!must_wait(step, nth, send.route)) followers_.push_back({.step = index, .nth = nth});
  });
}

// -------------------------------------------------------------------------------------------------------------- rates

template <class World>
void Flows<World>::schedule(LinkIndex link, double time) {
  Timer& timer = timers_[link];
  timer.due = time;
  if (time >= timer.scheduled) return;
  timer.scheduled = time;
  timeline_.events.push(time, {.kind = EventKind::kArrival, .index = link, .version = ++timer.version});
}

template <class World>
void Flows<World>::look_at(LinkIndex link, std::uint32_t version) {
  Timer& timer = timers_[link];
  if (timer.version != version) return;
  timer.scheduled = kNever;
  // The flows that were to arrive may have been limited by other links since, and be gone: there is nothing to do.
  if (solver_.num_flows(link) == 0) return;
  if (timer.due <= timeline_.now * (1 + kTieTime)) {
    solver_.look_at(link);
  } else if (timer.due < kNever) {
    schedule(link, timer.due);
  }
}

template <class World>
void Flows<World>::note_load(LinkIndex link) {
  ledger_.note_senders(link, solver_.num_senders(link));
  if (job_.options.observer == nullptr) return;
  job_.options.observer->on_load({.link = world_.link_id(link),
                                  .time = timeline_.now,
                                  .flows = to_whole(solver_.num_flows(link)),
                                  .senders = to_whole(solver_.num_senders(link))});
}

template <class World>
void Flows<World>::settle() {
  if (!solver_.has_changes()) return;
  do {
    for (auto arrived = solver_.collect_arrived(); !arrived.empty(); arrived = solver_.collect_arrived()) {
      for (const FlowIndex flow : arrived) end(flow);
    }
    for (const Follower& follower : followers_) add_waiting(follower);
    followers_.clear();
  } while (solver_.has_unseen_changes());
  solver_.solve([this](LinkIndex link, double time) { schedule(link, time); },
                [this](LinkIndex link) { note_load(link); });
}

}  // namespace gar::sim
