// What ranks do: steps that start when those before them are finished, messages that they handle and wait for, and
// calculations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/simulate.hpp"
#include "sim/engine/active_step.hpp"
#include "sim/engine/hot.hpp"
#include "sim/engine/job.hpp"
#include "sim/engine/path_recorder.hpp"
#include "sim/engine/processors.hpp"
#include "sim/engine/stage_log.hpp"
#include "sim/engine/time.hpp"
#include "sim/programs.hpp"
#include "sim/random.hpp"
#include "sim/worlds/world.hpp"

namespace gar::sim {

template <class World>
class Steps {
 public:
  Steps(const World& world, const Job& job, Timeline& timeline);

  /// Starts the first step of every rank.
  void start_first();
  /// With a barrier: starts the next step of all ranks that have it. Returns false when there is none.
  bool start_next_barrier();
  /// Starts what has become ready.
  GAR_SIM_HOT void start_ready();
  /// A message has arrived. Requires that its sender has flows left.
  void deliver(const Delivery& delivery);
  /// The first of the things that a server is at work on should have ended.
  void end_work(std::uint32_t rank, std::uint32_t version);
  /// Forgets a step if nothing refers to it any more.
  void release(StepIndex index);

  /// Steps that are not finished.
  [[nodiscard]] std::uint32_t num_running() const { return num_running_; }
  ActiveStep& at(StepIndex index) { return steps_[index]; }
  /// The steps of the same lane that have flows, earliest first.
  std::vector<StepIndex>& sending(const ActiveStep& step) { return sending_[lane_index(step.rank, step.chunk)]; }
  [[nodiscard]] double latency_of(const ActiveStep& step, double latency) const {
    return latency * step.latency_factor;
  }

  /// The plan cannot finish: says which rank waits for what.
  [[noreturn]] void throw_stuck() const;
  /// Throws PlanError when a message has arrived that no step was waiting for.
  void check_all_received() const;

  [[nodiscard]] const PathRecorder& path() const { return path_; }
  [[nodiscard]] const StageLog& stage_log() const { return stage_log_; }

  /// For Repetition: the lanes, chunk after chunk of each rank, and what is ready.
  [[nodiscard]] const std::vector<Lane>& lanes() const { return lanes_; }
  [[nodiscard]] const std::vector<ReadyStep>& ready() const { return ready_; }
  /// Skips `count` equal steps that all ranks are ready for. What has been calculated since `calculation_before`, and
  /// what the paths have grown by since `paths_before`, is added as often. Requires one chunk.
  void skip(std::int64_t count, const std::vector<double>& calculation_before, const std::vector<Terms>& paths_before);

 private:
  struct Inbox {  // messages for a step that has not started
    std::uint32_t chunk = 0;
    std::int64_t number = 0;
    std::uint32_t num_arrived = 0;
    Delivery last;
  };

  [[nodiscard]] std::size_t lane_index(std::uint32_t rank, std::uint32_t chunk) const {
    return static_cast<std::size_t>(rank) * static_cast<std::size_t>(job_.num_chunks) + chunk;
  }
  Lane& lane(std::uint32_t rank, std::uint32_t chunk) { return lanes_[lane_index(rank, chunk)]; }
  [[nodiscard]] const Lane& lane(std::uint32_t rank, std::uint32_t chunk) const {
    return lanes_[lane_index(rank, chunk)];
  }
  [[nodiscard]] std::int64_t number_of(const Lane& lane) const {
    const SimStep& step = world_.step(lane.program_step);
    return lane.is_mirror ? job_.num_steps - 1 - (step.number + step.repeat - 1 - lane.repetition)
                          : step.number + lane.repetition;
  }
  [[nodiscard]] bool has_ended(std::uint32_t rank, const Lane& lane) const {
    return lane.num_finished == world_.length(rank);
  }
  [[nodiscard]] double jitter(const ActiveStep& step, DelayKind kind) const {
    return 1 + job_.options.jitter *
                   exponential(job_.options.seed, {world_.rank_id(step.rank), step.chunk, step.number, kind});
  }

  void try_start(std::uint32_t rank, std::uint32_t chunk, const PathEnd& path);
  void start(const ReadyStep& ready);
  void queue_sends(StepIndex index);
  void schedule_flows(StepIndex index);
  void send(StepIndex index);
  void take_from_inbox(ActiveStep& step);
  void advance(std::uint32_t rank, Lane& lane);
  bool find_next_barrier();
  void begin_calculation(StepIndex index);
  void schedule_processor(std::uint32_t rank, const Processors::Next& next);
  void finish(StepIndex index);
  PathEnd path_through(const ActiveStep& step);
  StepIndex new_step();
  void replace(Delivery& last, const Delivery& delivery);
  void drop(Delivery& last, StepIndex holder);

  const World& world_;
  const Job& job_;
  Timeline& timeline_;
  std::vector<ActiveStep> steps_;
  std::vector<StepIndex> free_steps_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<StepIndex>> sending_;  // by lane
  std::vector<std::vector<Inbox>> inboxes_;      // by rank
  std::vector<ReadyStep> ready_;
  std::uint32_t num_running_ = 0;
  std::int64_t barrier_number_ = -1;
  std::uint32_t barrier_chunk_ = 0;
  Processors processors_;
  std::vector<StepIndex> ended_;
  PathRecorder path_;
  StageLog stage_log_;
};

/// The critical path is recorded if that is wanted and there are not too many steps.
template <class World>
bool keeps_hops(const World& world, const Job& job) {
  double steps = 0;
  for (std::uint32_t rank = 0; rank < world.num_ranks(); ++rank) steps += static_cast<double>(world.length(rank));
  return job.options.keep_path && steps * static_cast<double>(job.num_chunks) <= kMaxPathRecords;
}

template <class World>
Steps<World>::Steps(const World& world, const Job& job, Timeline& timeline)
    : world_(world),
      job_(job),
      timeline_(timeline),
      inboxes_(world.num_ranks()),
      processors_(world.num_ranks()),
      path_(keeps_hops(world, job)),
      stage_log_(job.stages.stages(), world.num_ranks()) {
  const double num_lanes = static_cast<double>(world.num_ranks()) * static_cast<double>(job.num_chunks);
  check_work(kLaneLimit, num_lanes, "the plan");
  lanes_.resize(static_cast<std::size_t>(num_lanes));
  sending_.resize(lanes_.size());
  for (std::uint32_t rank = 0; rank < world.num_ranks(); ++rank) {
    for (std::int64_t chunk = 0; chunk < job.num_chunks; ++chunk) {
      lane(rank, static_cast<std::uint32_t>(chunk)).program_step = world.first(rank);
    }
  }
}

// ----------------------------------------------------------------------------------------------------------- starting

template <class World>
void Steps<World>::start_first() {
  for (std::uint32_t rank = 0; rank < world_.num_ranks(); ++rank) try_start(rank, 0, {});
  start_ready();
}

// A lane's next step is ready when the one before is finished and the same step of the chunk before has started.
template <class World>
void Steps<World>::try_start(std::uint32_t rank, std::uint32_t chunk, const PathEnd& path) {
  const Lane& next = lane(rank, chunk);
  if (next.active != kNone || has_ended(rank, next)) return;
  if (chunk > 0) {
    const Lane& before = lane(rank, chunk - 1);
    const bool has_started =
        before.num_finished > next.num_finished || (before.num_finished == next.num_finished && before.active != kNone);
    if (!has_started) return;
  }
  ready_.push_back({.rank = rank, .chunk = chunk, .num_finished = next.num_finished, .path = path});
}

template <class World>
void Steps<World>::start_ready() {
  while (!ready_.empty()) {
    const ReadyStep ready = ready_.back();
    ready_.pop_back();
    const Lane& next = lane(ready.rank, ready.chunk);
    if (next.active == kNone && next.num_finished == ready.num_finished) start(ready);
  }
}

template <class World>
StepIndex Steps<World>::new_step() {
  if (free_steps_.empty()) {
    steps_.emplace_back();
    return static_cast<StepIndex>(steps_.size() - 1);
  }
  const StepIndex index = free_steps_.back();
  free_steps_.pop_back();
  ActiveStep& step = steps_[index];
  step.is_finished = step.is_sending = false;
  step.num_references = step.num_arrived = 0;
  step.latency_factor = 1;
  step.last = {};
  step.gamma_share = step.handling_share = 0;
  step.chunk_before = step.chunk_behind = kNone;
  return index;
}

template <class World>
void Steps<World>::start(const ReadyStep& ready) {
  Lane& lane_of_step = lane(ready.rank, ready.chunk);
  const SimStep& program_step = world_.step(lane_of_step.program_step);
  const StepIndex index = new_step();
  lane_of_step.active = index;
  ActiveStep& step = steps_[index];
  step.rank = ready.rank;
  step.chunk = ready.chunk;
  step.program_step = lane_of_step.program_step;
  step.is_mirror = lane_of_step.is_mirror;
  step.number = number_of(lane_of_step);
  step.stage = job_.stages.of_step(step.number);
  step.start = timeline_.now;
  step.path = ready.path;
  step.num_expected = step.is_mirror ? program_step.num_sends : program_step.num_recvs;
  step.num_flows_left = step.is_mirror ? program_step.num_recvs : program_step.num_sends;
  if (job_.options.jitter > 0) step.latency_factor = jitter(step, DelayKind::kLatency);
  stage_log_.note_start(step.stage, timeline_.now);
  ++num_running_;
  if (step.num_flows_left > 0) queue_sends(index);
  if (!job_.options.barrier && step.chunk + 1 < job_.num_chunks) try_start(step.rank, step.chunk + 1, step.path);
  take_from_inbox(step);
  const double messages = step.is_mirror ? program_step.received : program_step.sent;
  const double seconds = messages * world_.server(step.rank).mu;
  if (seconds > 0) {
    step.is_sending = true;
    schedule_processor(step.rank, processors_.add(step.rank, index, seconds, timeline_.now));
  } else {
    send(index);
  }
}

// The messages of a step leave when the server has handled all of them; only then does it look at what it receives.
template <class World>
void Steps<World>::send(StepIndex index) {
  ActiveStep& step = steps_[index];
  step.is_sending = false;
  step.sent = timeline_.now;
  if (step.num_flows_left > 0) schedule_flows(index);
  if (step.num_arrived == step.num_expected) begin_calculation(index);
}

// Messages between the same two ranks keep their order: a step knows which others of its rank have flows.
template <class World>
void Steps<World>::queue_sends(StepIndex index) {
  ActiveStep& step = steps_[index];
  step.sends.assign(step.num_flows_left, SendState::kUnsent);
  sending(step).push_back(index);
  if (step.chunk == 0) return;
  for (const StepIndex other : sending_[lane_index(step.rank, step.chunk - 1)]) {
    if (steps_[other].number != step.number) continue;
    step.chunk_before = other;
    steps_[other].chunk_behind = index;
  }
}

// The flows of a step begin when their latency is over: one event for each latency that occurs.
template <class World>
void Steps<World>::schedule_flows(StepIndex index) {
  const ActiveStep& step = steps_[index];
  double first = -1;
  std::vector<double> others;
  world_.for_sends(step.rank, world_.step(step.program_step), step.is_mirror, [&](const Send&, double latency) {
    if (first < 0) {
      first = latency;
    } else if (latency != first && std::find(others.begin(), others.end(), latency) == others.end()) {
      others.push_back(latency);
    }
  });
  const auto schedule = [&](double latency) {
    timeline_.events.push(timeline_.now + latency_of(step, latency),
                          {.kind = EventKind::kLatencyOver, .index = index, .latency = latency});
  };
  schedule(first);
  for (const double latency : others) schedule(latency);
}

// The next step number that any rank has in the present chunk, or else in the next one.
template <class World>
bool Steps<World>::find_next_barrier() {
  constexpr std::int64_t kNoStep = std::numeric_limits<std::int64_t>::max();
  for (; barrier_chunk_ < job_.num_chunks; ++barrier_chunk_) {
    barrier_number_ = kNoStep;
    for (std::uint32_t rank = 0; rank < world_.num_ranks(); ++rank) {
      const Lane& next = lane(rank, barrier_chunk_);
      if (!has_ended(rank, next)) barrier_number_ = std::min(barrier_number_, number_of(next));
    }
    if (barrier_number_ != kNoStep) return true;
  }
  return false;
}

template <class World>
bool Steps<World>::start_next_barrier() {
  if (!find_next_barrier()) return false;
  for (std::uint32_t rank = 0; rank < world_.num_ranks(); ++rank) {
    const Lane& next = lane(rank, barrier_chunk_);
    if (has_ended(rank, next) || number_of(next) != barrier_number_) continue;
    ready_.push_back({.rank = rank, .chunk = barrier_chunk_, .num_finished = next.num_finished, .path = path_.last()});
  }
  start_ready();
  return true;
}

// ---------------------------------------------------------------------------------------------------------- receiving

template <class World>
void Steps<World>::take_from_inbox(ActiveStep& step) {
  std::vector<Inbox>& inboxes = inboxes_[step.rank];
  for (Inbox& inbox : inboxes) {
    if (inbox.number != step.number || inbox.chunk != step.chunk) continue;
    step.num_arrived = inbox.num_arrived;
    step.last = inbox.last;  // its reference moves over
    inbox = inboxes.back();
    inboxes.pop_back();
    return;
  }
}

// The delivery holds its sender and lets go of the one before.
template <class World>
void Steps<World>::replace(Delivery& last, const Delivery& delivery) {
  ++steps_[delivery.sender].num_references;
  drop(last, delivery.sender);
  last = delivery;
}

// Lets go of the sender of a delivery, which is forgotten unless `holder` is still at work with it.
template <class World>
void Steps<World>::drop(Delivery& last, StepIndex holder) {
  if (last.sender == kNone) return;
  const StepIndex sender = std::exchange(last.sender, kNone);
  --steps_[sender].num_references;
  if (sender != holder) release(sender);
}

template <class World>
void Steps<World>::deliver(const Delivery& delivery) {
  const ActiveStep& sender = steps_[delivery.sender];
  const std::uint32_t rank = delivery.route.receiver;
  const StepIndex active = lane(rank, sender.chunk).active;
  if (active != kNone && steps_[active].number == sender.number) {
    ActiveStep& step = steps_[active];
    if (++step.num_arrived < step.num_expected) return;
    replace(step.last, delivery);
    if (!step.is_sending) begin_calculation(active);
    return;
  }
  std::vector<Inbox>& inboxes = inboxes_[rank];
  auto inbox = std::find_if(inboxes.begin(), inboxes.end(),
                            [&](const Inbox& one) { return one.number == sender.number && one.chunk == sender.chunk; });
  if (inbox == inboxes.end()) {
    inboxes.push_back({.chunk = sender.chunk, .number = sender.number, .last = {}});
    inbox = std::prev(inboxes.end());
  }
  ++inbox->num_arrived;
  replace(inbox->last, delivery);
}

// -------------------------------------------------------------------------------------------------------- calculating

template <class World>
void Steps<World>::begin_calculation(StepIndex index) {
  ActiveStep& step = steps_[index];
  step.received = timeline_.now;
  const SimStep& program_step = world_.step(step.program_step);
  const ServerParams server = world_.server(step.rank);
  const double gamma = step.is_mirror ? 0 : program_step.adds * job_.chunk_floats * server.gamma;
  const double delta = step.is_mirror ? 0 : program_step.accesses * job_.chunk_floats * server.delta;
  const double handling = (step.is_mirror ? program_step.sent : program_step.received) * server.mu;
  double seconds = gamma + delta;
  if (!(seconds + handling > 0)) {
    finish(index);
    return;
  }
  if (seconds > 0) {
    step.gamma_share = gamma / seconds;
    if (job_.options.jitter > 0) seconds *= jitter(step, DelayKind::kCalculation);
    stage_log_.add_calculation(step.stage, step.rank, seconds);
  }
  step.handling_share = handling / (seconds + handling);
  schedule_processor(step.rank, processors_.add(step.rank, index, seconds + handling, timeline_.now));
}

template <class World>
void Steps<World>::schedule_processor(std::uint32_t rank, const Processors::Next& next) {
  if (next.time == kNever) return;
  timeline_.events.push(next.time, {.kind = EventKind::kWorkEnd, .index = rank, .version = next.version});
}

template <class World>
void Steps<World>::end_work(std::uint32_t rank, std::uint32_t version) {
  if (!processors_.is_current(rank, version)) return;
  schedule_processor(rank, processors_.end(rank, timeline_.now, ended_));
  for (const StepIndex index : ended_) {
    if (steps_[index].is_sending) {
      send(index);
    } else {
      finish(index);
    }
  }
}

// ---------------------------------------------------------------------------------------------------------- finishing

// The critical path up to now leads through the sender that the step waited for, or through the rank's step before.
template <class World>
PathEnd Steps<World>::path_through(const ActiveStep& step) {
  PathEnd path = step.path;
  Hop hop{.from = step.rank,
          .rank = step.rank,
          .chunk = step.chunk,
          .number = step.number,
          .begin = step.start,
          .received = step.received,
          .end = timeline_.now,
          .sending = step.sent - step.start,
          .handling_share = step.handling_share,
          .gamma_share = step.gamma_share};
  const bool has_waited = step.last.sender != kNone && step.last.time > step.sent;
  if (has_waited) {
    const ActiveStep& sender = steps_[step.last.sender];
    path = sender.path;
    hop.begin = sender.start;
    hop.from = sender.rank;
    hop.link = step.last.bottleneck;
    hop.sending = sender.sent - sender.start;
    const double flowing = sender.sent + latency_of(sender, world_.latency(step.last.route));
    hop.latency = flowing - sender.sent;
    hop.incast = std::clamp(step.last.incast, 0.0, step.received - flowing);
    path.terms.alpha += hop.latency;
    path.terms.epsilon += hop.incast;
    path.terms.beta += step.received - flowing - hop.incast;
  }
  const double handling = (timeline_.now - step.received) * step.handling_share;
  const double calculation = timeline_.now - step.received - handling;
  path.terms.mu += hop.sending + handling;
  path.terms.gamma += calculation * step.gamma_share;
  path.terms.delta += calculation * (1 - step.gamma_share);
  hop.previous = path.hop;
  return path_.add(path.terms, hop);
}

template <class World>
void Steps<World>::finish(StepIndex index) {
  ActiveStep& step = steps_[index];
  step.is_finished = true;
  const PathEnd path = path_through(step);
  path_.note_end(path, timeline_.now);
  stage_log_.note_end(step.stage, timeline_.now);
  if (job_.options.observer != nullptr) {
    job_.options.observer->on_step({.rank = world_.rank_id(step.rank),
                                    .chunk = step.chunk,
                                    .step = step.number,
                                    .start = step.start,
                                    .received = step.received,
                                    .done = timeline_.now});
  }
  drop(step.last, index);
  const std::uint32_t rank = step.rank;
  const std::uint32_t chunk = step.chunk;
  advance(rank, lane(rank, chunk));
  release(index);
  --num_running_;
  if (!job_.options.barrier) try_start(rank, chunk, path);
}

template <class World>
void Steps<World>::release(StepIndex index) {
  const ActiveStep& step = steps_[index];
  if (step.is_finished && step.num_flows_left == 0 && step.num_references == 0) free_steps_.push_back(index);
}

template <class World>
void Steps<World>::advance(std::uint32_t rank, Lane& lane) {
  ++lane.num_finished;
  lane.active = kNone;
  if (++lane.repetition < world_.step(lane.program_step).repeat) return;
  lane.repetition = 0;
  if (!lane.is_mirror) {
    if (lane.program_step + 1 < world_.end(rank)) {
      ++lane.program_step;
    } else {
      lane.is_mirror = true;  // the last step is the first one of the mirror image
    }
  } else if (lane.program_step > world_.first(rank)) {
    --lane.program_step;
  }
}

template <class World>
void Steps<World>::skip(std::int64_t count, const std::vector<double>& calculation_before,
                        const std::vector<Terms>& paths_before) {
  const auto times = static_cast<double>(count);
  stage_log_.repeat(times, calculation_before);
  std::vector<ReadyStep> ready;
  ready.swap(ready_);
  for (ReadyStep& one : ready) {
    Lane& skipped = lane(one.rank, 0);
    stage_log_.note_end(job_.stages.of_step(number_of(skipped)), timeline_.now);
    one.path.terms += times * (one.path.terms + (-1.0 * paths_before[one.rank]));
    skipped.repetition += count - 1;
    skipped.num_finished += count - 1;
    advance(one.rank, skipped);
    path_.note_end(one.path, timeline_.now);
    try_start(one.rank, 0, one.path);
  }
}

// ------------------------------------------------------------------------------------------------------- wrong plans

template <class World>
void Steps<World>::throw_stuck() const {
  for (std::uint32_t rank = 0; rank < world_.num_ranks(); ++rank) {
    for (std::int64_t chunk = 0; chunk < job_.num_chunks; ++chunk) {
      const StepIndex active = lane(rank, static_cast<std::uint32_t>(chunk)).active;
      if (active == kNone) continue;
      const ActiveStep& step = steps_[active];
      throw PlanError("the plan cannot finish: rank " + std::to_string(world_.rank_id(rank)) + " waits in step " +
                      std::to_string(step.number) + " for " + std::to_string(step.num_expected - step.num_arrived) +
                      " more messages that no rank sends; 'gar verify' says more");
    }
  }
  throw PlanError("the plan cannot finish");
}

template <class World>
void Steps<World>::check_all_received() const {
  for (std::uint32_t rank = 0; rank < world_.num_ranks(); ++rank) {
    if (inboxes_[rank].empty()) continue;
    throw PlanError("rank " + std::to_string(world_.rank_id(rank)) + " is sent a message in step " +
                    std::to_string(inboxes_[rank].front().number) +
                    " that it does not receive; 'gar verify' says more");
  }
}

}  // namespace gar::sim
