// Seeded random inputs of the simulator: networks, plans, and what is wrong with servers and links.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/plan.hpp"
#include "gar/planner.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"
#include "support/explicit_plan.hpp"
#include "support/plans.hpp"

namespace gar::test {

struct SimulationCase {
  Topology topology;
  Plan plan;
  double size = 0;
  SimulationOptions options;

  std::string words() const {
    std::string s =
        fmt::format("{} ({} steps at rank 0, {} chunks{}) on {} servers, height {}, {} floats{}{}{}", plan.algorithm,
                    PlanIndex(plan).program(0).steps.size(), plan.num_chunks, plan.is_explicit() ? ", explicit" : "",
                    topology.num_servers(), topology.height(topology.root()), size, options.barrier ? ", barrier" : "",
                    options.model == ModelKind::kAbc     ? ", abc"
                    : options.model == ModelKind::kPaper ? ", paper"
                                                         : "",
                    options.degree == IncastDegree::kParticipants ? ", participants" : "");
    for (const SlowServer& x : options.slow_servers) s += fmt::format(", rank {} slow {}", x.rank, x.factor);
    for (const LinkCondition& x : options.links) {
      s += fmt::format(", link {}@{}{}{} capacity {} background {}", x.node.rank, x.node.depth, x.up ? " up" : "",
                       x.down ? " down" : "", x.capacity, x.background);
    }
    return s;
  }
};

inline double unit(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1.0p-53; }
inline bool chance(std::mt19937_64& random, double p) { return unit(random) < p; }
inline double log_uniform(std::mt19937_64& random, double low, double high) {
  return low * std::pow(high / low, unit(random));
}

/// Every stored node after `change`, as a network of its own.
template <class F>
Topology changed(const Topology& topology, F change) {
  std::vector<Node> nodes;
  for (NodeId i = 0; i < topology.num_nodes(); ++i) {
    nodes.push_back(topology.node(i));
    change(nodes.back());
  }
  return Topology(topology.name(), std::move(nodes), topology.root());
}

/// The same network with incast that few senders bring about, now and then with parameters that are 0.
inline Topology with_strong_incast(std::mt19937_64& random, const Topology& topology) {
  const bool has_zeros = chance(random, 0.2);
  return changed(topology, [&](Node& node) {
    node.uplink.incast_threshold = static_cast<double>(uniform(random, 0, 4));
    node.uplink.epsilon = node.uplink.beta * log_uniform(random, 0.01, 3);
    if (!has_zeros) return;
    if (chance(random, 0.3)) node.alpha = 0;
    if (chance(random, 0.3)) node.uplink.epsilon = 0;
    if (chance(random, 0.3)) {
      node.uplink.beta = 0;  // then incast must not come and go: what is left of a flow would take no time
      (chance(random, 0.5) ? node.uplink.epsilon : node.uplink.incast_threshold) = 0;
    }
    if (chance(random, 0.3)) node.server.gamma = node.server.delta = 0;
    if (chance(random, 0.3)) node.server.mu = 0;
  });
}

/// Matched messages between random ranks: no collective at all, but anything may wait for anything. Some steps repeat
/// the one before, some numbers are left out.
inline Plan random_messages(std::mt19937_64& random, std::int64_t num_ranks) {
  constexpr std::int64_t kSlots = 6;
  constexpr std::int64_t kUnitsPerSlot = 5;
  std::vector<test::Transfer> transfers;
  std::vector<test::Transfer> last;
  std::int64_t number = 0;
  for (std::int64_t left = uniform(random, 1, 7); left > 0; --left) {
    if (last.empty() || chance(random, 0.6)) {
      last.clear();
      std::set<std::pair<std::int64_t, std::int64_t>> accumulating;  // receiver, slot
      for (std::int64_t to = 0; to < num_ranks; ++to) {
        for (std::int64_t slot = 0; slot < kSlots; ++slot) {
          if (chance(random, 0.5)) accumulating.insert({to, slot});
        }
      }
      std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> used;  // from, to, slot
      for (std::int64_t i = uniform(random, 1, 2 * num_ranks); i > 0; --i) {
        const std::int64_t from = uniform(random, 0, num_ranks - 1);
        const std::int64_t to = uniform(random, 0, num_ranks - 1);
        const std::int64_t slot = uniform(random, 0, kSlots - 1);
        if (from == to || !used.insert({from, to, slot}).second) continue;
        const std::int64_t begin = slot * kUnitsPerSlot;
        last.push_back({0, static_cast<std::int32_t>(from), static_cast<std::int32_t>(to), begin,
                        begin + uniform(random, 1, kUnitsPerSlot), accumulating.contains({to, slot})});
      }
    }
    for (test::Transfer& t : last) t.step = number;
    transfers.insert(transfers.end(), last.begin(), last.end());
    number += uniform(random, 1, 3) / 2 + 1;
  }
  Plan plan = test::plan_of(num_ranks, kSlots * kUnitsPerSlot, transfers);
  plan.algorithm = "random messages";
  return plan;
}

inline Plan random_classic_plan(std::mt19937_64& random, std::int64_t n) {
  const std::vector<Plan> plans = plans_of_all_builders(random, n, 2);
  return plans[static_cast<std::size_t>(random() % plans.size())];
}

inline Plan random_plan(std::mt19937_64& random, const Topology& topology, double size) {
  const std::int64_t n = topology.num_servers();
  Plan plan;
  switch (random() % 8) {
    case 0:
      plan = gentree(topology, size).plan;
      break;
    case 1:
      plan = gentree(topology, size, {false, {}}).plan;
      break;
    case 2:
      plan = gentree_plus(topology, size).plan;
      break;
    case 3:
      plan = random_messages(random, n);
      break;
    default:
      plan = random_classic_plan(random, n);
  }
  if (has_halves(plan) && plan.num_units % n == 0 && chance(random, 0.3)) {
    plan = chance(random, 0.5) ? as_reduce_scatter(plan) : as_all_gather(plan);
  }
  if (!plan.is_explicit() && chance(random, 0.15)) plan = make_explicit(plan);
  if (chance(random, 0.5)) plan.num_chunks = uniform(random, 1, 5);
  plan.num_chunks = std::min<std::int64_t>(plan.num_chunks, 6);
  return plan;
}

inline int depth_of(const Topology& topology, std::int64_t rank) {
  int depth = 0;
  std::int64_t server = rank;
  for (NodeId id = topology.root(); !topology.node(id).is_server(); ++depth) {
    const ChildPosition child = topology.child_at(id, server);
    server -= child.first_server;
    id = child.node;
  }
  return depth;
}

/// At most `most` slow servers and links that are slow or shared with others; none of them twice.
inline void add_conditions(std::mt19937_64& random, const Topology& topology, std::int64_t most,
                           SimulationOptions& options) {
  const std::int64_t n = topology.num_servers();
  std::set<std::int64_t> slow;
  for (std::int64_t i = uniform(random, 0, most); i > 0; --i) slow.insert(uniform(random, 0, n - 1));
  for (const std::int64_t rank : slow) options.slow_servers.push_back({rank, log_uniform(random, 0.5, 8)});
  std::set<std::string> links;
  for (std::int64_t i = uniform(random, 0, most); i > 0; --i) {
    LinkCondition c;
    c.node.rank = uniform(random, 0, n - 1);
    c.node.depth = static_cast<int>(uniform(random, 1, depth_of(topology, c.node.rank)));
    if (!links.insert(topology.instance_name(c.node.rank, c.node.depth)).second) continue;
    const std::int64_t directions = uniform(random, 0, 2);
    c.up = directions != 0;
    c.down = directions != 1;
    if (chance(random, 0.7)) c.capacity = log_uniform(random, 0.05, 2);
    if (chance(random, 0.5)) c.background = uniform(random, 1, 7) / 10.0;
    options.links.push_back(c);
  }
}

inline void add_model(std::mt19937_64& random, SimulationOptions& options) {
  options.barrier = chance(random, 0.25);
  if (chance(random, 0.2)) options.degree = IncastDegree::kParticipants;
  if (chance(random, 0.1)) options.model = chance(random, 0.5) ? ModelKind::kAbc : ModelKind::kPaper;
}

}  // namespace gar::test
