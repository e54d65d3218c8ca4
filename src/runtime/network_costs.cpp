// Every level is measured alike: all its groups (ranks of a NUMA node, NUMA nodes of a host, hosts of a switch) shift a
// message to the next group of the same parent, all ranks at once, each to the rank of the same index. Under that load
// a short message tells the latency, a long one the time per float of a group's link: what a plan will meet, other than
// the time of a lonely ping-pong. Several short ones at once, each to another group, tell what a rank does for each: to
// the same one they would travel together.
#include "runtime/network_costs.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <numeric>

#include "gar/environment.hpp"
#include "gar/stats.hpp"
#include "runtime/calibrate.hpp"
#include "topology/hosts.hpp"

namespace gar {

namespace {

constexpr int kShortBytes = 8;
constexpr int kLongBytes = NetworkProbe::kMostBytes;
constexpr int kShortRounds = 20;
constexpr int kFewRounds = 16;  // of short messages, where only these are asked about
constexpr int kLongRounds = 10;
constexpr int kBurst = 8;  // short messages at once, at most
constexpr double kSmallestBeta = 1e-13;

/// Ranks divided twice: into parents, and these into groups.
struct Level {
  std::vector<int> parent;
  std::vector<int> group;
};

struct Neighbours {
  int to = -1;  ///< -1: none, here and below
  int from = -1;
  int group_size = 1;      ///< ranks of the group that send
  std::size_t others = 0;  ///< groups of the parent, besides the own one
};

/// `distance` groups further, and as many back; below the number of groups.
Neighbours neighbours_of(int rank, const Level& level, std::size_t distance = 1) {
  std::map<int, std::vector<int>> groups;  // of the parent
  const auto self = static_cast<std::size_t>(rank);
  for (std::size_t r = 0; r < level.parent.size(); ++r) {
    if (level.parent[r] == level.parent[self]) groups[level.group[r]].push_back(static_cast<int>(r));
  }
  Neighbours out;
  if (groups.size() < 2) return out;
  const auto mine = groups.find(level.group[self]);
  const auto place = static_cast<std::size_t>(std::distance(groups.begin(), mine));
  const auto group_at = [&](std::size_t at) {
    return std::next(groups.begin(), static_cast<std::ptrdiff_t>(at % groups.size()));
  };
  const auto next = group_at(place + distance);
  const auto previous = group_at(place + groups.size() - distance % groups.size());
  out.others = groups.size() - 1;
  const auto index =
      static_cast<std::size_t>(std::find(mine->second.begin(), mine->second.end(), rank) - mine->second.begin());
  if (index < next->second.size()) out.to = next->second[index];
  if (index < previous->second.size()) out.from = previous->second[index];
  out.group_size = static_cast<int>(std::min(mine->second.size(), next->second.size()));
  return out;
}

/// Seconds of each round in which every rank sends these messages.
std::vector<double> time_rounds(NetworkProbe& probe, std::span<const NetworkProbe::Shift> messages, int bytes,
                                int rounds) {
  probe.barrier();
  std::vector<double> out;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    probe.shift(messages, bytes);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    if (round > 0) out.push_back(time.count());
  }
  return out;
}

/// Ranks are coupled: a late rank finds the messages of several rounds there already, and the others have waited for
/// it. So it is the mean of the rounds that counts; the less of two, because what disturbs the machine only makes it
/// longer.
double time_of_a_round(NetworkProbe& probe, std::span<const NetworkProbe::Shift> messages, int bytes, int rounds) {
  double out = std::numeric_limits<double>::infinity();
  for (int batch = 0; batch < 2; ++batch) {
    const std::vector<double> times = time_rounds(probe, messages, bytes, rounds / 2);
    out = std::min(out, std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size()));
  }
  return out;
}

double time_long(NetworkProbe& probe, const Neighbours& neighbours) {
  const NetworkProbe::Shift message{neighbours.to, neighbours.from};
  return time_of_a_round(probe, std::span(&message, 1), kLongBytes, kLongRounds);
}

/// Of short messages, one to each of the next `messages` groups.
double time_short(NetworkProbe& probe, const Level& level, std::size_t messages, int rounds) {
  std::vector<NetworkProbe::Shift> shifts;
  for (std::size_t d = 1; d <= messages; ++d) {
    const Neighbours neighbours = neighbours_of(probe.rank(), level, d);
    shifts.push_back({neighbours.to, neighbours.from});
  }
  return time_of_a_round(probe, shifts, kShortBytes, rounds);
}

/// What a step of short messages takes on this rank.
struct ShortSteps {
  double one_s = 0;   ///< with a message each way
  double many_s = 0;  ///< with `messages`
  double messages = 1;
};

/// Ranks of parents with different numbers of groups take part alike.
ShortSteps time_short_steps(NetworkProbe& probe, const Level& level, int rounds) {
  const std::size_t most = std::clamp<std::size_t>(neighbours_of(probe.rank(), level).others, 1, kBurst);
  ShortSteps out;
  out.messages = static_cast<double>(most);
  out.one_s = time_short(probe, level, 1, rounds);
  out.many_s = time_short(probe, level, most, rounds);
  return out;
}

/// Has a parent two groups?
bool is_divided(const Level& level) {
  std::map<int, int> first_group;
  for (std::size_t r = 0; r < level.parent.size(); ++r) {
    if (first_group.try_emplace(level.parent[r], level.group[r]).first->second != level.group[r]) return true;
  }
  return false;
}

/// Nothing is measured where no parent has two groups, and mu only if it is wanted.
LevelCosts measure_level(NetworkProbe& probe, const Level& level, bool wants_mu) {
  if (!is_divided(level)) return {};
  const Neighbours neighbours = neighbours_of(probe.rank(), level);
  const ShortSteps steps = wants_mu ? time_short_steps(probe, level, kShortRounds)
                                    : ShortSteps{time_short(probe, level, 1, kShortRounds), 0, 1};
  const double short_s = steps.one_s;
  const double long_s = time_long(probe, neighbours);
  const double mu_s = split_steps(short_s, steps.many_s, steps.messages).mu;
  const double floats = kLongBytes / 4.0 * neighbours.group_size;
  LevelCosts out;
  const bool counts = neighbours.to >= 0;
  std::vector<double> latencies;
  std::vector<double> betas;
  std::vector<double> mus;
  for (const auto& [latency, beta, mu] :
       probe.all_gather(std::array{counts ? short_s : -1, counts ? (long_s - short_s) / floats : 0, mu_s})) {
    if (latency < 0) continue;
    latencies.push_back(latency);
    betas.push_back(beta);
    mus.push_back(mu);
  }
  out.latency = median(std::move(latencies));
  out.beta = std::max(median(std::move(betas)), kSmallestBeta);
  out.mu = median(std::move(mus));
  return out;
}

/// Ranks per core, on the fullest host.
double crowding(const HostMap& hosts) {
  std::vector<int> num_ranks(static_cast<std::size_t>(hosts.num_hosts), 0);
  for (const int host : hosts.host_of) ++num_ranks[static_cast<std::size_t>(host)];
  double out = 1;
  for (std::size_t r = 0; r < hosts.host_of.size(); ++r) {
    out = std::max(out, num_ranks[static_cast<std::size_t>(hosts.host_of[r])] / hosts.cores_of[r]);
  }
  return out;
}

std::vector<int> iota(std::size_t size) {
  std::vector<int> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<int>(i);
  return out;
}

/// Hosts and NUMA nodes together, as one number per rank.
std::vector<int> numa_groups(const HostMap& hosts) {
  std::map<std::pair<int, int>, int> numbers;
  std::vector<int> out;
  for (std::size_t r = 0; r < hosts.host_of.size(); ++r) {
    const std::pair key{hosts.host_of[r], hosts.numa_of[r]};
    out.push_back(numbers.try_emplace(key, static_cast<int>(numbers.size())).first->second);
  }
  return out;
}

/// Does some run of ranks of a host have several NUMA nodes?
bool has_divided_host(const HostMap& hosts) {
  for (std::size_t r = 1; r < hosts.host_of.size(); ++r) {
    if (hosts.host_of[r] == hosts.host_of[r - 1] && hosts.numa_of[r] != hosts.numa_of[r - 1]) return true;
  }
  return false;
}

/// `visit(level)` for each level that has costs, from the lowest.
template <class Costs, class Visit>
void for_each_level(Costs& costs, const Visit& visit) {
  for (auto* level : {&costs.rank, &costs.numa, &costs.host}) visit(*level);
  for (auto level = costs.switches.rbegin(); level != costs.switches.rend(); ++level) visit(*level);
}

Node inner_node(const char* name, double alpha, double beta) {
  Node node;
  node.name = name;
  node.alpha = alpha;
  node.uplink.beta = beta;
  return node;
}

}  // namespace

Topology network_topology(const std::string& name, const HostMap& hosts, const NetworkCosts& costs) {
  const std::vector<int> numa = numa_groups(hosts);
  HostNodes nodes;
  nodes.rank.name = "rank";
  nodes.rank.alpha = costs.rank.latency / 2;  // a path passes two of them
  nodes.rank.uplink.beta = costs.rank.beta;
  nodes.rank.server = costs.server;
  if (numa.size() == 1) return {name, {nodes.rank}, 0};
  // A path between hosts passes two ranks, two hosts and the root; a host counts where it has several NUMA nodes.
  const double host_alpha = has_divided_host(hosts) ? std::max(costs.numa.latency - costs.rank.latency, 0.0) : 0;
  double alpha = std::max(costs.host.latency - costs.rank.latency - 2 * host_alpha, 0.0);
  nodes.numa = inner_node("numa", 0, costs.numa.beta);
  nodes.host = inner_node("host", 0, costs.host.beta);
  nodes.divided_host = inner_node("host", host_alpha, costs.host.beta);
  // A path between neighbours of a level passes the node above them, and twice what a path one level lower passes once.
  double path = costs.host.latency;
  nodes.switches.resize(hosts.switches_of.size());
  for (std::size_t level = nodes.switches.size(); level-- > 0;) {
    nodes.switches[level] = inner_node("switch", alpha, costs.switches[level].beta);
    alpha = std::max(costs.switches[level].latency - path - alpha, 0.0);
    path = costs.switches[level].latency;
  }
  nodes.network = inner_node("network", alpha, 0);
  // Ranks dealt out to hosts one by one: each has its share of the host's link.
  nodes.lone_rank = nodes.rank;
  nodes.lone_rank.uplink.beta = std::max(
      costs.rank.beta, costs.host.beta * static_cast<double>(numa.size()) / static_cast<double>(hosts.num_hosts));
  return topology_of_hosts(name, hosts.host_of, numa, nodes, hosts.switches_of);
}

NetworkCosts with_mu(NetworkCosts costs) {
  costs.server.mu = costs.host.latency > 0 ? costs.host.mu : costs.rank.mu;
  for_each_level(costs, [&](const LevelCosts& level) {
    if (level.latency > 0) costs.server.mu = split_step(level.latency, 1, costs.server.mu).mu;
  });
  for_each_level(costs, [&](LevelCosts& level) {
    if (level.latency > 0) level.latency -= 2 * costs.server.mu;
  });
  return costs;
}

Node measure_rank(NetworkProbe& probe, const HostMap& hosts, bool is_shared) {
  Node node;
  node.name = "rank";
  if (hosts.num_hosts == static_cast<int>(hosts.host_of.size())) return node;
  const LevelCosts costs = measure_level(probe, {hosts.host_of, iota(hosts.host_of.size())}, false);
  LocalCosts local;
  if (probe.rank() == 0 && is_shared) local = measure_costs();
  local = probe.all_gather(local).front();
  node.alpha = costs.latency / 2;  // a path passes two of them
  node.uplink.beta = is_shared ? local.beta * crowding(hosts) : costs.beta;
  return node;
}

Topology measure_network(const std::string& name, NetworkProbe& probe, const HostMap& hosts, bool is_shared) {
  const std::size_t size = hosts.host_of.size();
  LocalCosts local;
  if (probe.rank() == 0 && size > 1) local = measure_costs();
  local = probe.all_gather(local).front();
  const std::vector<int> numa = numa_groups(hosts);
  NetworkCosts costs;
  costs.rank = measure_level(probe, {numa, iota(size)}, hosts.num_hosts == 1 && !is_shared);
  costs.numa = measure_level(probe, {hosts.host_of, numa}, false);
  std::vector<int> above(size, 0);
  for (const std::vector<int>& switches : hosts.switches_of) {
    costs.switches.push_back(measure_level(probe, {above, switches}, false));
    above = switches;
  }
  costs.host = measure_level(probe, {above, hosts.host_of}, true);
  const double share = crowding(hosts);
  costs.server = {local.gamma * share, local.delta * share, 0};
  if (is_shared) costs.rank.beta = local.beta * share;
  if (is_shared) costs.rank.mu = local.mu * share;
  if (costs.rank.latency <= 0) costs.rank = costs.host;  // one rank on every host
  return network_topology(name, hosts, with_mu(costs));
}

std::optional<Topology> measure_messages(NetworkProbe& probe, const HostMap& hosts, const Topology& network) {
  const std::size_t size = hosts.host_of.size();
  bool knows_messages = false;
  for (NodeId id = 0; id < network.num_nodes(); ++id) knows_messages = knows_messages || network.node(id).server.mu > 0;
  const Level level{std::vector<int>(size, 0), hosts.host_of};
  if (knows_messages || !is_divided(level)) return std::nullopt;
  const Neighbours neighbours = neighbours_of(probe.rank(), level);
  const ShortSteps steps = time_short_steps(probe, level, kFewRounds);
  const bool counts = neighbours.to >= 0;
  const double given = counts ? network.path_latency(probe.rank(), neighbours.to) : 0;
  std::vector<double> alphas;
  std::vector<double> mus;
  std::vector<double> givens;
  for (const auto& [one, many, path] : probe.all_gather(std::array{counts ? steps.one_s : -1, steps.many_s, given})) {
    if (one < 0) continue;
    const MessageCosts costs = split_steps(one, many, steps.messages);
    alphas.push_back(costs.alpha);
    mus.push_back(costs.mu);
    givens.push_back(path);
  }
  const double path = median(std::move(givens));
  if (path <= 0) return std::nullopt;
  const double slower = median(std::move(alphas)) / path;
  const double mu = median(std::move(mus));
  std::vector<Node> nodes;
  for (NodeId id = 0; id < network.num_nodes(); ++id) {
    Node node = network.node(id);
    node.alpha *= slower;
    if (node.is_server()) node.server.mu = mu;
    nodes.push_back(std::move(node));
  }
  return Topology(network.name(), std::move(nodes), network.root());
}

int fake_hosts_from_environment() {
  return static_cast<int>(environment::whole_number(environment::kFakeHosts).value_or(1));
}

}  // namespace gar
