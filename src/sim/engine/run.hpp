// A simulation: the loop over moments, and its result. One semantics for two worlds: FlowWorld (every rank, link and
// flow on its own) and ClassWorld (one of each class, with multiplicities).
//
//   Run         takes the events of the next moment, lets everything follow from them, and starts what is ready
//   Steps       what ranks do: steps that start, wait for messages, calculate and finish
//   Flows       messages on their way: their order, and the links that they share
//   RateSolver  the max-min fair rates of the flows
//   Repetition  skips equal steps
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "gar/limits.hpp"
#include "gar/simulate.hpp"
#include "sim/engine/flows.hpp"
#include "sim/engine/job.hpp"
#include "sim/engine/repetition.hpp"
#include "sim/engine/steps.hpp"
#include "sim/engine/time.hpp"

namespace gar::sim {

/// Calls SimulationOptions::progress, but not more often than it wants to know.
class ProgressReporter {
 public:
  ProgressReporter(const SimulationOptions& options, const std::function<double()>& clock)
      : progress_(options.progress), clock_(clock), reported_at_(progress_ ? clock_() : 0) {}

  /// Returns false when the simulation shall end.
  [[nodiscard]] bool report_start(const SimulationProgress& progress) const {
    return !progress_ || progress_(progress);
  }
  [[nodiscard]] bool report(const SimulationProgress& progress) {
    if (!progress_) return true;
    const double time = clock_();
    if (time - reported_at_ < kSecondsBetween) return true;
    reported_at_ = time;
    return progress_(progress);
  }

 private:
  static constexpr double kSecondsBetween = 0.05;
  const std::function<bool(const SimulationProgress&)>& progress_;
  const std::function<double()>& clock_;
  double reported_at_;
};

template <class World>
class Run {
 public:
  Run(World& world, const Job& job)
      : world_(world),
        job_(job),
        steps_(world, job, timeline_),
        flows_(world, job, timeline_, steps_),
        repetition_(world, timeline_, steps_, flows_),
        progress_(job.options, job.clock),
        num_flows_(world.num_flows() * static_cast<double>(job.num_chunks)),
        may_skip_(World::kMemoises && !steps_.path().keeps_hops() && job.num_chunks == 1 && !job.options.barrier &&
                  job.options.observer == nullptr) {}

  /// Once. Throws PlanError when the plan cannot finish.
  Simulation run();

 private:
  // Where every message begins and ends alone and changes all rates.
  static constexpr double kSecondsForEach = 1.5e-7;
  static constexpr double kSameUse = 1e-9;  // links that have been in use for times this close are equally full

  [[nodiscard]] SimulationProgress progress() const {
    return {.seconds = timeline_.now,
            .flows_done = flows_.num_delivered(),
            .flows = num_flows_,
            .rank_classes = world_.num_ranks(),
            .estimate_s = World::kMemoises ? 0 : num_flows_ * world_.num_links() * kSecondsForEach};
  }
  void announce() const;
  void process_moment();
  void process(const Event& event);
  Simulation result(bool is_complete);
  void report_links(Simulation& out, std::vector<StageUse>& stages);
  void report_path(Simulation& out) const;

  World& world_;
  const Job& job_;
  Timeline timeline_;
  Steps<World> steps_;
  Flows<World> flows_;
  Repetition<World> repetition_;
  ProgressReporter progress_;
  double num_flows_;  // messages of all ranks
  bool may_skip_;
  std::vector<Event> moment_;  // the events that happen now
  std::int64_t num_moments_ = 0;
};

template <class World>
void Run<World>::announce() const {
  SimulationObserver* const observer = job_.options.observer;
  if (observer == nullptr) return;
  for (std::uint32_t rank = 0; rank < world_.num_ranks(); ++rank) {
    observer->on_rank(world_.rank_id(rank), world_.rank_count(rank));
  }
  for (LinkIndex link = 0; link < world_.num_links(); ++link) {
    const LinkId id = world_.link_id(link);
    if (id.node.depth > 0) observer->on_link(id, world_.link_count(link));
  }
}

template <class World>
Simulation Run<World>::run() {
  announce();
  if (!progress_.report_start(progress())) return result(/*is_complete=*/false);
  const bool has_barrier = job_.options.barrier;
  if (!has_barrier) steps_.start_first();
  bool goes_on = !has_barrier || steps_.start_next_barrier();
  while (goes_on) {
    if (timeline_.events.empty()) {
      if (steps_.num_running() > 0) steps_.throw_stuck();
      goes_on = has_barrier && steps_.start_next_barrier();
      continue;
    }
    process_moment();
    if (has_barrier && steps_.num_running() == 0) goes_on = steps_.start_next_barrier();
    if (!progress_.report(progress())) return result(/*is_complete=*/false);
  }
  return result(/*is_complete=*/true);
}

template <class World>
void Run<World>::process_moment() {
  timeline_.now = std::max(timeline_.now, timeline_.events.next());
  flows_.solver().advance_to(timeline_.now);
  moment_.clear();
  timeline_.events.pop_until(timeline_.now * (1 + kTieTime), moment_);
  ++num_moments_;
  for (const Event& event : moment_) process(event);
  flows_.settle();
  if (may_skip_ && timeline_.events.empty() && steps_.num_running() == 0) repetition_.at_standstill();
  steps_.start_ready();
}

template <class World>
void Run<World>::process(const Event& event) {
  switch (event.kind) {
    case EventKind::kLatencyOver:
      flows_.begin(event.index, event.latency);
      break;
    case EventKind::kWorkEnd:
      steps_.end_work(event.index, event.version);
      break;
    case EventKind::kArrival:
      flows_.look_at(event.index, event.version);
      break;
  }
}

// --------------------------------------------------------------------------------------------------------- the result

template <class World>
Simulation Run<World>::result(bool is_complete) {
  const PathRecorder& path = steps_.path();
  Simulation out;
  out.is_complete = is_complete;
  out.seconds = is_complete ? path.last_time() : timeline_.now;
  out.terms = path.last().terms;
  if (!is_complete && timeline_.now > out.terms.total()) out.terms.beta += timeline_.now - out.terms.total();
  out.flows = num_flows_;
  out.flows_done = flows_.num_delivered();
  out.events = num_moments_;
  out.solves = flows_.solver().num_solves();
  out.memoised_steps = repetition_.num_skipped();
  out.rank_classes = world_.num_ranks();
  out.flow_classes = flows_.num_added();
  std::vector<StageUse> stages = steps_.stage_log().stages();
  report_links(out, stages);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (steps_.stage_log().has_started(i)) out.stages.push_back(std::move(stages[i]));
  }
  report_path(out);
  if (is_complete) steps_.check_all_received();
  return out;
}

template <class World>
void Run<World>::report_links(Simulation& out, std::vector<StageUse>& stages) {
  RateSolver<World>& solver = flows_.solver();
  LinkLedger& ledger = flows_.ledger();
  std::vector<double> fullest(stages.size(), 0);
  for (LinkIndex link = 0; link < solver.num_links(); ++link) {
    const LinkSums& sums = solver.sums_until_now(link);
    ledger.close(link, sums);
    const LinkAccount& account = ledger.of(link);
    if (account.stages.empty()) continue;
    const LinkState& state = solver.state(link);
    LinkUse use{.link = world_.link_id(link),
                .count = world_.link_count(link),
                .busy_seconds = sums.busy,
                .incast_seconds = sums.incast,
                .floats = account.floats};
    if (out.seconds > 0) use.utilisation = account.floats * state.beta / state.scale / out.seconds;
    for (const StageLoad& load : account.stages) {
      const std::int64_t senders = to_whole(load.max_senders);
      use.max_senders = std::max(use.max_senders, senders);
      // Of links that are equally full, the one with bytes for longer.
      StageUse& stage = stages[load.stage];
      double& best = fullest[load.stage];
      const bool is_fuller = load.sums.full > best * (1 + kSameUse);
      const bool is_as_full = load.sums.full > best * (1 - kSameUse);
      if (!is_fuller && !(is_as_full && load.sums.busy > stage.busy_seconds * (1 + kSameUse))) continue;
      best = std::max(best, load.sums.full);
      stage.busiest = use.link;
      stage.busy_seconds = load.sums.busy;
      stage.incast_seconds = load.sums.incast;
      stage.senders = senders;
    }
    out.links.push_back(use);
  }
  std::stable_sort(out.links.begin(), out.links.end(), [](const LinkUse& a, const LinkUse& b) {
    return a.busy_seconds != b.busy_seconds ? a.busy_seconds > b.busy_seconds : a.incast_seconds > b.incast_seconds;
  });
}

template <class World>
void Run<World>::report_path(Simulation& out) const {
  for (const Hop& hop : steps_.path().hops()) {
    const bool is_message = hop.link != kNone;
    out.path.push_back({.is_message = is_message,
                        .from = world_.rank_id(hop.from),
                        .rank = world_.rank_id(hop.rank),
                        .chunk = hop.chunk,
                        .step = hop.number,
                        .begin = hop.begin,
                        .received = hop.received,
                        .end = hop.end,
                        .terms = hop.terms(),
                        .link = is_message ? world_.link_id(hop.link) : LinkId{}});
  }
}

}  // namespace gar::sim
