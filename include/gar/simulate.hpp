// The simulator: what a plan does on a network over time.
//
// Fluid flows with max-min fair rates. A server is at work for mu on every message of a step before they leave, and for
// mu on every one that it has received before it reduces. A message first pays the latency of its path, then its bytes
// flow; the capacity of a link direction is 1 / (beta + max(w - incast_threshold, 0) * epsilon) floats per second,
// where w counts the distinct senders whose bytes are flowing over it at that moment. A rank starts a step when it has
// finished the step before (all its messages received and reduced); messages of one step from one rank to another are
// one flow.
//
// What a rank sends to another keeps its order, as on one connection: the bytes of a message flow when its latency has
// passed and the message of the chunk's step before between the same two ranks has arrived.
//
// With several chunks a rank starts a step of a chunk when it has finished the chunk's step before and has started the
// same step of the chunk before; the bytes also wait until those of the chunk before (same step, same two ranks) have
// arrived. What a server is at work on at the same time shares it equally. See docs/simulator.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gar/model.hpp"
#include "gar/plan.hpp"
#include "gar/topology.hpp"

namespace gar {

/// How the same semantics are computed: every flow on its own, or classes of ranks, links and flows that cannot be told
/// apart, each of them once. kAuto takes classes where they save work. kFlows finds rates on a graph of bottlenecks
/// where flows come and go one by one; kGraph does so always, kFilling never: it is the slow reference.
enum class SimulationEngine { kAuto, kFlows, kClasses, kGraph, kFilling };

/// A node instance of a topology: the one at `depth` (root = 0) above or at `rank`.
struct NodePlace {
  std::int64_t rank = 0;  ///< a server at or below the node
  int depth = 0;          ///< levels below the root; 0 is the root itself
  bool operator==(const NodePlace&) const = default;
};

/// Something that is wrong with the link from a node to its parent.
struct LinkCondition {
  NodePlace node;         ///< the node whose uplink it is
  bool up = true;         ///< applies to the direction towards the root
  bool down = true;       ///< applies to the direction away from it
  double capacity = 1;    ///< what is left of its capacity: 0 (failed), or 1 / kMaxFactor to kMaxFactor
  double background = 0;  ///< share of its capacity, 0 to below 1, that other traffic takes; it counts as a sender
};

/// A server whose calculation, and handling of messages, takes `factor` times as long.
struct SlowServer {
  std::int64_t rank = 0;  ///< the server
  double factor = 1;      ///< above 1: slower
};

/// How far a simulation is.
struct SimulationProgress {
  double seconds = 0;             ///< simulated so far
  double flows_done = 0;          ///< messages that have arrived
  double flows = 0;               ///< messages of the whole run
  std::int64_t rank_classes = 0;  ///< ranks that are simulated; each stands for all that are like it
  /// Real seconds that the whole run takes, roughly and at most; 0 where classes are simulated.
  double estimate_s = 0;
};

/// One link direction. A class of `count` links that behave alike is named by its first one.
struct LinkId {
  NodePlace node;        ///< the node below the link
  bool is_down = false;  ///< the direction away from the root
};
/// "downlink of rack3".
std::string link_name(const Topology& topology, const LinkId& link);

/// A rank has finished a step.
struct StepEvent {
  std::int64_t rank = 0;   ///< which rank
  std::int64_t chunk = 0;  ///< which chunk, from 0
  std::int64_t step = 0;   ///< step number, as in the plan
  double start = 0;        ///< when it started the step
  double received = 0;     ///< when it had received everything
  double done = 0;         ///< when it had handled and reduced everything
};

/// A message has arrived.
struct FlowEvent {
  std::int64_t from = 0;   ///< rank that sent it
  std::int64_t to = 0;     ///< rank that received it
  std::int64_t chunk = 0;  ///< which chunk, from 0
  std::int64_t step = 0;   ///< step number, as in the plan
  double start = 0;        ///< when it was sent
  double flowing = 0;      ///< when its bytes began to flow
  double end = 0;          ///< when they had arrived
  double floats = 0;       ///< length of the message
  std::int64_t alike = 1;  ///< messages that did the same
};

/// From `time` on a link carries `flows` flows of `senders` senders.
struct LoadEvent {
  LinkId link;               ///< the link direction
  double time = 0;           ///< seconds from the start
  std::int64_t flows = 0;    ///< messages that are flowing
  std::int64_t senders = 0;  ///< distinct ranks that send them
};

/// Receives what happens while it happens, for traces. Times in seconds from the start; ranks are the first ones of
/// their class when classes are simulated.
class SimulationObserver {
 public:
  SimulationObserver() = default;
  SimulationObserver(const SimulationObserver&) = delete;
  SimulationObserver& operator=(const SimulationObserver&) = delete;
  virtual ~SimulationObserver() = default;
  /// Called once for every rank (or class of `alike` ranks), before anything happens.
  virtual void on_rank(std::int64_t rank, std::int64_t alike) = 0;
  /// The same for every link direction (or class of them) that the plan uses.
  virtual void on_link(const LinkId& link, std::int64_t alike) = 0;
  virtual void on_step(const StepEvent& event) = 0;  ///< a rank has finished a step
  virtual void on_flow(const FlowEvent& event) = 0;  ///< a message has arrived
  virtual void on_load(const LoadEvent& event) = 0;  ///< the load of a link has changed
};

/// The largest SimulationOptions::tolerance.
inline constexpr double kMaxTolerance = 0.1;

/// How a plan is simulated, and under which conditions.
struct SimulationOptions {
  bool barrier = false;  ///< no rank starts a step before all have finished the one before; chunks run one by one
  SimulationEngine engine = SimulationEngine::kAuto;  ///< how it is computed
  ModelKind model = ModelKind::kGenModel;             ///< kPaper: no mu; kAbc: no incast and no memory access either
  IncastDegree degree = IncastDegree::kSenders;       ///< kParticipants: w is one more
  std::vector<SlowServer> slow_servers;               ///< servers that calculate more slowly
  std::vector<LinkCondition> links;                   ///< links that are slow, shared or failed
  double jitter = 0;       ///< mean of a random extra share of every step's latency and of every calculation
  std::uint64_t seed = 1;  ///< of the jitter: the same seed gives the same delays, whatever the plan or engine
  /// 0: exact. Else parameters of nodes of one height that differ by at most this share count as equal, in the middle
  /// between them, so that there are more classes; where flows are simulated, rates are found again only where the load
  /// of a link, or the rate of what it limits, would change by more than this share: a link never carries more than
  /// (1 + tolerance) times its capacity for it. 0 to kMaxTolerance.
  double tolerance = 0;
  bool keep_path = true;  ///< record the critical path (80 bytes for every step of a rank, up to kMaxPathRecords)
  SimulationObserver* observer = nullptr;  ///< told what happens; may be null; must outlive the run
  /// Called at the start and then at most 20 times a second; returning false ends the simulation, and the result is
  /// marked as partial.
  std::function<bool(const SimulationProgress&)> progress;
  /// Real seconds since any moment, from which the time between two calls of `progress` is found. Empty: the steady
  /// clock of the system.
  std::function<double()> clock;
};

/// What a link direction did. `count` alike links are one entry, named by the first.
struct LinkUse {
  LinkId link;                   ///< the link, or the first of those that are alike
  std::int64_t count = 1;        ///< links that are alike
  double busy_seconds = 0;       ///< time with bytes flowing
  double incast_seconds = 0;     ///< of these, what incast cost: the share epsilon has in the cost of a float
  double floats = 0;             ///< carried, by each of them
  std::int64_t max_senders = 0;  ///< most senders on it at one moment
  double utilisation = 0;        ///< mean over the whole run of (rate / capacity without incast)
};

/// What a stage of the plan did. Stages of different subtrees that have the same step numbers are one.
struct StageUse {
  std::string label;               ///< "rack level, 8-way exchange"
  bool is_gather = false;          ///< part of the AllGather
  bool is_exchange = false;        ///< an exchange, which comes between ReduceScatter and AllGather
  std::int64_t first_step = 0;     ///< step number of its first step
  std::int64_t num_steps = 1;      ///< number of steps
  double begin = 0;                ///< when the first rank started it (chunk after chunk)
  double end = 0;                  ///< when the last rank had finished it
  LinkId busiest;                  ///< the link that was full longest with its bytes
  double busy_seconds = 0;         ///< that link was busy with the stage's bytes
  double incast_seconds = 0;       ///< of these, what incast cost
  std::int64_t senders = 0;        ///< most of them on that link
  double calculation_seconds = 0;  ///< the most that a server calculated
};

/// One hop of the critical path: `from` sent a message when it could, `rank` waited for it and reduced.
struct PathHop {
  bool is_message = false;  ///< false: no message was waited for, and `from` is `rank`
  std::int64_t from = 0;    ///< with classes, the first of its class; may be that of `rank` as well
  std::int64_t rank = 0;    ///< the rank that was reached
  std::int64_t chunk = 0;   ///< which chunk the message belongs to
  std::int64_t step = 0;    ///< which step
  double begin = 0;         ///< when `from` could send
  double received = 0;      ///< when `rank` had the bytes
  double end = 0;           ///< when `rank` had reduced them
  Terms terms;              ///< of end - begin
  LinkId link;              ///< what limited the flow at its end
};

/// What happened.
struct Simulation {
  double seconds = 0;               ///< when the last rank had finished
  bool is_complete = true;          ///< false: ended by `progress`; everything else tells what had happened by then
  Terms terms;                      ///< of the critical path; their sum is `seconds`
  double flows = 0;                 ///< messages, those of alike ranks included
  double flows_done = 0;            ///< messages that have arrived
  std::int64_t events = 0;          ///< moments at which something happened
  std::int64_t solves = 0;          ///< times that rates had to be found
  std::int64_t memoised_steps = 0;  ///< steps of ranks that repeated earlier ones exactly and were not simulated again
  SimulationEngine engine = SimulationEngine::kFlows;  ///< the engine that ran
  std::int64_t rank_classes = 0;                       ///< ranks that were simulated
  std::int64_t flow_classes = 0;                       ///< flows that were simulated
  std::vector<LinkUse> links;                          ///< those that carried anything, busiest first
  std::vector<StageUse> stages;                        ///< in the order of their steps
  std::vector<PathHop> path;  ///< first hop first; empty when there was too much to record (kMaxPathRecords)
  /// The time of the critical path that went into latency, links and incast.
  [[nodiscard]] double communication_seconds() const { return terms.alpha + terms.beta + terms.epsilon; }
  /// The time of the critical path that went into handling messages.
  [[nodiscard]] double handling_seconds() const { return terms.mu; }
  /// The time of the critical path that went into reducing.
  [[nodiscard]] double calculation_seconds() const { return terms.gamma + terms.delta; }
};

/// Steps of ranks up to which the critical path is recorded.
inline constexpr double kMaxPathRecords = 1e6;

/// Simulates a plan for a vector of `size_floats` floats of 4 bytes. Throws PlanError when the plan does not fit the
/// topology or cannot finish, InvalidArgument for conditions that name no rank or link, are out of range, or cut off a
/// rank that the plan needs ("rank 37 cannot be reached").
Simulation simulate(const Plan& plan, const Topology& topology, double size_floats,
                    const SimulationOptions& options = {});

/// The node instance with that name ("rack3/server5", as Topology::instance_name gives it) or, when the text is a
/// number, the server of that rank. Throws InvalidArgument with the nearest names that exist.
NodePlace find_place(const Topology& topology, const std::string& name);

}  // namespace gar
