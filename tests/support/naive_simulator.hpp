// The simulator straight from its definition, slowly: the oracle for the library's engines.
//
// One loop over moments. At every moment everything that can start does, the max-min fair rates of all flows are found
// from nothing by water filling, and time goes on to the first thing that ends. No jitter, no failed links.
//
// Chunks: a rank starts a step of a chunk when it has finished the chunk's step before and started the same step of the
// chunk before. The floats of a message wait until those that the rank has sent to the same rank before are there: in
// the same step of the chunk before, and in the steps before of the same chunk.
//
// Messages: a server is at work for mu on each of a step's messages before all of them leave, and for mu on each that
// it has received, when all of them are there, before it calculates. What it is at work on at once shares it equally.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "gar/plan.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"
#include "support/water_filling.hpp"

namespace gar::test {

struct NaiveLink {
  double busy_seconds = 0;
  double incast_seconds = 0;
  double floats = 0;
  std::int64_t max_senders = 0;
};
struct NaiveStep {
  std::int64_t rank = 0;
  std::int64_t chunk = 0;
  std::int64_t number = 0;
  double start = 0;
  double received = 0;
  double done = 0;
};
struct NaiveFlow {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t chunk = 0;
  std::int64_t number = 0;
  double start = 0;
  double flowing = 0;
  double end = 0;
  double floats = 0;
};
struct NaiveSimulation {
  double seconds = 0;
  std::vector<NaiveLink> links;  ///< NaiveTree::link
  std::vector<NaiveStep> steps;
  std::vector<NaiveFlow> flows;
};

/// Every node instance on its own.
class NaiveTree {
 public:
  explicit NaiveTree(const Topology& topology) { add(topology, topology.root(), -1, 0); }

  struct Instance {
    int parent;
    int depth;
    const Node* node;
  };
  const Instance& at(int i) const { return instances_[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(instances_.size()); }
  std::int64_t num_ranks() const { return static_cast<std::int64_t>(servers_.size()); }
  const Node& server(std::int64_t rank) const { return *at(servers_[static_cast<std::size_t>(rank)]).node; }

  /// Instances from a server up to the root.
  std::vector<int> way_to_root(std::int64_t rank) const {
    std::vector<int> way;
    for (int i = servers_[static_cast<std::size_t>(rank)]; i >= 0; i = at(i).parent) way.push_back(i);
    return way;
  }
  int instance(const NodePlace& place) const {
    for (const int i : way_to_root(place.rank)) {
      if (at(i).depth == place.depth) return i;
    }
    throw std::logic_error("no such place");
  }
  static std::size_t link(int instance, bool is_down) { return 2 * static_cast<std::size_t>(instance) + is_down; }
  /// Links from one server to another.
  std::vector<std::size_t> path(std::int64_t from, std::int64_t to) const {
    std::vector<int> up = way_to_root(from);
    std::vector<int> down = way_to_root(to);
    while (!up.empty() && !down.empty() && up.back() == down.back()) {
      up.pop_back();
      down.pop_back();
    }
    std::vector<std::size_t> links;
    for (const int i : up) links.push_back(link(i, false));
    for (const int i : down) links.push_back(link(i, true));
    return links;
  }

 private:
  void add(const Topology& topology, NodeId id, int parent, int depth) {
    const Node& node = topology.node(id);
    const int self = size();
    instances_.push_back({parent, depth, &node});
    if (node.is_server()) servers_.push_back(self);
    for (const ChildRun& run : node.children) {
      for (std::int64_t i = 0; i < run.count; ++i) add(topology, run.node, self, depth + 1);
    }
  }

  std::vector<Instance> instances_;
  std::vector<int> servers_;
};

class NaiveSimulator {
 public:
  NaiveSimulator(const Plan& plan, const Topology& topology, double size_floats, const SimulationOptions& options)
      : topology_(topology), options_(options), tree_(topology) {
    const auto num_links = 2 * static_cast<std::size_t>(tree_.size());
    out_.links.resize(num_links);
    senders_.resize(num_links);
    condition_.resize(num_links);
    for (const LinkCondition& c : options.links) {
      const int i = tree_.instance(c.node);
      if (c.up) condition_[NaiveTree::link(i, false)] = c;
      if (c.down) condition_[NaiveTree::link(i, true)] = c;
    }
    const double floats_per_unit =
        size_floats / static_cast<double>(plan.num_chunks) / static_cast<double>(plan.num_units);
    const PlanIndex index(plan);
    for (std::int64_t rank = 0; rank < plan.num_ranks; ++rank) {
      for (std::int64_t chunk = 0; chunk < plan.num_chunks; ++chunk) {
        add_tasks(index.program(rank), rank, chunk, floats_per_unit);
      }
    }
  }

  NaiveSimulation run() {
    settle();
    while (num_done_ < tasks_.size()) {
      find_rates();
      pass_time();
      settle();
    }
    out_.seconds = now_;
    for (const Task& t : tasks_) out_.steps.push_back(t.times);
    return std::move(out_);
  }

 private:
  static constexpr double kForever = std::numeric_limits<double>::infinity();
  static constexpr double kSameMoment = 1e-13;  // relative: ends as close as this are one moment

  // A step of a chunk at a rank.
  struct Task {
    NaiveStep times;
    int before = -1;                          // the rank's step before
    int chunk_before = -1;                    // the same step of the chunk before
    std::map<std::int64_t, double> messages;  // floats by receiver
    std::size_t num_awaited = 0;              // messages that have not arrived
    double send_work = 0;                     // seconds of handling its messages left, before they leave
    double work = 0;                          // seconds of handling what it has received, and of calculation, left
    bool is_started = false;
    bool is_sent = false;
    bool is_calculating = false;
    bool is_done = false;
    double due_in = 0;
    bool is_at_work() const { return is_started && !is_done && (!is_sent || is_calculating); }
    double& work_left() { return is_sent ? work : send_work; }
  };
  struct Flow {
    NaiveFlow times;
    std::vector<std::size_t> links;
    bool has_latency_behind = false;
    bool is_flowing = false;
    double left = 0;  // floats
    double rate = 0;
    double due_in = 0;
  };
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // rank, chunk, number

  void add_tasks(const RankProgram& program, std::int64_t rank, std::int64_t chunk, double floats_per_unit) {
    int before = -1;
    for (const Step& step : program.steps) {
      Task t;
      t.times = {rank, chunk, step.number};
      t.before = before;
      if (chunk > 0) t.chunk_before = task_of_.at({rank, chunk - 1, step.number});
      for (const Message& m : step.sends) {
        t.messages[m.peer] += static_cast<double>(m.end - m.begin) * floats_per_unit;
      }
      std::set<std::int64_t> peers;
      for (const Message& m : step.recvs) peers.insert(m.peer);
      t.num_awaited = peers.size();
      const ServerParams& server = tree_.server(rank).server;
      const double mu = options_.model == ModelKind::kGenModel ? server.mu : 0;
      t.work = calculation(step.recvs, server, floats_per_unit) + static_cast<double>(peers.size()) * mu;
      t.send_work = static_cast<double>(t.messages.size()) * mu;
      for (const SlowServer& s : options_.slow_servers) {
        if (s.rank != rank) continue;
        t.work *= s.factor;
        t.send_work *= s.factor;
      }
      before = static_cast<int>(tasks_.size());
      task_of_[{rank, chunk, step.number}] = before;
      tasks_.push_back(t);
    }
  }

  // Between two neighbouring ends of received intervals the operands are the same.
  double calculation(const std::vector<Message>& recvs, const ServerParams& server, double floats_per_unit) const {
    std::set<std::int64_t> ends;
    for (const Message& m : recvs) ends.insert({m.begin, m.end});
    double seconds = 0;
    for (auto it = ends.begin(); it != ends.end() && std::next(it) != ends.end(); ++it) {
      double f = 0;
      bool with_own = false;
      for (const Message& m : recvs) {
        if (m.begin > *it || m.end <= *it) continue;
        f += 1;
        with_own = with_own || m.accumulate;
      }
      if (with_own) f += 1;
      if (f < 2) continue;
      const double s = static_cast<double>(*std::next(it) - *it) * floats_per_unit;
      seconds += (f - 1) * s * server.gamma;
      if (options_.model != ModelKind::kAbc) seconds += (f + 1) * s * server.delta;
    }
    return seconds;
  }

  Task& task(int i) { return tasks_[static_cast<std::size_t>(i)]; }

  bool may_start(const Task& t, const std::pair<std::int64_t, std::int64_t>& first_open) {
    if (options_.barrier) return std::pair(t.times.chunk, t.times.number) == first_open;
    return (t.before < 0 || task(t.before).is_done) && (t.chunk_before < 0 || task(t.chunk_before).is_started);
  }

  // Everything that happens at this moment and takes no time.
  void settle() {
    bool changed = true;
    while (changed) {
      changed = start_flows();
      std::pair first_open(std::numeric_limits<std::int64_t>::max(), std::int64_t{0});  // chunk, number
      for (const Task& t : tasks_) {
        if (!t.is_done) first_open = std::min(first_open, std::pair(t.times.chunk, t.times.number));
      }
      for (Task& t : tasks_) {
        if (t.is_done) continue;
        if (!t.is_started && may_start(t, first_open)) {
          t.is_started = true;
          t.times.start = now_;
          changed = true;
        }
        if (t.is_started && !t.is_sent && t.send_work <= 0) {
          send(t);
          changed = true;
        }
        if (t.is_sent && !t.is_calculating && t.num_awaited == 0) {
          t.is_calculating = true;
          t.times.received = now_;
          changed = true;
        }
        if (t.is_calculating && t.work <= 0) {
          t.is_done = true;
          t.times.done = now_;
          ++num_done_;
          changed = true;
        }
      }
    }
  }

  void send(Task& t) {
    t.is_sent = true;
    for (const auto& [to, floats] : t.messages) {
      Flow f;
      f.times = {t.times.rank, to, t.times.chunk, t.times.number, now_, 0, 0, floats};
      f.times.flowing = now_ + topology_.path_latency(t.times.rank, to);
      f.links = tree_.path(t.times.rank, to);
      f.left = floats;
      flows_.push_back(f);
    }
  }

  // Messages whose floats begin to flow, or that have none and arrive. True when there were any.
  bool start_flows() {
    std::vector<Flow> flows;
    std::swap(flows, flows_);
    bool changed = false;
    for (Flow& f : flows) {
      const bool starts = f.has_latency_behind && !f.is_flowing && !is_behind_another(f.times, flows);
      if (starts) {
        f.is_flowing = changed = true;
        f.times.flowing = std::max(f.times.flowing, now_);
      }
      if (starts && f.left <= 0) {
        arrive(f);
      } else {
        flows_.push_back(f);
      }
    }
    return changed;
  }
  static bool is_behind_another(const NaiveFlow& f, const std::vector<Flow>& flows) {
    return std::any_of(flows.begin(), flows.end(), [&](const Flow& other) {
      const NaiveFlow& o = other.times;
      if (o.from != f.from || o.to != f.to) return false;
      return o.number == f.number ? o.chunk == f.chunk - 1 : o.chunk == f.chunk && o.number < f.number;
    });
  }

  // Of a link direction that some flow is on: seconds per float without incast, and what incast adds.
  std::pair<double, double> cost_of_float(std::size_t link) const {
    const LinkParams& p = tree_.at(static_cast<int>(link / 2)).node->uplink;
    if (options_.model == ModelKind::kAbc) return {p.beta, 0};
    auto w = static_cast<double>(senders_[link].size());
    if (options_.degree == IncastDegree::kParticipants) w += 1;
    if (condition_[link].background > 0) w += 1;
    return {p.beta, std::max(w - p.incast_threshold, 0.0) * p.epsilon};
  }

  void find_rates() {
    for (auto& s : senders_) s.clear();
    std::vector<Flow*> flowing;
    std::vector<std::vector<Crossed>> paths;
    for (Flow& f : flows_) {
      if (!f.is_flowing) continue;
      flowing.push_back(&f);
      paths.emplace_back();
      for (const std::size_t l : f.links) {
        senders_[l].insert(f.times.from);
        paths.back().push_back({l, 1});
      }
    }
    std::vector<double> capacities;
    for (std::size_t l = 0; l < senders_.size(); ++l) {
      const auto [beta, incast] = cost_of_float(l);
      const double share = condition_[l].capacity * (1 - condition_[l].background);
      capacities.push_back(beta + incast == 0 ? kForever : share / (beta + incast));
    }
    const std::vector<double> rates = water_filling(capacities, paths);
    for (std::size_t i = 0; i < flowing.size(); ++i) flowing[i]->rate = rates[i];
  }

  // Goes on to the next moment.
  void pass_time() {
    double step = kForever;
    for (Flow& f : flows_) {
      f.due_in = f.is_flowing ? f.left / f.rate : f.has_latency_behind ? kForever : f.times.flowing - now_;
      step = std::min(step, f.due_in);
    }
    std::map<std::int64_t, double> at_once;  // what a server is at work on
    for (const Task& t : tasks_) {
      if (t.is_at_work()) at_once[t.times.rank] += 1;
    }
    for (Task& t : tasks_) {
      if (!t.is_at_work()) continue;
      t.due_in = t.work_left() * at_once[t.times.rank];
      step = std::min(step, t.due_in);
    }
    if (step == kForever) throw std::logic_error("nothing can go on");
    count_links(step);
    now_ += step;
    const double due = step + kSameMoment * now_;
    for (Task& t : tasks_) {
      if (t.is_at_work()) t.work_left() = t.due_in <= due ? 0 : t.work_left() - step / at_once[t.times.rank];
    }
    std::vector<Flow> flows;
    std::swap(flows, flows_);
    for (Flow& f : flows) {
      if (f.is_flowing && f.due_in <= due) {
        arrive(f);
        continue;
      }
      if (f.is_flowing) f.left -= f.rate * step;
      if (f.due_in <= due) f.has_latency_behind = true;
      flows_.push_back(f);
    }
  }

  void count_links(double step) {
    for (std::size_t l = 0; l < senders_.size(); ++l) {
      if (senders_[l].empty()) continue;
      NaiveLink& link = out_.links[l];
      const auto [beta, incast] = cost_of_float(l);
      link.busy_seconds += step;
      if (incast > 0) link.incast_seconds += step * incast / (beta + incast);
      link.max_senders = std::max(link.max_senders, static_cast<std::int64_t>(senders_[l].size()));
    }
  }

  void arrive(Flow& f) {
    f.times.end = now_;
    for (const std::size_t l : f.links) out_.links[l].floats += f.times.floats;
    out_.flows.push_back(f.times);
    task(task_of_.at({f.times.to, f.times.chunk, f.times.number})).num_awaited -= 1;
  }

  const Topology& topology_;
  SimulationOptions options_;
  NaiveTree tree_;
  std::vector<LinkCondition> condition_;  // per link direction
  std::vector<std::set<std::int64_t>> senders_;
  std::vector<Task> tasks_;
  std::map<Key, int> task_of_;
  std::vector<Flow> flows_;  // under way
  std::size_t num_done_ = 0;
  double now_ = 0;
  NaiveSimulation out_;
};

inline NaiveSimulation simulate_naively(const Plan& plan, const Topology& topology, double size_floats,
                                        const SimulationOptions& options = {}) {
  return NaiveSimulator(plan, topology, size_floats, options).run();
}

}  // namespace gar::test
