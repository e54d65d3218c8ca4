// What no plan of a collective on a tree can beat, and whether a plan is optimal in the paper's four senses.
//
// Latency: some rank must learn of the rank that is farthest away, so one longest path at least.
//
// Bandwidth: take any partition of the servers into k parts, each behind one link (subtrees, and possibly "everything
// outside a subtree"). Every element needs k - 1 transfers between parts to be summed and k - 1 to be spread, so the
// links carry at least 2 (k - 1) S in the direction out of the parts; the time T of the busiest obeys T * sum(1 /
// beta_i) >= 2 (k - 1) S. All servers as parts gives the classic 2 (N - 1) S / N. One link alone must carry S each way.
// The partition that maximises 2 (k - 1) / sum(1 / beta_i) is found exactly by Dinkelbach's method: for a guess q,
// maximise sum(2 - q / beta_i) over partitions, which a tree recursion over the distinct subtrees does; the maximum is
// below 2 once q is the best ratio. Complexity: O(distinct subtrees) per iteration, few iterations.
//
// Calculation (Theorem 1, for servers of different speed): an operation of fan-in f on s elements at server r costs at
// least (f - 1) s c_r with c_r = gamma_r + delta_r (N + 1) / (N - 1), because (f + 1) / (f - 1) falls with f <= N. All
// elements need N - 1 additions, so T >= (N - 1) S / sum(1 / c_r); equal servers give (N-1)/N gamma + (N+1)/N delta.
//
// ReduceScatter and AllGather: every rank ends or starts with one of N equal blocks, so a link with n ranks below it
// carries (N - n) / N of the vector one way (sums for the blocks outside, or those blocks) and n / N the other way. The
// busiest link says it all: added up over a partition of the servers these are the k - 1 transfers of every element. A
// ReduceScatter has all additions of the AllReduce, an AllGather none.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gar/errors.hpp"
#include "gar/model.hpp"
#include "model/link_loads.hpp"

namespace gar {

namespace {

/// Longest way from a node down to a server (node included), and longest path inside its subtree.
double longest_path(const Topology& topology) {
  std::vector<double> down(static_cast<std::size_t>(topology.num_nodes()), 0);
  double longest = 0;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const Node& n = topology.node(id);
    double first = 0;
    double second = 0;
    const auto offer = [&](double d) {
      second = std::max(second, std::min(first, d));
      first = std::max(first, d);
    };
    for (const ChildRun& run : n.children) {
      offer(down[static_cast<std::size_t>(run.node)]);
      if (run.count > 1) offer(down[static_cast<std::size_t>(run.node)]);
    }
    down[static_cast<std::size_t>(id)] = n.alpha + first;
    if (topology.num_children(id) > 1) longest = std::max(longest, n.alpha + first + second);
  }
  return longest;
}

struct Cut {
  double ratio = 0;  ///< seconds per float
  double parts = 0;
};

/// The best partition of the servers below `top`, plus (unless it is the root) all others as one part.
class CutSearch {
 public:
  CutSearch(const Topology& topology, NodeId top) : topology_(topology), top_(top) {}

  Cut best() {
    Cut cut;
    for (int iteration = 0; iteration < 60; ++iteration) {
      solve(cut.ratio);
      if (parts_ < 2 || speed_ <= 0) break;
      const double ratio = std::isinf(speed_) ? 0 : 2 * (parts_ - 1) / speed_;
      if (ratio <= cut.ratio * (1 + 1e-12)) break;
      cut.ratio = ratio;
      cut.parts = parts_;
    }
    return cut;
  }

 private:
  struct Value {
    double value = 0, parts = 0, speed = 0;
  };

  void solve(double q) {
    std::vector<Value> best(static_cast<std::size_t>(topology_.num_nodes()));
    for (NodeId id = 0; id <= top_; ++id) {
      const Node& n = topology_.node(id);
      Value split;
      for (const ChildRun& run : n.children) {
        const Value& c = best[static_cast<std::size_t>(run.node)];
        const auto count = static_cast<double>(run.count);
        split.value += count * c.value;
        split.parts += count * c.parts;
        split.speed += count * c.speed;
      }
      const double speed = n.uplink.beta > 0 ? 1 / n.uplink.beta : std::numeric_limits<double>::infinity();
      const Value whole{2 - (q > 0 ? q * speed : 0), 1, speed};
      const bool take_split = !n.is_server() && (id == top_ || split.value > whole.value);
      best[static_cast<std::size_t>(id)] = take_split ? split : whole;
    }
    const Value& result = best[static_cast<std::size_t>(top_)];
    parts_ = result.parts;
    speed_ = result.speed;
    if (top_ != topology_.root()) {
      const double beta = topology_.node(top_).uplink.beta;
      parts_ += 1;
      speed_ += beta > 0 ? 1 / beta : std::numeric_limits<double>::infinity();
    }
  }

  const Topology& topology_;
  NodeId top_;
  double parts_ = 0;
  double speed_ = 0;
};

}  // namespace

std::string LowerBound::binding() const {
  if (alpha >= bandwidth && alpha >= calculation) return "latency of the longest path";
  return bandwidth >= calculation ? "link time " + cut : "calculation";
}

namespace {

/// Seconds per float of the strongest cut for an AllReduce; says which one it is.
double all_reduce_cut(const Topology& topology, std::string& words) {
  const auto n = static_cast<double>(topology.num_servers());
  constexpr NodeId kMaxTops = 512;  // enough for any network whose racks are mostly alike; the root is always there
  double slope = 0;
  for (NodeId id = std::max(0, topology.num_nodes() - kMaxTops); id < topology.num_nodes(); ++id) {
    const Node& node = topology.node(id);
    if (node.is_server() || topology.num_servers(id) < 2) continue;
    if (id != topology.root() && topology.num_servers(id) == topology.num_servers()) continue;
    const Cut cut = CutSearch(topology, id).best();
    if (cut.ratio > slope) {
      slope = cut.ratio;
      words = cut.parts == n && id == topology.root() ? "of every server's own link"
              : id == topology.root()
                  ? fmt::format("of the links between {} parts of the network", cut.parts)
                  : fmt::format("of the links between {} parts of the network around a {}", cut.parts, node.name);
    }
  }
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    if (id == topology.root() || topology.num_servers(id) == topology.num_servers()) continue;
    if (topology.node(id).uplink.beta > slope) {
      slope = topology.node(id).uplink.beta;
      words = fmt::format("of the link above a {}", topology.node(id).name);
    }
  }
  return slope;
}

/// The same for a ReduceScatter or an AllGather, whose blocks are equal.
double half_cut(const Topology& topology, std::string& words) {
  const auto n = static_cast<double>(topology.num_servers());
  double slope = 0;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const auto below = static_cast<double>(topology.num_servers(id));
    if (id == topology.root() || below == n) continue;
    const double seconds = topology.node(id).uplink.beta * std::max(below, n - below) / n;
    if (seconds <= slope) continue;
    slope = seconds;
    words = fmt::format("of the link above a {}", topology.node(id).name);
  }
  return slope;
}

/// Seconds per float of all additions, shared by all servers.
double calculation_bound(const Topology& topology, ModelKind kind) {
  const auto n = static_cast<double>(topology.num_servers());
  std::vector<double> instances(static_cast<std::size_t>(topology.num_nodes()), 0);
  instances[static_cast<std::size_t>(topology.root())] = 1;
  double speed = 0;
  for (NodeId id = topology.num_nodes() - 1; id >= 0; --id) {
    const Node& node = topology.node(id);
    const double here = instances[static_cast<std::size_t>(id)];
    for (const ChildRun& run : node.children) {
      instances[static_cast<std::size_t>(run.node)] += here * static_cast<double>(run.count);
    }
    if (!node.is_server()) continue;
    const ServerParams server = known_to(kind, node.server);
    const double c = server.gamma + server.delta * (n + 1) / (n - 1);
    speed += c > 0 ? here / c : std::numeric_limits<double>::infinity();
  }
  return (n - 1) / speed;
}

}  // namespace

LowerBound lower_bound(const Topology& topology, double size_floats, Collective collective, ModelKind kind) {
  LowerBound bound;
  if (topology.num_servers() == 1) return bound;
  bound.alpha = longest_path(topology);
  const double slope =
      collective == Collective::kAllReduce ? all_reduce_cut(topology, bound.cut) : half_cut(topology, bound.cut);
  bound.bandwidth = slope * size_floats;
  if (collective != Collective::kAllGather) bound.calculation = calculation_bound(topology, kind) * size_floats;
  return bound;
}

Optimality optimality(const Plan& plan, const Topology& topology, IncastDegree degree) {
  Optimality out;
  const PlanIndex index(plan);
  const auto n = static_cast<double>(plan.num_ranks);
  const auto units = static_cast<double>(plan.num_units);
  out.num_steps = index.num_steps();
  for (std::int64_t r = 0; r < plan.num_ranks; ++r) {
    const RankProgram program = index.program(r);
    double sent = 0;
    double received = 0;
    double accesses = 0;
    for (const Step& step : program.steps) {
      for (const Message& m : step.sends) sent += static_cast<double>(m.end - m.begin) / units;
      for (const Message& m : step.recvs) received += static_cast<double>(m.end - m.begin) / units;
      accesses += calculation_of(step.recvs, plan.num_units).accesses;
    }
    out.max_traffic = std::max({out.max_traffic, sent, received});
    out.max_memory_access = std::max(out.max_memory_access, accesses);
  }
  const double tolerance = 1e-9;
  out.max_incast_excess = PricedPlan(plan, topology, {ModelKind::kGenModel, degree}).max_incast_excess();
  out.bandwidth = out.max_traffic <= 2 * (n - 1) / n + tolerance;
  out.latency = out.num_steps <= 2;
  out.incast = out.max_incast_excess == 0;
  out.memory_access = plan.num_ranks == 1 || out.max_memory_access <= (n + 1) / n + tolerance;
  return out;
}

}  // namespace gar
