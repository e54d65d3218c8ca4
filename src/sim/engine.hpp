// The simulation itself: events, rates, dependencies and what is kept of them. One semantics for two worlds: FlowWorld
// (every rank, link and flow on its own) and ClassWorld (one of each class, with multiplicities).
//
// Rates. Every flow that moves has a bottleneck: a link that is full and on which no flow is faster. All flows with the
// same bottleneck have its `level` as their rate, so a rate is stored per link. When something changes on a link, only
// a region is solved again: the changed links with all their flows, by progressive filling, as if no other link
// mattered. Then the links at the border are looked at: one that is overfull, or that is the bottleneck of flows outside
// the region and whose load has changed or on which a flow has become faster than these, joins the region, and it is
// solved once more. In the end every flow has a
// bottleneck again, which is what makes rates max-min fair.
//
// What is left of a flow is brought up to date only when its region is solved; since all flows with one bottleneck have
// the same rate, the time of the last update is stored per link too.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gar/errors.hpp"
#include "gar/simulate.hpp"
#include "sim/event_queue.hpp"
#include "sim/network.hpp"
#include "sim/programs.hpp"
#include "sim/random.hpp"
#include "sim/stages.hpp"

namespace gar::sim {

/// What both engines are given.
struct Job {
  const Network& network;
  const StageTable& stages;
  const SimulationOptions& options;
  double chunk_floats = 0;
  std::int64_t num_chunks = 1;
  std::int64_t num_steps = 0;  ///< of the plan: step numbers are below this
};

template <class World>
class Engine {
 public:
  Engine(World& world, const Job& job);
  Simulation run();

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kRegion = kNone - 1;  // a flow whose rate is being found
  static constexpr std::uint32_t kNew = kNone - 2;     // a flow that has no rate yet
  static constexpr std::uint32_t kDead = kNone - 3;
  static constexpr double kTieTime = 1e-12;    // events closer than this share of the time happen together
  static constexpr double kDoneTime = 4e-12;   // a flow that would end within this share of the time has ended
  static constexpr double kSameLoad = 1e-12;   // loads closer than this share of the capacity are the same

  struct Flow {
    std::uint32_t a = 0;  // the world's name for it: (a, b); b receives
    std::uint32_t b = 0;
    std::uint32_t bottleneck = kNew;
    std::uint32_t instance = 0;  // that sends it
    double left = 0;             // floats
  };

  // What the flows of one stage do on a link. Sums are up to date when the stage has no flow on it.
  struct StageLoad {
    std::uint32_t stage = 0;
    double n = 0;  // its flows
    double senders = 0;
    double busy = 0, incast = 0, full = 0;  // full: integral of load / capacity
  };

  // In the order of use, so that most of what happens to a link touches two or three cache lines.
  struct Link {
    double n = 0;  // flows on it
    double w = 0;  // distinct senders
    double load = 0;      // sum of their rates
    double capacity = 0;  // with these senders
    double touched = 0;   // what is kept has been added up to this time
    double busy = 0, full = 0;
    std::uint32_t version = 0;
    bool is_dirty = false, is_slack = false, in_region = false, in_border = false, has_old = false;

    double level = 0;
    double since = 0;      // when flows with this bottleneck were brought up to date
    double reference = 0;  // the load when its level was found
    std::uint32_t bottlenecked = 0;  // flows with this bottleneck
    std::uint32_t stage = 0;         // the entry of `stages` that was used last
    std::vector<std::uint32_t> flows;
    double floats = 0, share = 0;
    // solving
    double used = 0, group_level = 0, group_n = 0, open = 0, least_left = 0;
    double old_rates = 0, new_rates = 0, fastest = 0;
    std::uint32_t frozen = 0;

    double incast = 0;
    LinkState state;
    std::vector<std::pair<double, double>> log;  // (time, incast) whenever the share changes
    std::vector<StageLoad> stages;
  };

  // The message that came last.
  struct Last {
    std::uint32_t instance = kNone;  // that sent it
    std::uint32_t link = kNone;      // its bottleneck in the end
    std::uint32_t a = 0, b = 0;
    double time = 0;
  };

  enum class SendState : std::uint8_t { kUnsent, kWaiting, kFlowing, kDone };

  // A step of a rank in one chunk, from its start until nobody refers to it.
  struct Instance {
    std::uint32_t rank = 0, chunk = 0, stage = 0;
    std::int64_t number = 0;
    std::uint64_t step = 0;
    bool is_mirror = false, is_done = false;
    std::uint32_t flows_left = 0, flowing = 0, refs = 0;
    std::uint32_t expected = 0, arrived = 0;
    double start = 0, received = 0, delay = 1;
    Terms path;  // at its start
    std::uint32_t record = kNone;
    Last last;
    double calculation = 0, gamma_share = 0;  // what is left of it
    std::uint32_t next = kNone;               // on the same server
    // With several chunks: the same step of the chunk before and behind, while they have flows, and each flow's state.
    std::uint32_t before = kNone, behind = kNone;
    std::vector<SendState> sends;
  };

  struct Lane {  // a rank in one chunk
    std::uint64_t step = 0;
    std::int64_t repetition = 0;
    std::int64_t finished = 0;
    std::uint32_t instance = kNone;
    bool is_mirror = false;
  };

  struct Arrival {  // of a message for a step that has not started
    std::uint32_t chunk = 0;
    std::int64_t number = 0;
    std::uint32_t count = 0;
    Last last;
  };

  struct Processor {
    std::uint32_t head = kNone;
    std::uint32_t count = 0;
    std::uint32_t version = 0;
    double since = 0;
  };

  struct Record {
    std::uint32_t previous = kNone;
    std::uint32_t from = 0, rank = 0, chunk = 0;
    std::int64_t number = 0;
    double begin = 0, received = 0, end = 0, latency = 0, epsilon = 0;
    std::uint32_t link = kNone;
    float gamma_share = 0;
  };

  struct Ready {
    std::uint32_t rank, chunk;
    std::int64_t finished;  // steps before it
    Terms path;
    std::uint32_t record;
  };

  // dependencies
  Lane& lane(std::uint32_t rank, std::uint32_t chunk) {
    return lanes_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(job_.num_chunks) + chunk];
  }
  [[nodiscard]] std::int64_t number_of(const Lane& l) const {
    const SimStep& s = world_.step(l.step);
    return l.is_mirror ? job_.num_steps - 1 - (s.number + s.repeat - 1 - l.repetition) : s.number + l.repetition;
  }
  void advance(std::uint32_t rank, Lane& l);
  void try_start(std::uint32_t rank, std::uint32_t chunk, const Terms& path, std::uint32_t record);
  void start(const Ready& ready);
  [[gnu::flatten]] void start_ready();
  bool start_barrier();
  void arrive(const Flow& flow, std::uint32_t bottleneck);
  void begin_calculation(std::uint32_t id);
  void update_processor(std::uint32_t rank);
  void schedule_processor(std::uint32_t rank);
  void end_calculations(std::uint32_t rank);
  void finish(std::uint32_t id);
  std::uint32_t new_instance();
  void release(std::uint32_t id);
  [[nodiscard]] double latency_of(const Instance& x, double latency) const { return latency * x.delay; }
  // flows
  [[gnu::flatten]] void activate(std::uint32_t id, double latency);
  void add_flow(std::uint32_t a, std::uint32_t b, double floats, std::uint32_t instance, std::uint32_t nth);
  void add_waiting(std::uint32_t id, std::uint32_t nth);
  void end_flow(std::uint32_t f, std::uint32_t bottleneck);
  void touch(Link& l);
  void count_stage(Link& l, std::uint32_t stage, double n);
  void mark(std::uint32_t l);
  [[nodiscard]] double incast_until(const Link& l, double time) const;
  template <class F>
  void for_path(std::uint32_t f, F use) const {
    if (stride_ == 0) {
      world_.for_path(flows_[f].a, flows_[f].b, use);
      return;
    }
    const std::uint32_t* at = &paths_[f * stride_];
    for (std::size_t k = 0; k < stride_ && at[k] != kNone; ++k) use(at[k], 1.0);
  }
  // rates
  [[gnu::flatten]] void solve();
  void collect(std::uint32_t l, bool may_end);
  void fill();
  void freeze(std::uint32_t l, double level);
  bool extend();
  void commit();
  void keep_load(std::uint32_t id);
  void take(Link& l, double n, double level) {
    if (l.group_level != level) {
      l.used += l.group_n * l.group_level;
      l.group_level = level;
      l.group_n = 0;
    }
    l.group_n += n;
  }

  void repeat_steps();
  bool report();
  [[noreturn]] void throw_stuck();
  Simulation result();

  World& world_;
  const Job& job_;
  double now_ = 0;
  EventQueue queue_;
  std::vector<Event> batch_;
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
  std::size_t stride_ = 0;            // links of the longest path, where it pays to keep paths
  std::vector<std::uint32_t> paths_;  // by flow
  std::vector<Instance> instances_;
  std::vector<std::uint32_t> free_instances_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<Arrival>> inbox_;
  std::vector<Processor> processors_;
  std::vector<Ready> ready_;
  std::vector<Record> records_;
  bool keeps_records_ = false;

  bool has_queues_ = false;  // several chunks: flows of one step from one rank to another follow each other
  std::vector<std::vector<std::uint32_t>> sending_;  // of each rank, the steps with flows
  std::vector<std::uint32_t> nth_;                   // flow: which one of its step
  std::vector<double> flowing_;                      // flow: since when
  std::vector<std::pair<std::uint32_t, std::uint32_t>> following_;

  std::vector<std::uint32_t> dirty_, region_, border_, old_, region_flows_, done_, added_, slack_, new_flows_;
  std::vector<std::uint32_t> done_bottleneck_;
  std::vector<std::pair<double, std::uint32_t>> heap_;

  std::uint32_t running_ = 0;  // barrier: steps that are not finished
  std::int64_t barrier_number_ = -1;
  std::uint32_t barrier_chunk_ = 0;
  Terms last_path_;
  std::uint32_t last_record_ = kNone;
  double last_time_ = 0;

  // The last moment at which all ranks stood before a step together and nothing was under way.
  struct Standstill {
    bool is_known = false;
    double time = 0;
    double flows_done = 0;
    std::vector<Lane> lanes;
    std::vector<Terms> paths;
    std::vector<double> calculation;
    struct Sums {
      double busy, full, incast, floats;
      std::vector<StageLoad> stages;
    };
    std::vector<Sums> links;
  };
  bool may_repeat_ = false;
  Standstill standstill_;

  std::vector<StageUse> stages_;
  std::vector<char> stage_started_;
  std::vector<double> calculation_;  // rank by stage; empty when that would be too much
  Simulation out_;
  std::chrono::steady_clock::time_point reported_ = std::chrono::steady_clock::now();
};

template <class World>
Engine<World>::Engine(World& world, const Job& job)
    : world_(world), job_(job), stages_(job.stages.stages()), stage_started_(stages_.size(), 0) {
  const std::uint32_t ranks = world.num_ranks();
  const double lanes = static_cast<double>(ranks) * static_cast<double>(job.num_chunks);
  if (lanes > 5e8) throw InvalidArgument("too many ranks and chunks to simulate; take fewer chunks");
  links_.resize(world.num_links());
  for (std::uint32_t l = 0; l < links_.size(); ++l) links_[l].state = world.link(l);
  lanes_.resize(static_cast<std::size_t>(lanes));
  for (std::uint32_t r = 0; r < ranks; ++r) {
    for (std::int64_t c = 0; c < job.num_chunks; ++c) lane(r, static_cast<std::uint32_t>(c)).step = world.first(r);
  }
  stride_ = world.path_stride();
  has_queues_ = job.num_chunks > 1 && !job.options.barrier;
  if (has_queues_) sending_.resize(ranks);
  inbox_.resize(ranks);
  processors_.resize(ranks);
  double steps = 0;
  for (std::uint32_t r = 0; r < ranks; ++r) steps += static_cast<double>(world.length(r));
  keeps_records_ = job.options.keep_path && steps * static_cast<double>(job.num_chunks) <= kMaxPathRecords;
  may_repeat_ = World::kMemoises && !keeps_records_ && job.num_chunks == 1 && !job.options.barrier &&
                job.options.observer == nullptr;
  if (static_cast<double>(ranks) * static_cast<double>(stages_.size()) <= 2e7) {
    calculation_.resize(ranks * stages_.size());
  }
  out_.flows = world.num_flows() * static_cast<double>(job.num_chunks);
  out_.rank_classes = ranks;
  if (SimulationObserver* o = job.options.observer) {
    for (std::uint32_t r = 0; r < ranks; ++r) o->on_rank(world.rank_id(r), world.rank_count(r));
    for (std::uint32_t l = 0; l < links_.size(); ++l) o->on_link(world.link_id(l), world.link_count(l));
  }
}

// ---------------------------------------------------------------------------------------------------- dependencies

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
  x.flowing = x.refs = x.arrived = 0;
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
    x.delay = 1 + job_.options.jitter *
                      exponential(job_.options.seed, world_.rank_id(x.rank), x.chunk, x.number, /*is_calculation=*/false);
  }
  StageUse& stage = stages_[x.stage];
  if (stage_started_[x.stage] == 0) {
    stage_started_[x.stage] = 1;
    stage.begin = now_;
  }
  ++running_;
  if (has_queues_ && x.flows_left > 0) {
    x.sends.assign(x.flows_left, SendState::kUnsent);
    for (const std::uint32_t other : sending_[x.rank]) {
      Instance& y = instances_[other];
      if (y.number != x.number || y.chunk + 1 != x.chunk) continue;
      x.before = other;
      y.behind = id;
    }
    sending_[x.rank].push_back(id);
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
void Engine<World>::arrive(const Flow& flow, std::uint32_t bottleneck) {
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
    x.last = {flow.instance, bottleneck, flow.a, flow.b, now_};
    begin_calculation(l.instance);
    return;
  }
  std::vector<Arrival>& inbox = inbox_[flow.b];
  auto a = std::find_if(inbox.begin(), inbox.end(), [&](const Arrival& x) {
    return x.number == sender.number && x.chunk == sender.chunk;
  });
  ++instances_[flow.instance].refs;
  if (a == inbox.end()) {
    inbox.push_back({sender.chunk, sender.number, 0, {}});
    a = std::prev(inbox.end());
  } else {
    --instances_[a->last.instance].refs;
    if (a->last.instance != flow.instance) release(a->last.instance);
  }
  ++a->count;
  a->last = {flow.instance, bottleneck, flow.a, flow.b, now_};
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
    const Link& l = links_[x.last.link];
    if (!l.log.empty()) {
      epsilon = incast_until(l, x.received) - incast_until(l, flowing);
      epsilon = std::clamp(epsilon, 0.0, x.received - flowing);
    }
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
                        waited ? x.last.link : kNone, static_cast<float>(x.gamma_share)});
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

// ----------------------------------------------------------------------------------------------------------- flows

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
  if (was_there == (s.n > 0)) return;
  const double sign = was_there ? 1 : -1;
  s.busy += sign * l.busy;
  s.incast += sign * l.incast;
  s.full += sign * l.full;
}

template <class World>
double Engine<World>::incast_until(const Link& l, double time) const {
  const double current = l.incast + (l.n > 0 ? l.share * (now_ - l.touched) : 0);
  if (l.log.empty() || time >= now_) return current;
  const auto next = std::upper_bound(l.log.begin(), l.log.end(), time,
                                     [](double t, const std::pair<double, double>& e) { return t < e.first; });
  if (next == l.log.begin()) return next->second;
  const auto [t0, i0] = *std::prev(next);
  const auto [t1, i1] = next == l.log.end() ? std::pair(now_, current) : *next;
  return t1 > t0 ? i0 + (i1 - i0) * (time - t0) / (t1 - t0) : i0;
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
  flows_[f] = {a, b, kNew, instance, floats};
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
    mark(id);
  });
  const auto is_alive = [&](std::uint32_t other) { return flows_[other].bottleneck != kDead; };
  world_.remove_senders(
      x.rank, flow.a, flow.b, [&](std::uint32_t id, double w) { links_[id].w -= w; },
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
  arrive(flow, bottleneck);
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

// ----------------------------------------------------------------------------------------------------------- rates

template <class World>
void Engine<World>::collect(std::uint32_t id, bool may_end) {
  Link& l = links_[id];
  if (l.in_region) return;
  l.in_region = true;
  region_.push_back(id);
  for (const std::uint32_t f : l.flows) {
    Flow& flow = flows_[f];
    if (flow.bottleneck >= kDead && flow.bottleneck != kNew) continue;
    double rate = 0;
    const std::uint32_t bottleneck = flow.bottleneck;
    if (bottleneck != kNew) {
      Link& b = links_[bottleneck];
      --b.bottlenecked;
      rate = b.level;
      flow.left -= rate * (now_ - b.since);
    }
    flow.bottleneck = kRegion;
    if (may_end && flow.left <= rate * now_ * kDoneTime) {
      done_.push_back(f);
      done_bottleneck_.push_back(bottleneck == kNew ? id : bottleneck);
      continue;
    }
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
    if (load > l.capacity * (1 + kSameLoad)) {
      added_.push_back(m);
    } else if (l.bottlenecked > 0 && (std::abs(load - l.reference) > l.capacity * kSameLoad ||
                                      l.fastest > l.level * (1 + kSameLoad))) {
      added_.push_back(m);
    }
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
  if (share != l.share) {
    l.log.emplace_back(now_, l.incast);
    l.share = share;
  }
  if (l.stage < l.stages.size() && l.w > l.stages[l.stage].senders) l.stages[l.stage].senders = l.w;
  if (job_.options.observer != nullptr) {
    job_.options.observer->on_load(world_.link_id(id), now_, static_cast<std::int64_t>(l.n),
                                   static_cast<std::int64_t>(l.w));
  }
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
    l.load = l.reference = l.n > 0 ? l.used + l.group_n * std::max(l.group_level, 0.0) : 0;
    l.bottlenecked += l.frozen;
    ++l.version;
    if (l.frozen > 0) {
      queue_.push(now_ + l.least_left / l.level, {EventKind::kLink, id, l.version, 0});
    }
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
  done_bottleneck_.clear();
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
      for (; ended < done_.size(); ++ended) end_flow(done_[ended], done_bottleneck_[ended]);
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
      l.reference = l.load;
      l.bottlenecked = 1;
      queue_.push(now_ + flows_[f].left / least, {EventKind::kLink, narrowest, ++l.version, 0});
    } else {
      collect(narrowest, false);
    }
  }
  new_flows_.clear();
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
    free_flows_.insert(free_flows_.end(), done_.begin(), done_.end());
  }
  border_.clear();
  do {
    fill();
  } while (!region_flows_.empty() && extend());
  commit();
}

// ------------------------------------------------------------------------------------------------------------- run

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
      l.log.clear();
      l.log.emplace_back(now_, l.incast);
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
          if (links_[e.id].version == e.version) mark(e.id);
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
      use.max_senders = std::max(use.max_senders, static_cast<std::int64_t>(s.senders));
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
        stage.senders = static_cast<std::int64_t>(s.senders);
      }
    }
    out_.links.push_back(use);
  }
  std::stable_sort(out_.links.begin(), out_.links.end(),
                   [](const LinkUse& a, const LinkUse& b) { return a.busy_seconds > b.busy_seconds; });
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
    hop.terms = {r.latency, transfer - r.epsilon, calculation * r.gamma_share,
                 calculation * (1 - static_cast<double>(r.gamma_share)), r.epsilon};
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
