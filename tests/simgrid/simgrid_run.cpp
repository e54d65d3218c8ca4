// How SimGrid is used here:
//  - It shares links max-min fairly, but weighs a flow by the inverse of its latency. So its links have none; a
//    message's actor waits for the latency of the path, then starts the transfer, which all flows share equally.
//  - A NONLINEAR link asks for its capacity whenever rates are found anew. SimGrid tells it how many flows it carries
//    (flows in their latency phase are not counted); incast depends on their senders, so those are counted here, and
//    the number of flows must be the same on both sides.
//  - A calculation is an execution: several on one server share it equally.
//  - network/optim:Full. With Lazy, a set of links that flows enter at the same moment after their latency is not
//    always taken into account as a whole (3.32), and links carry more than their capacity.
#include "simgrid_run.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gar::test {
namespace {

namespace sg = simgrid::s4u;

// SimGrid counts whole bytes: the vector has so many that rounding a message does not matter.
constexpr double kVectorBytes = 1e12;
constexpr double kFlopsPerSecond = 1e12;  // of every host

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "simgrid: %s\n", why.c_str());
  std::_Exit(1);
}

struct Transfer {
  std::int64_t to = 0;
  double latency_s = 0;
  std::uint64_t bytes = 0;
  std::int64_t step_before = -1;  // the last one that sends to the same rank
};

struct RankStep {
  std::int64_t number = 0;
  std::vector<Transfer> sends;
  std::size_t num_senders = 0;
  double calculation_s = 0;
};

/// One direction of the link above a node, and who sends over it now.
struct Direction {
  LinkParams params;
  double share = 1;          // of its capacity that is left to the plan
  double other_senders = 0;  // counted on top of its own
  bool has_incast = true;
  int num_flows = 0;
  std::map<std::int64_t, int> flows_of;  // by sender

  [[nodiscard]] double floats_per_s() const {
    const double w = static_cast<double>(flows_of.size()) + other_senders;
    const double excess = has_incast ? std::max(w - params.incast_threshold, 0.0) : 0;
    return share / (params.beta + excess * params.epsilon);
  }
  void enter(std::int64_t sender) {
    num_flows += 1;
    flows_of[sender] += 1;
  }
  void leave(std::int64_t sender) {
    num_flows -= 1;
    if (--flows_of[sender] == 0) flows_of.erase(sender);
  }
};

/// Reducing f blocks of s floats costs (f - 1) s gamma + (f + 1) s delta; blocks that overlap partly are cut.
double calculation_seconds(const std::vector<Message>& recvs, const ServerParams& server, bool has_delta,
                           double floats_per_unit) {
  std::set<std::int64_t> cuts;
  for (const Message& m : recvs) cuts.insert({m.begin, m.end});
  double seconds = 0;
  for (auto cut = cuts.begin(); cut != cuts.end() && std::next(cut) != cuts.end(); ++cut) {
    double fan_in = 0;
    bool has_own = false;
    for (const Message& m : recvs) {
      if (m.begin > *cut || m.end <= *cut) continue;
      fan_in += 1;
      has_own = has_own || m.accumulate;
    }
    if (has_own) fan_in += 1;
    if (fan_in < 2) continue;
    const double floats = static_cast<double>(*std::next(cut) - *cut) * floats_per_unit;
    seconds += (fan_in - 1) * floats * server.gamma;
    if (has_delta) seconds += (fan_in + 1) * floats * server.delta;
  }
  return seconds;
}

class Run {
 public:
  Run(const Plan& plan, const Topology& topology, double size_floats, const SimulationOptions& options)
      : plan_(plan),
        topology_(topology),
        options_(options),
        size_floats_(size_floats),
        tree_(expand(topology, topology.root())) {}

  double seconds() {
    std::vector<std::string> words{"simgrid",
                                   "--log=root.thres:critical",
                                   "--cfg=network/model:CM02",
                                   "--cfg=network/optim:Full",
                                   "--cfg=cpu/optim:Full",
                                   "--cfg=network/TCP-gamma:1e30",
                                   "--cfg=network/latency-factor:1",
                                   "--cfg=network/bandwidth-factor:1",
                                   "--cfg=network/crosstraffic:0",
                                   "--cfg=network/weight-S:0",
                                   "--cfg=surf/precision:1e-12",
                                   "--cfg=maxmin/precision:1e-12",
                                   "--cfg=contexts/stack-size:64"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    int count = static_cast<int>(arguments.size());
    sg::Engine engine(&count, arguments.data());
    build_network();
    read_programs();
    double end = 0;
    for (std::int64_t rank = 0; rank < plan_.num_ranks; ++rank) {
      for (std::int64_t chunk = 0; chunk < (options_.barrier ? 1 : plan_.num_chunks); ++chunk) {
        sg::Actor::create("rank", hosts_[index(rank)], [this, rank, chunk, &end] {
          if (options_.barrier) {
            run_rank_with_barriers(rank);
          } else {
            run_rank(rank, chunk);
          }
          end = std::max(end, sg::Engine::get_clock());
        });
      }
    }
    engine.run();
    return end;
  }

 private:
  template <class T>
  static std::size_t index(T i) {
    return static_cast<std::size_t>(i);
  }
  [[nodiscard]] const Node& node(std::size_t instance) const { return topology_.node(tree_.node[instance]); }

  // --- the network -------------------------------------------------------------------------------------------------

  void build_network() {
    directions_.resize(2 * tree_.size());
    std::vector<const sg::Link*> links(directions_.size());
    sg::NetZone* zone = sg::create_full_zone("network");
    for (std::int64_t rank = 0; rank < plan_.num_ranks; ++rank) {
      hosts_.push_back(zone->create_host("host" + std::to_string(rank), kFlopsPerSecond));
    }
    for (std::size_t i = 2; i < links.size(); ++i) links[i] = make_link(*zone, i);
    for (std::int64_t a = 0; a < plan_.num_ranks; ++a) {
      for (std::int64_t b = 0; b < plan_.num_ranks; ++b) {
        if (a == b) continue;
        std::vector<sg::LinkInRoute> route;
        for (const std::size_t i : way(a, b)) route.emplace_back(links[i]);
        zone->add_route(hosts_[index(a)]->get_netpoint(), hosts_[index(b)]->get_netpoint(), nullptr, nullptr, route,
                        false);
      }
    }
    zone->seal();
  }

  /// The directions between two ranks: 2 i is upwards from instance i, 2 i + 1 downwards to it.
  [[nodiscard]] std::vector<std::size_t> way(std::int64_t a, std::int64_t b) const {
    std::vector<std::size_t> up, down;
    std::int32_t from = tree_.leaf[index(a)];
    std::int32_t to = tree_.leaf[index(b)];
    while (from != to) {  // the later one in preorder is not above the other
      if (from > to) {
        up.push_back(2 * index(from));
        from = tree_.parent[index(from)];
      } else {
        down.push_back(2 * index(to) + 1);
        to = tree_.parent[index(to)];
      }
    }
    up.insert(up.end(), down.rbegin(), down.rend());
    return up;
  }

  const sg::Link* make_link(sg::NetZone& zone, std::size_t i) {
    const bool is_down = i % 2 == 1;
    Direction& direction = directions_[i];
    direction.params = node(i / 2).uplink;
    direction.has_incast = options_.model == ModelKind::kGenModel;
    direction.other_senders = options_.degree == IncastDegree::kParticipants ? 1 : 0;
    for (const LinkCondition& condition : options_.links) {
      if (!(is_down ? condition.down : condition.up) || instance_of(condition.node) != i / 2) continue;
      direction.share *= condition.capacity * (1 - condition.background);
      if (condition.background > 0) direction.other_senders += 1;
    }
    const double bytes_per_float = kVectorBytes / size_floats_;
    sg::Link* link = zone.create_link("link" + std::to_string(i), direction.floats_per_s() * bytes_per_float);
    if (direction.params.epsilon > 0) {
      link->set_sharing_policy(sg::Link::SharingPolicy::NONLINEAR, [&direction, bytes_per_float](double, int flows) {
        if (flows != direction.num_flows) {
          give_up(std::to_string(flows) + " flows on a link, not " + std::to_string(direction.num_flows));
        }
        return direction.floats_per_s() * bytes_per_float;
      });
    }
    return link->seal();
  }

  [[nodiscard]] std::size_t instance_of(const NodePlace& place) const {
    std::int32_t instance = tree_.leaf[index(place.rank)];
    while (tree_.depth[index(instance)] > place.depth) instance = tree_.parent[index(instance)];
    return index(instance);
  }

  // --- the plan ----------------------------------------------------------------------------------------------------

  void read_programs() {
    const PlanIndex plan_index(plan_);
    num_steps_ = plan_index.num_steps();
    if (options_.barrier) barrier_ = sg::Barrier::create(static_cast<unsigned>(plan_.num_ranks));
    for (std::int64_t rank = 0; rank < plan_.num_ranks; ++rank) {
      std::vector<RankStep>& steps = steps_.emplace_back();
      std::map<std::int64_t, std::int64_t> last_to;
      for (const Step& step : plan_index.program(rank).steps) {
        for (Transfer& transfer : steps.emplace_back(rank_step(rank, step)).sends) {
          const auto [last, is_first] = last_to.try_emplace(transfer.to, step.number);
          if (!is_first) transfer.step_before = std::exchange(last->second, step.number);
        }
      }
    }
    for (std::int64_t i = 0; i < plan_.num_ranks * plan_.num_chunks * num_steps_; ++i) {
      arrived_.push_back(sg::Semaphore::create(0));
      started_.push_back(sg::Semaphore::create(0));
    }
  }
  [[nodiscard]] std::size_t place(std::int64_t rank, std::int64_t chunk, std::int64_t step) const {
    return index((rank * plan_.num_chunks + chunk) * num_steps_ + step);
  }

  [[nodiscard]] RankStep rank_step(std::int64_t rank, const Step& step) const {
    const auto num_units = static_cast<double>(plan_.num_units * plan_.num_chunks);
    RankStep out;
    out.number = step.number;
    std::map<std::int64_t, double> units_to;
    for (const Message& m : step.sends) units_to[m.peer] += static_cast<double>(m.end - m.begin);
    for (const auto& [to, units] : units_to) {
      const auto bytes = static_cast<std::uint64_t>(std::llround(units / num_units * kVectorBytes));
      out.sends.push_back({to, topology_.path_latency(rank, to), bytes});
    }
    std::set<std::int64_t> senders;
    for (const Message& m : step.recvs) senders.insert(m.peer);
    out.num_senders = senders.size();
    out.calculation_s = calculation_seconds(step.recvs, node(index(tree_.leaf[index(rank)])).server,
                                            options_.model == ModelKind::kGenModel, size_floats_ / num_units);
    for (const SlowServer& slow : options_.slow_servers) out.calculation_s *= slow.rank == rank ? slow.factor : 1;
    return out;
  }

  void run_rank(std::int64_t rank, std::int64_t chunk) {
    for (const RankStep& step : steps_[index(rank)]) {
      if (chunk > 0) started_[place(rank, chunk - 1, step.number)]->acquire();
      started_[place(rank, chunk, step.number)]->release();
      run_step(rank, chunk, step);
    }
  }

  void run_rank_with_barriers(std::int64_t rank) {
    for (std::int64_t chunk = 0; chunk < plan_.num_chunks; ++chunk) {
      std::int64_t next = 0;
      for (const RankStep& step : steps_[index(rank)]) {
        for (; next < step.number; ++next) barrier_->wait();
        run_step(rank, chunk, step);
      }
      for (; next < num_steps_; ++next) barrier_->wait();
    }
  }

  void run_step(std::int64_t rank, std::int64_t chunk, const RankStep& step) {
    for (const Transfer& transfer : step.sends) {
      sg::Actor::create("message", hosts_[index(rank)],
                        [this, rank, chunk, &step, &transfer] { run_message(rank, chunk, step.number, transfer); });
    }
    for (std::size_t i = 0; i < step.num_senders; ++i) arrived_[place(rank, chunk, step.number)]->acquire();
    if (step.calculation_s > 0) sg::this_actor::execute(step.calculation_s * kFlopsPerSecond);
  }

  void run_message(std::int64_t from, std::int64_t chunk, std::int64_t step, const Transfer& transfer) {
    const std::vector<std::size_t> links = way(from, transfer.to);
    sg::this_actor::sleep_for(transfer.latency_s);
    // Bytes from one rank to another stay in order: those of a step chunk after chunk, those of a chunk step after
    // step.
    if (chunk > 0) connection(from, transfer.to, step, chunk - 1)->acquire();
    if (transfer.step_before >= 0) connection(from, transfer.to, transfer.step_before, chunk)->acquire();
    for (const std::size_t i : links) directions_[i].enter(from);
    sg::Comm::sendto(hosts_[index(from)], hosts_[index(transfer.to)], transfer.bytes);
    for (const std::size_t i : links) directions_[i].leave(from);
    for (int i = 0; i < 2; ++i) connection(from, transfer.to, step, chunk)->release();  // the next chunk, the next step
    arrived_[place(transfer.to, chunk, step)]->release();
  }

  /// Opens when the message of that chunk has arrived.
  sg::SemaphorePtr connection(std::int64_t from, std::int64_t to, std::int64_t step, std::int64_t chunk) {
    sg::SemaphorePtr& semaphore = connections_[{from, to, step, chunk}];
    if (!semaphore) semaphore = sg::Semaphore::create(0);
    return semaphore;
  }

  const Plan& plan_;
  const Topology& topology_;
  const SimulationOptions& options_;
  double size_floats_ = 0;
  ExpandedTree tree_;
  std::vector<Direction> directions_;
  std::vector<sg::Host*> hosts_;
  std::int64_t num_steps_ = 0;
  std::vector<std::vector<RankStep>> steps_;         // by rank
  std::vector<sg::SemaphorePtr> arrived_, started_;  // by place()
  std::map<std::array<std::int64_t, 4>, sg::SemaphorePtr> connections_;
  sg::BarrierPtr barrier_;
};

}  // namespace

double simgrid_seconds(const Plan& plan, const Topology& topology, double size_floats,
                       const SimulationOptions& options) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("simgrid: no pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("simgrid: no process");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const rlimit minute{60, 60};
    setrlimit(RLIMIT_CPU, &minute);
    const double seconds = Run(plan, topology, size_floats, options).seconds();
    const bool is_written = write(ends[1], &seconds, sizeof seconds) == static_cast<ssize_t>(sizeof seconds);
    _exit(is_written ? 0 : 1);
  }
  close(ends[1]);
  double seconds = 0;
  const bool is_read = read(ends[0], &seconds, sizeof seconds) == static_cast<ssize_t>(sizeof seconds);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!is_read)
    throw std::runtime_error("simgrid: the process ended without a result, status " + std::to_string(status));
  return seconds;
}

}  // namespace gar::test
