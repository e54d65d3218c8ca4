// GenModel straight from its definition, slowly: the oracle for the library's evaluators.
//
// Every message of every step walks over the nodes between its two servers. A link direction keeps the set of its
// senders. A step costs the longest walk, the busiest link direction and the slowest server, and handling messages at
// the server that is slowest at sending them and at the one that is slowest at receiving them; steps follow one
// another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gar/model.hpp"
#include "gar/plan.hpp"
#include "gar/topology.hpp"

namespace gar::test {

class NaiveModel {
 public:
  NaiveModel(const Topology& topology, const ModelOptions& options) : topology_(topology), options_(options) {
    add_instances(topology.root(), -1);
  }

  Terms cost(const Plan& plan, double size_floats) const {
    const PlanIndex index(plan);
    std::map<std::int64_t, std::map<std::int64_t, std::vector<Message>>> received;  // step, rank
    for (std::int64_t r = 0; r < plan.num_ranks; ++r) {
      for (const Step& step : index.program(r).steps) received[step.number][r] = step.recvs;
    }
    const double floats_per_unit = size_floats / static_cast<double>(plan.num_units);
    Terms sum;
    for (const auto& [number, by_rank] : received) sum += step_cost(by_rank, floats_per_unit);
    return sum;
  }

 private:
  struct Instance {
    int parent;
    const Node* node;
  };
  struct Load {
    std::set<std::int64_t> senders;
    double floats = 0;
  };
  using Receives = std::map<std::int64_t, std::vector<Message>>;

  void add_instances(NodeId id, int parent) {
    const Node& node = topology_.node(id);
    const int self = static_cast<int>(instances_.size());
    instances_.push_back({parent, &node});
    if (node.is_server()) servers_.push_back(self);
    for (const ChildRun& run : node.children) {
      for (std::int64_t i = 0; i < run.count; ++i) add_instances(run.node, self);
    }
  }

  std::vector<int> way_to_root(std::int64_t rank) const {
    std::vector<int> way;
    for (int i = servers_[static_cast<std::size_t>(rank)]; i >= 0; i = at(i).parent) way.push_back(i);
    return way;
  }
  const Instance& at(int i) const { return instances_[static_cast<std::size_t>(i)]; }

  Terms step_cost(const Receives& by_rank, double floats_per_unit) const {
    Terms worst_link;
    Terms worst_server;
    double longest = 0;
    std::map<std::pair<int, bool>, Load> loads;                // link of an instance, downwards
    std::map<std::int64_t, std::set<std::int64_t>> receivers;  // of every sender
    std::map<std::int64_t, std::set<std::int64_t>> senders;    // of every receiver
    for (const auto& [to, recvs] : by_rank) {
      for (const Message& m : recvs) {
        receivers[m.peer].insert(to);
        senders[to].insert(m.peer);
        std::vector<int> up = way_to_root(m.peer);
        std::vector<int> down = way_to_root(to);
        int top = -1;
        while (!up.empty() && !down.empty() && up.back() == down.back()) {
          top = up.back();
          up.pop_back();
          down.pop_back();
        }
        double latency = at(top).node->alpha;
        for (const bool is_down : {false, true}) {
          for (const int i : is_down ? down : up) {
            latency += at(i).node->alpha;
            Load& load = loads[{i, is_down}];
            load.senders.insert(m.peer);
            load.floats += static_cast<double>(m.end - m.begin) * floats_per_unit;
          }
        }
        longest = std::max(longest, latency);
      }
      const Terms t = calculation(recvs, at(servers_[static_cast<std::size_t>(to)]).node->server, floats_per_unit);
      if (t.total() > worst_server.total()) worst_server = t;
    }
    for (const auto& [key, load] : loads) {
      const LinkParams& link = at(key.first).node->uplink;
      const auto w = static_cast<double>(load.senders.size()) + (options_.degree == IncastDegree::kParticipants);
      Terms t;
      t.beta = load.floats * link.beta;
      if (options_.kind != ModelKind::kAbc) {
        t.epsilon = load.floats * std::max(w - link.incast_threshold, 0.0) * link.epsilon;
      }
      if (t.total() > worst_link.total()) worst_link = t;
    }
    Terms sum = worst_link + worst_server;
    sum.alpha = longest;
    if (options_.kind == ModelKind::kGenModel) sum.mu = slowest_handling(receivers) + slowest_handling(senders);
    return sum;
  }

  double slowest_handling(const std::map<std::int64_t, std::set<std::int64_t>>& peers) const {
    double slowest = 0;
    for (const auto& [rank, others] : peers) {
      const double mu = at(servers_[static_cast<std::size_t>(rank)]).node->server.mu;
      slowest = std::max(slowest, static_cast<double>(others.size()) * mu);
    }
    return slowest;
  }

  // Between two neighbouring ends of received intervals the operands are the same.
  Terms calculation(const std::vector<Message>& recvs, const ServerParams& server, double floats_per_unit) const {
    std::set<std::int64_t> ends;
    for (const Message& m : recvs) ends.insert({m.begin, m.end});
    Terms sum;
    for (auto it = ends.begin(); it != ends.end() && std::next(it) != ends.end(); ++it) {
      double operands = 0;
      bool with_own = false;
      for (const Message& m : recvs) {
        if (m.begin > *it || m.end <= *it) continue;
        operands += 1;
        with_own = with_own || m.accumulate;
      }
      operands += with_own ? 1 : 0;
      if (operands < 2) continue;
      const double floats = static_cast<double>(*std::next(it) - *it) * floats_per_unit;
      sum.gamma += (operands - 1) * floats * server.gamma;
      if (options_.kind != ModelKind::kAbc) sum.delta += (operands + 1) * floats * server.delta;
    }
    return sum;
  }

  const Topology& topology_;
  ModelOptions options_;
  std::vector<Instance> instances_;
  std::vector<int> servers_;
};

}  // namespace gar::test
