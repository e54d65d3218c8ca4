// An observation as coefficients of the model's parameters.
//
// GenModel is linear in alpha, beta, epsilon, gamma, delta and mu once it is known which link of a stage is busiest and
// where incast begins. So a plan is priced on probes of the network in which all parameters but those of one level are
// 0 and that one is 1: what comes out is how often the parameter is paid. Which level binds in a stage depends on the
// parameters and is decided later, when there are some.
#include "fit/features.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/model.hpp"

namespace gar {

namespace {

/// Between links with equal load, the one with more senders counts; little enough to change no other comparison.
constexpr double kTie = 1e-9;

struct ParameterProbe {
  int alpha_level = -1;
  int link_level = -1;
  bool has_calculation = false;
  bool has_handling = false;
  bool has_links = false;
};

/// The topology with unit parameters in one place; links that are slower than others of their level keep that.
Topology probe_topology(const Topology& shape, const ParameterProbe& probe) {
  double fastest = std::numeric_limits<double>::infinity();
  for (NodeId id = 0; id < shape.num_nodes(); ++id) {
    if (id != shape.root() && shape.height(id) == probe.link_level)
      fastest = std::min(fastest, shape.node(id).uplink.beta);
  }
  std::vector<Node> nodes;
  for (NodeId id = 0; id < shape.num_nodes(); ++id) {
    Node node = shape.node(id);
    const int height = shape.height(id);
    node.alpha = probe.alpha_level == 0 && height == 0                      ? 0.5
                 : probe.alpha_level > 0 && height == probe.alpha_level + 1 ? 1.0
                                                                            : 0.0;
    const double slower = probe.has_links && fastest > 0 ? node.uplink.beta / fastest : 1.0;
    node.uplink = {};
    if (probe.link_level == height) node.uplink = {.beta = slower, .epsilon = kTie};
    node.server = {};
    if (probe.has_calculation) node.server = {.gamma = 1, .delta = 1};
    if (probe.has_handling) node.server = {.mu = 1};
    nodes.push_back(std::move(node));
  }
  return {shape.name(), std::move(nodes), shape.root()};
}

Plan plan_of(const Observation& observation) {
  if (observation.plan) return *observation.plan;
  if (is_tree_planner(observation.algorithm)) {
    throw InvalidArgument(
        fmt::format("'{}' is planned for a network and no measurement by itself; expected algorithms "
                    "such as ring, rhd, cps and hcps:4x3",
                    to_string(observation.algorithm)));
  }
  const auto num_ranks = static_cast<std::int64_t>(observation.servers.size());
  return as_collective(build_plan(observation.algorithm, num_ranks), observation.collective);
}

void add_plan(const Observation& observation, const Place& place, Features& out) {
  const Topology& topology = place.topology;
  const Plan plan = plan_of(observation);
  const double size = observation.size_floats;
  const int num_levels = topology.height(topology.root());
  ModelOptions options;
  options.work = place.work;
  for (int level = 0; level < num_levels; ++level) {
    ParameterProbe probe;
    probe.alpha_level = level;
    const Topology latencies = place_ranks(probe_topology(topology, probe), observation.servers);
    out.alphas[static_cast<std::size_t>(level)] = PricedPlan(plan, latencies, options).cost(0).alpha;
    probe = {};
    probe.link_level = level;
    probe.has_links = place.has_links;
    const PricedPlan links(plan, place_ranks(probe_topology(topology, probe), observation.servers), options);
    const std::vector<StageCost> stages = links.critical_stages(1);
    out.stages.resize(std::max(out.stages.size(), stages.size()));
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (stages[s].slope.beta <= 0) continue;
      out.stages[s].push_back({level, size * stages[s].slope.beta, static_cast<double>(stages[s].senders)});
    }
  }
  ParameterProbe probe;
  probe.has_calculation = true;
  const Topology servers = place_ranks(probe_topology(topology, probe), observation.servers);
  const Terms calculation = PricedPlan(plan, servers, options).cost(1);
  out.adds = size * calculation.gamma;
  out.accesses = size * calculation.delta;
  probe = {};
  probe.has_handling = true;
  const Topology handlers = place_ranks(probe_topology(topology, probe), observation.servers);
  out.handled = PricedPlan(plan, handlers, options).cost(0).mu;
}

/// All but the first server send to the first one.
void add_gather(const Observation& observation, const Topology& topology, Features& out) {
  const std::int64_t root = observation.servers.front();
  out.stages.resize(1);
  int top = 0;
  for (int level = 0; level < static_cast<int>(out.alphas.size()); ++level) {
    std::map<std::int64_t, double> senders_of;  // by the first server below the node at this height
    double outside = 0;
    const auto node_at = [&](std::int64_t server) {
      NodeId id = topology.root();
      std::int64_t first = 0;
      while (topology.height(id) > level) {
        const ChildPosition child = topology.child_at(id, server - first);
        first += child.first_server;
        id = child.node;
      }
      return first;
    };
    const std::int64_t own = node_at(root);
    for (const std::int64_t server : observation.servers) {
      if (server == root) continue;
      const std::int64_t other = node_at(server);
      if (other == own) continue;
      ++outside;
      ++senders_of[other];
    }
    if (outside == 0) continue;
    top = level;
    out.stages[0].push_back({level, outside * observation.size_floats, outside});
    for (const auto& [first, senders] : senders_of) {
      if (level > 0) out.stages[0].push_back({level, senders * observation.size_floats, senders});
    }
  }
  for (int level = 0; level <= top; ++level)
    out.alphas[static_cast<std::size_t>(level)] = level == top || level == 0 ? 1 : 2;
  out.handled = static_cast<double>(observation.servers.size());  // one at every sender, then all of them at the first
}

/// Participants below the fullest lowest switch.
std::int64_t neighbours(const Observation& observation, const Topology& topology) {
  std::map<std::int64_t, std::int64_t> count;
  for (const std::int64_t server : observation.servers) {
    NodeId id = topology.root();
    std::int64_t first = 0;
    while (topology.height(id) > 1) {
      const ChildPosition child = topology.child_at(id, server - first);
      first += child.first_server;
      id = child.node;
    }
    ++count[first];
  }
  std::int64_t most = 1;
  for (const auto& [first, n] : count) most = std::max(most, n);
  return most;
}

void check(const Observation& observation, const Topology& topology) {
  const auto fail = [&](const std::string& what) {
    throw InvalidArgument(fmt::format("{}: {}", describe(observation), what));
  };
  if (observation.servers.empty()) fail("no servers; expected at least one");
  for (std::size_t i = 0; i < observation.servers.size(); ++i) {
    const std::int64_t server = observation.servers[i];
    if (server < 0 || server >= topology.num_servers())
      fail(fmt::format("server {}: expected 0 to {}", server, topology.num_servers() - 1));
    if (i > 0 && observation.servers[i - 1] >= server) fail("servers must ascend");
  }
  if (observation.kind != ObservationKind::kReduction && observation.servers.size() < 2)
    fail("one server alone; expected at least two");
  if (!(observation.size_floats > 0 && observation.size_floats <= kMaxFloats))
    fail(fmt::format("expected sizes above 0, up to {:g} floats", kMaxFloats));
  if (observation.kind == ObservationKind::kReduction && observation.fan_in < 2) fail("fan_in must be at least 2");
}

/// What one half of an AllReduce moves by itself where operands are read in place.
void scale_halves(Collective collective, Features& out) {
  if (collective == Collective::kAllReduce) return;
  for (std::vector<LinkLoad>& stage : out.stages) {
    for (LinkLoad& load : stage) load.floats *= collective == Collective::kAllGather ? 2 : 0;
  }
}

}  // namespace

Features features_of(const Observation& observation, const Place& place) {
  const Topology& topology = place.topology;
  check(observation, topology);
  place.work->spend(static_cast<double>(observation.servers.size()));
  Features out;
  out.alphas.assign(static_cast<std::size_t>(topology.height(topology.root())), 0);
  if (place.cores > 0) out.share = std::max(1.0, static_cast<double>(neighbours(observation, topology)) / place.cores);
  if (place.is_memory) out.link_share = out.share;
  switch (observation.kind) {
    case ObservationKind::kCollective:
      add_plan(observation, place, out);
      if (place.is_direct) scale_halves(observation.collective, out);
      break;
    case ObservationKind::kGather:
      add_gather(observation, topology, out);
      break;
    case ObservationKind::kReduction:
      out.adds = static_cast<double>(observation.fan_in - 1) * observation.size_floats;
      out.accesses = static_cast<double>(observation.fan_in + 1) * observation.size_floats;
      break;
  }
  return out;
}

void row_of(const Features& features, const Parameters& parameters, double* row) {
  const ParamIndex index(static_cast<int>(features.alphas.size()), parameters.values);
  std::fill(row, row + index.size(), 0.0);
  const auto share_of = [&](int level) { return level == 0 ? features.link_share : 1.0; };
  for (int level = 0; level < index.num_levels(); ++level) {
    row[ParamIndex::alpha(level)] = features.alphas[static_cast<std::size_t>(level)] * share_of(level);
  }
  for (const std::vector<LinkLoad>& stage : features.stages) {
    const LinkLoad* slowest = nullptr;
    double longest = -1;
    for (const LinkLoad& load : stage) {
      const auto level = static_cast<std::size_t>(load.level);
      const double excess = std::max(load.senders - parameters.thresholds[level], 0.0);
      const double per_float = parameters.values[static_cast<std::size_t>(ParamIndex::beta(load.level))] +
                               excess * parameters.values[static_cast<std::size_t>(ParamIndex::epsilon(load.level))];
      const double seconds = share_of(load.level) * load.floats * per_float;
      if (seconds <= longest) continue;
      longest = seconds;
      slowest = &load;
    }
    if (slowest == nullptr) continue;
    const double floats = share_of(slowest->level) * slowest->floats;
    row[ParamIndex::beta(slowest->level)] += floats;
    row[ParamIndex::epsilon(slowest->level)] +=
        floats * std::max(slowest->senders - parameters.thresholds[static_cast<std::size_t>(slowest->level)], 0.0);
  }
  row[index.gamma()] = features.share * features.adds;
  row[index.delta()] = features.share * features.accesses;
  if (index.has_mu()) row[index.mu()] = features.share * features.handled;
}

double seconds_of(const Features& features, const Parameters& parameters) {
  std::vector<double> row(parameters.values.size());
  row_of(features, parameters, row.data());
  double seconds = 0;
  for (std::size_t i = 0; i < row.size(); ++i) seconds += row[i] * parameters.values[i];
  return seconds;
}

Parameters parameters_of(const Profile& profile) {
  Parameters out;
  for (const LevelProfile& level : profile.levels) {
    for (const LevelParam& param : kLevelParams) out.values.push_back((level.*param.estimate).value);
    out.thresholds.push_back(level.incast_threshold.value);
  }
  for (const ServerParam& param : kFittedServerParams) out.values.push_back((profile.*param.estimate).value);
  return out;
}

Parameters known_to(ModelKind kind, Parameters parameters) {
  const ParamIndex index(static_cast<int>(parameters.thresholds.size()), parameters.values);
  if (!has_handling(kind) && index.has_mu()) parameters.values[static_cast<std::size_t>(index.mu())] = 0;
  if (has_incast_and_memory(kind)) return parameters;
  for (int level = 0; level < index.num_levels(); ++level) {
    parameters.values[static_cast<std::size_t>(ParamIndex::epsilon(level))] = 0;
  }
  parameters.values[static_cast<std::size_t>(index.delta())] = 0;
  return parameters;
}

}  // namespace gar
