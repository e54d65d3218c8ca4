// The simulation itself: events, rates, dependencies and what is kept of them. One semantics for two worlds: FlowWorld
// (every rank, link and flow on its own) and ClassWorld (one of each class, with multiplicities).
//
// Rates. Every flow that moves has a bottleneck: a link that is full and on which no flow is faster. All flows with the
// same bottleneck have its `level` as their rate, so a rate is stored per link. When something changes, only a region
// is solved again: the changed links that are bottlenecks (and one for every new flow that crosses none of these) with
// all their flows, by progressive filling, as if no other link mattered. Then the links at the border are looked at:
// one that is overfull, or that is the bottleneck of flows outside the region and whose load has changed or on which a
// flow has become faster than these, joins the region, and it is solved once more. In the end every flow has a
// bottleneck again, which is what makes rates max-min fair.
//
// What is left of a flow is brought up to date only when its region is solved; since all flows with one bottleneck have
// the same rate, the time of the last update is stored per link too.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
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
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr std::size_t kMuch = std::size_t{1} << 20U;  // memory for lists longer than this is given back
  static constexpr double kFraction = 1e-6;                    // less than this of a flow or sender is rounding
  static constexpr double kTieTime = 1e-12;   // events closer than this share of the time happen together
  static constexpr double kDoneTime = 4e-12;  // a flow that would end within this share of the time has ended
  static constexpr double kSameLoad = 1e-12;  // loads closer than this share of the capacity are the same

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
    double n = 0;         // flows on it
    double w = 0;         // distinct senders
    double load = 0;      // sum of their rates
    double capacity = 0;  // with these senders
    double touched = 0;   // what is kept has been added up to this time
    double busy = 0, full = 0;
    std::uint32_t version = 0;
    bool is_dirty = false, is_slack = false, in_region = false, in_border = false, has_old = false;

    double level = 0;
    double since = 0;                         // when flows with this bottleneck were brought up to date
    double incast_since = 0;                  // what `incast` was then
    double due = kNever, scheduled = kNever;  // the end of the first of them, and the event that looks for it
    double reference = 0;                     // the load when its level was found
    std::uint32_t bottlenecked = 0;           // flows with this bottleneck
    std::uint32_t stage = 0;                  // the entry of `stages` that was used last
    std::vector<std::uint32_t> flows;
    double floats = 0, share = 0;
    // solving
    double used = 0, group_level = 0, group_n = 0, open = 0, least_left = 0;
    double old_rates = 0, new_rates = 0, fastest = 0;
    std::uint32_t frozen = 0;

    double incast = 0;
    LinkState state;
    std::vector<StageLoad> stages;
  };

  // The message that came last.
  struct Last {
    std::uint32_t instance = kNone;  // that sent it
    std::uint32_t link = kNone;      // its bottleneck in the end
    std::uint32_t a = 0, b = 0;
    double time = 0;
    double incast = 0;
  };

  enum class SendState : std::uint8_t { kUnsent, kWaiting, kFlowing, kDone };

  // A step of a rank in one chunk, from its start until nobody refers to it.
  struct Instance {
    std::uint32_t rank = 0, chunk = 0, stage = 0;
    std::int64_t number = 0;
    std::uint64_t step = 0;
    bool is_mirror = false, is_done = false;
    std::uint32_t flows_left = 0, refs = 0;
    std::uint32_t expected = 0, arrived = 0;
    double start = 0, received = 0, delay = 1;
    Terms path;  // at its start
    std::uint32_t record = kNone;
    Last last;
    double calculation = 0, gamma_share = 0;  // what is left of it
    std::uint32_t next = kNone;               // on the same server
    // The same step of the chunk before and behind, while they have flows, and each flow's state.
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
    double gamma_share = 0;
  };

  struct Ready {
    std::uint32_t rank, chunk;
    std::int64_t finished;  // steps before it
    Terms path;
    std::uint32_t record;
  };

  // dependencies
  [[nodiscard]] std::size_t lane_index(std::uint32_t rank, std::uint32_t chunk) const {
    return static_cast<std::size_t>(rank) * static_cast<std::size_t>(job_.num_chunks) + chunk;
  }
  Lane& lane(std::uint32_t rank, std::uint32_t chunk) { return lanes_[lane_index(rank, chunk)]; }
  std::vector<std::uint32_t>& sending(const Instance& x) { return sending_[lane_index(x.rank, x.chunk)]; }
  [[nodiscard]] std::int64_t number_of(const Lane& l) const {
    const SimStep& s = world_.step(l.step);
    return l.is_mirror ? job_.num_steps - 1 - (s.number + s.repeat - 1 - l.repetition) : s.number + l.repetition;
  }
  void advance(std::uint32_t rank, Lane& l);
  void try_start(std::uint32_t rank, std::uint32_t chunk, const Terms& path, std::uint32_t record);
  void start(const Ready& ready);
  [[gnu::flatten]] void start_ready();
  bool start_barrier();
  void arrive(const Flow& flow, std::uint32_t bottleneck, double incast);
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
  void end_flow(std::uint32_t f);
  bool is_held(const Instance& x, std::uint32_t nth, std::uint32_t a, std::uint32_t b);
  void free_followers(std::uint32_t id, const Flow& flow);
  void touch(Link& l);
  void count_stage(Link& l, std::uint32_t stage, double n);
  void mark(std::uint32_t l);
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
  void schedule_link(std::uint32_t id, double time);
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
  std::vector<double> incast_;        // by flow: seconds that incast at its bottlenecks has cost it
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

  std::vector<std::vector<std::uint32_t>> sending_;  // of each lane, the steps with flows, earliest first
  std::vector<double> flowing_;                      // flow: since when, for the observer
  std::vector<std::pair<std::uint32_t, std::uint32_t>> following_;

  std::vector<std::uint32_t> dirty_, region_, border_, old_, region_flows_, done_, added_, slack_, new_flows_;
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
  if (lanes > 1e8) throw InvalidArgument("too many ranks and chunks to simulate; take fewer chunks");
  links_.resize(world.num_links());
  for (std::uint32_t l = 0; l < links_.size(); ++l) links_[l].state = world.link(l);
  lanes_.resize(static_cast<std::size_t>(lanes));
  for (std::uint32_t r = 0; r < ranks; ++r) {
    for (std::int64_t c = 0; c < job.num_chunks; ++c) lane(r, static_cast<std::uint32_t>(c)).step = world.first(r);
  }
  stride_ = world.path_stride();
  sending_.resize(lanes_.size());
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
    for (std::uint32_t l = 0; l < links_.size(); ++l) {
      if (world.link_id(l).node.depth > 0) o->on_link(world.link_id(l), world.link_count(l));
    }
  }
}

}  // namespace gar::sim

#include "sim/engine_flows.hpp"  // IWYU pragma: export
#include "sim/engine_rates.hpp"  // IWYU pragma: export
#include "sim/engine_run.hpp"    // IWYU pragma: export
#include "sim/engine_steps.hpp"  // IWYU pragma: export
