// The loop over moments, steps that are all alike, and the result. Part of engine.hpp.
#pragma once

#include "sim/engine.hpp"

namespace gar::sim {

// Between two standstills all ranks have done one step of several equal ones: the others will take just as long.
template <class World>
void Engine<World>::repeat_steps() {
  Standstill& before = standstill_;
  std::int64_t left = std::numeric_limits<std::int64_t>::max();  // equal steps that all ranks have before them
  bool is_repetition = before.is_known;
  for (std::uint32_t r = 0; r < world_.num_ranks(); ++r) {
    const Lane& l = lane(r, 0);
    if (l.finished == world_.length(r)) left = 0;
    left = std::min(left, world_.step(l.step).repeat - l.repetition);
    is_repetition = is_repetition && l.repetition > 0 && l.step == before.lanes[r].step &&
                    l.finished == before.lanes[r].finished + 1;
  }
  if (left < 2 || ready_.size() != world_.num_ranks()) {
    before.is_known = false;
    return;
  }
  if (is_repetition) {
    const auto times = static_cast<double>(left);
    const double elapsed = now_ - before.time;
    now_ += times * elapsed;
    for (std::uint32_t i = 0; i < links_.size(); ++i) {
      Link& l = links_[i];
      const typename Standstill::Sums& sums = before.links[i];
      l.busy += times * (l.busy - sums.busy);
      l.full += times * (l.full - sums.full);
      l.incast += times * (l.incast - sums.incast);
      l.floats += times * (l.floats - sums.floats);
      for (std::size_t k = 0; k < l.stages.size(); ++k) {
        const StageLoad none{l.stages[k].stage, 0, 0, 0, 0, 0};
        const StageLoad& was = k < sums.stages.size() ? sums.stages[k] : none;
        l.stages[k].busy += times * (l.stages[k].busy - was.busy);
        l.stages[k].incast += times * (l.stages[k].incast - was.incast);
        l.stages[k].full += times * (l.stages[k].full - was.full);
      }
      l.touched = now_;
      l.incast_since = l.incast;
    }
    for (std::size_t i = 0; i < calculation_.size(); ++i) {
      calculation_[i] += times * (calculation_[i] - before.calculation[i]);
    }
    for (const Ready& r : ready_) stages_[job_.stages.of_step(number_of(lane(r.rank, 0)))].end = now_;
    out_.flows_done += times * (out_.flows_done - before.flows_done);
    out_.memoised_steps += left * world_.num_ranks();
    std::vector<Ready> ready;
    ready.swap(ready_);
    for (Ready& r : ready) {
      const Terms& was = before.paths[r.rank];
      r.path += times * (r.path + (-1.0 * was));
      Lane& l = lane(r.rank, 0);
      l.repetition += left - 1;
      l.finished += left - 1;
      advance(r.rank, l);
      last_path_ = r.path;
      try_start(r.rank, 0, r.path, r.record);
    }
    last_time_ = now_;
    before.is_known = false;
    return;
  }
  before.is_known = true;
  before.time = now_;
  before.flows_done = out_.flows_done;
  before.lanes = lanes_;
  before.paths.resize(lanes_.size());
  for (const Ready& r : ready_) before.paths[r.rank] = r.path;
  before.calculation = calculation_;
  before.links.clear();
  for (Link& l : links_) {
    touch(l);
    before.links.push_back({l.busy, l.full, l.incast, l.floats, l.stages});
  }
}

template <class World>
bool Engine<World>::report() {
  if (!job_.options.progress) return true;
  const auto time = std::chrono::steady_clock::now();
  if (time - reported_ < std::chrono::milliseconds(50)) return true;
  reported_ = time;
  return job_.options.progress({now_, out_.flows_done, out_.flows});
}

template <class World>
Simulation Engine<World>::run() {
  if (job_.options.progress && !job_.options.progress({0, 0, out_.flows})) {
    out_.is_complete = false;
    return result();
  }
  bool goes_on = true;
  if (job_.options.barrier) {
    goes_on = start_barrier();
  } else {
    for (std::uint32_t r = 0; r < world_.num_ranks(); ++r) try_start(r, 0, {}, kNone);
    start_ready();
  }
  while (goes_on) {
    if (queue_.empty()) {
      if (running_ > 0) throw_stuck();
      if (!job_.options.barrier || !start_barrier()) break;
      continue;
    }
    const double time = queue_.next();
    now_ = std::max(now_, time);
    batch_.clear();
    queue_.pop_until(now_ * (1 + kTieTime), batch_);
    ++out_.events;
    for (const Event& e : batch_) {
      switch (e.kind) {
        case EventKind::kActivate:
          activate(e.id, e.latency);
          break;
        case EventKind::kCalculation:
          if (processors_[e.id].version == e.version) end_calculations(e.id);
          break;
        case EventKind::kLink:
          if (links_[e.id].version == e.version) {
            links_[e.id].scheduled = kNever;
            if (links_[e.id].due <= now_ * (1 + kTieTime)) {
              mark(e.id);
            } else if (links_[e.id].due < kNever) {
              schedule_link(e.id, links_[e.id].due);
            }
          }
          break;
      }
    }
    solve();
    if (may_repeat_ && queue_.empty() && running_ == 0) repeat_steps();
    start_ready();
    if (running_ == 0 && job_.options.barrier) goes_on = start_barrier();
    if (!report()) {
      out_.is_complete = false;
      break;
    }
  }
  return result();
}

template <class World>
void Engine<World>::throw_stuck() {
  for (std::uint32_t r = 0; r < world_.num_ranks(); ++r) {
    for (std::int64_t c = 0; c < job_.num_chunks; ++c) {
      const Lane& l = lane(r, static_cast<std::uint32_t>(c));
      if (l.instance == kNone) continue;
      const Instance& x = instances_[l.instance];
      throw PlanError("the plan cannot finish: rank " + std::to_string(world_.rank_id(r)) + " waits in step " +
                      std::to_string(x.number) + " for " + std::to_string(x.expected - x.arrived) +
                      " more messages that nobody sends; 'gar verify' says more");
    }
  }
  throw PlanError("the plan cannot finish");
}

template <class World>
Simulation Engine<World>::result() {
  out_.seconds = out_.is_complete ? last_time_ : now_;
  out_.terms = last_path_;
  if (!out_.is_complete && now_ > last_path_.total()) out_.terms.beta += now_ - last_path_.total();
  std::vector<double> fullest(stages_.size(), 0);
  for (std::uint32_t i = 0; i < links_.size(); ++i) {
    Link& l = links_[i];
    touch(l);
    if (l.stages.empty()) continue;
    LinkUse use{world_.link_id(i), world_.link_count(i), l.busy, l.incast, l.floats, 0, 0};
    for (StageLoad& s : l.stages) {
      if (s.n > 0) {  // the run was ended before its flows were done
        s.busy += l.busy;
        s.incast += l.incast;
        s.full += l.full;
      }
      use.max_senders = std::max(use.max_senders, static_cast<std::int64_t>(std::llround(s.senders)));
    }
    if (out_.seconds > 0) use.utilisation = l.floats * l.state.beta / l.state.scale / out_.seconds;
    for (const StageLoad& s : l.stages) {
      StageUse& stage = stages_[s.stage];
      // Of links that are equally full, the one with bytes for longer.
      const double best = fullest[s.stage];
      const bool is_fuller = s.full > best * (1 + 1e-9);
      if (is_fuller || (s.full > best * (1 - 1e-9) && s.busy > stage.busy_seconds * (1 + 1e-9))) {
        fullest[s.stage] = std::max(best, s.full);
        stage.busiest = use.link;
        stage.busy_seconds = s.busy;
        stage.incast_seconds = s.incast;
        stage.senders = static_cast<std::int64_t>(std::llround(s.senders));
      }
    }
    out_.links.push_back(use);
  }
  std::stable_sort(out_.links.begin(), out_.links.end(), [](const LinkUse& a, const LinkUse& b) {
    return a.busy_seconds != b.busy_seconds ? a.busy_seconds > b.busy_seconds : a.incast_seconds > b.incast_seconds;
  });
  for (std::size_t i = 0; i < calculation_.size(); ++i) {
    StageUse& stage = stages_[i % stages_.size()];
    stage.calculation_seconds = std::max(stage.calculation_seconds, calculation_[i]);
  }
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (stage_started_[i] != 0) out_.stages.push_back(stages_[i]);
  }
  for (std::uint32_t i = last_record_; i != kNone; i = records_[i].previous) {
    const Record& r = records_[i];
    PathHop hop;
    hop.from = world_.rank_id(r.from);
    hop.rank = world_.rank_id(r.rank);
    hop.chunk = r.chunk;
    hop.step = r.number;
    hop.begin = r.begin;
    hop.received = r.received;
    hop.end = r.end;
    const double transfer = r.link == kNone ? 0 : r.received - r.begin - r.latency;
    const double calculation = r.end - r.received;
    hop.terms = {r.latency, transfer - r.epsilon, calculation * r.gamma_share, calculation * (1 - r.gamma_share),
                 r.epsilon};
    hop.is_message = r.link != kNone;
    if (hop.is_message) hop.link = world_.link_id(r.link);
    out_.path.push_back(hop);
  }
  std::reverse(out_.path.begin(), out_.path.end());
  for (const std::vector<Arrival>& inbox : inbox_) {
    if (!inbox.empty() && out_.is_complete) {
      throw PlanError("rank " + std::to_string(world_.rank_id(static_cast<std::uint32_t>(&inbox - inbox_.data()))) +
                      " is sent a message in step " + std::to_string(inbox.front().number) +
                      " that it does not receive; 'gar verify' says more");
    }
  }
  return std::move(out_);
}

}  // namespace gar::sim
