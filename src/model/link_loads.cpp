// Loads of explicit transfers on a tree: every transfer climbs from its sender to the lowest common switch and descends
// to its receiver. O(height) per transfer. Senders are counted once per link and stage because the transfers come
// sorted by sender and every link remembers the last one.
#include "model/link_loads.hpp"

#include <algorithm>
#include <set>

namespace gar {

PricingTree make_pricing_tree(const Topology& topology, NodeId node) {
  PricingTree out;
  out.tree = expand(topology, node);
  const ExpandedTree& t = out.tree;
  out.latency.resize(t.size());
  const Node* first_server = nullptr;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const Node& n = topology.node(t.node[i]);
    out.latency[i] = n.alpha + (i == 0 ? 0 : out.latency[static_cast<std::size_t>(t.parent[i])]);
    if (!n.is_server()) continue;
    if (first_server == nullptr) first_server = &n;
    if (!(n.server == first_server->server)) out.has_equal_servers = false;
    const auto first_leaf = static_cast<std::size_t>(t.leaf[0]);
    if (out.latency[i] != out.latency[first_leaf] || t.depth[i] != t.depth[first_leaf]) out.is_uniform = false;
  }
  return out;
}

namespace {

bool contains(const ExpandedTree& t, std::int32_t instance, std::int32_t rank) {
  const auto i = static_cast<std::size_t>(instance);
  return t.first_rank[i] <= rank && rank < t.last_rank[i];
}

}  // namespace

double path_latency(const PricingTree& t, const Topology& topology, std::int32_t a, std::int32_t b) {
  if (a == b) return 0;
  const std::int32_t from = t.tree.leaf[static_cast<std::size_t>(a)];
  const std::int32_t to = t.tree.leaf[static_cast<std::size_t>(b)];
  std::int32_t top = from;
  while (!contains(t.tree, top, b)) top = t.tree.parent[static_cast<std::size_t>(top)];
  const auto at = [&](std::int32_t i) { return t.latency[static_cast<std::size_t>(i)]; };
  return at(from) + at(to) - 2 * at(top) + topology.node(t.tree.node[static_cast<std::size_t>(top)]).alpha;
}

namespace {

double excess_of(const LinkParams& link, std::int64_t num_senders, const ModelOptions& options) {
  const auto w = static_cast<double>(num_senders + (options.degree == IncastDegree::kParticipants ? 1 : 0));
  return std::max(w - link.incast_threshold, 0.0);
}

}  // namespace

LinkCost cost_of_load(const LinkParams& link, double load, std::int64_t num_senders, const ModelOptions& options) {
  if (num_senders == 0) return {};
  const double e =
      has_incast_and_memory(options.kind) ? load * excess_of(link, num_senders, options) * link.epsilon : 0;
  return {load * link.beta, e};
}

void Busy::resize(std::size_t instances, std::size_t ranks) {
  up.resize(instances);
  down.resize(instances);
  calculation.resize(ranks);
}

void Busy::trim() {
  const auto is_idle = [](const auto& a, const auto& b) {
    return a.beta == 0 && a.epsilon == 0 && b.beta == 0 && b.epsilon == 0;
  };
  std::size_t begin = 0;
  std::size_t end = up.size();
  while (begin < end && is_idle(up[begin], down[begin])) ++begin;
  while (begin < end && is_idle(up[end - 1], down[end - 1])) --end;
  up = {up.begin() + static_cast<std::ptrdiff_t>(begin), up.begin() + static_cast<std::ptrdiff_t>(end)};
  down = {down.begin() + static_cast<std::ptrdiff_t>(begin), down.begin() + static_cast<std::ptrdiff_t>(end)};
  first_instance += begin;
  begin = 0;
  end = calculation.size();
  const auto rests = [&](std::size_t r) { return calculation[r] == ServerParams{}; };
  while (begin < end && rests(begin)) ++begin;
  while (begin < end && rests(end - 1)) --end;
  calculation = {calculation.begin() + static_cast<std::ptrdiff_t>(begin),
                 calculation.begin() + static_cast<std::ptrdiff_t>(end)};
  first_rank += begin;
}

void Busy::add(const Busy& other, std::size_t at_instance, std::size_t at_rank) {
  const auto plus = [](const LinkCost& a, const LinkCost& b) {
    return LinkCost{a.beta + b.beta, a.epsilon + b.epsilon};
  };
  for (std::size_t i = 0; i < other.up.size(); ++i) {
    const std::size_t to = at_instance + other.first_instance + i;
    up[to] = plus(up[to], other.up[i]);
    down[to] = plus(down[to], other.down[i]);
  }
  for (std::size_t r = 0; r < other.calculation.size(); ++r) {
    ServerParams& to = calculation[at_rank + other.first_rank + r];
    to.gamma += other.calculation[r].gamma;
    to.delta += other.calculation[r].delta;
    to.mu += other.calculation[r].mu;
  }
}

void Bottleneck::offer(const LinkParams& link, std::int32_t where, bool down, double load, std::int64_t num_senders,
                       const ModelOptions& options) {
  if (num_senders == 0) return;
  max_excess = std::max(max_excess, excess_of(link, num_senders, options));
  const LinkCost cost = cost_of_load(link, load, num_senders, options);
  if (instance >= 0 && cost.beta + cost.epsilon <= beta + epsilon) return;
  beta = cost.beta;
  epsilon = cost.epsilon;
  instance = where;
  is_down = down;
  senders = num_senders;
  volume = load;
}

void LoadCounter::put(std::vector<Load>& loads, std::int32_t instance, const Transfer& t) {
  Load& load = loads[static_cast<std::size_t>(instance)];
  if (load.senders == 0) touched_.push_back(instance);
  if (load.last_sender != t.from) {
    load.last_sender = t.from;
    ++load.senders;
  }
  load.volume += t.volume;
}

Bottleneck LoadCounter::count(const std::vector<Transfer>& transfers, const ModelOptions& options, double& latency,
                              Busy& busy) {
  const ExpandedTree& t = tree_.tree;
  up_.resize(t.size());
  down_.resize(t.size());
  latency = 0;
  for (const Transfer& x : transfers) {
    const std::int32_t from = t.leaf[static_cast<std::size_t>(x.from)];
    const std::int32_t to = t.leaf[static_cast<std::size_t>(x.to)];
    std::int32_t i = from;
    for (; !contains(t, i, x.to); i = t.parent[static_cast<std::size_t>(i)]) {
      put(up_, i, x);
    }
    for (std::int32_t j = to; j != i; j = t.parent[static_cast<std::size_t>(j)]) {
      put(down_, j, x);
    }
    const auto at = [&](std::int32_t k) { return tree_.latency[static_cast<std::size_t>(k)]; };
    latency =
        std::max(latency, at(from) + at(to) - 2 * at(i) + topology_.node(t.node[static_cast<std::size_t>(i)]).alpha);
  }
  std::sort(touched_.begin(), touched_.end());
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  Bottleneck worst;
  for (const std::int32_t i : touched_) {
    const auto k = static_cast<std::size_t>(i);
    const LinkParams& link = topology_.node(t.node[k]).uplink;
    worst.offer(link, i, false, up_[k].volume, up_[k].senders, options);
    worst.offer(link, i, true, down_[k].volume, down_[k].senders, options);
    if (busy.is_wanted()) {
      const LinkCost u = cost_of_load(link, up_[k].volume, up_[k].senders, options);
      const LinkCost d = cost_of_load(link, down_[k].volume, down_[k].senders, options);
      busy.up[k].beta += u.beta;
      busy.up[k].epsilon += u.epsilon;
      busy.down[k].beta += d.beta;
      busy.down[k].epsilon += d.epsilon;
    }
    up_[k] = {};
    down_[k] = {};
  }
  touched_.clear();
  return worst;
}

MessageCount messages_of(const Stage& digit_stage) {
  const std::int64_t others = messages_per_step(digit_stage);
  return {others, others};
}

MessageCount messages_of(const Step& step) {
  const auto num_peers = [](const std::vector<Message>& messages) {
    const auto by_peer = [](const Message& a, const Message& b) { return a.peer < b.peer; };
    if (!std::is_sorted(messages.begin(), messages.end(), by_peer)) {  // a program out of a file
      std::set<std::int32_t> peers;
      for (const Message& m : messages) peers.insert(m.peer);
      return static_cast<std::int64_t>(peers.size());
    }
    std::int64_t count = 0;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (i == 0 || messages[i].peer != messages[i - 1].peer) ++count;
    }
    return count;
  };
  return {num_peers(step.sends), num_peers(step.recvs)};
}

// Sweeps the ends of the received intervals: between two ends the number of operands is constant.
Calculation calculation_of(const std::vector<Message>& recvs, std::int64_t num_units) {
  Calculation out;
  if (recvs.empty()) return out;
  const auto add = [&](std::int64_t length, std::int64_t num_received, bool with_own) {
    out.add(static_cast<double>(length) / static_cast<double>(num_units), num_received, with_own);
  };
  const bool one_interval = std::all_of(
      recvs.begin(), recvs.end(), [&](const Message& m) { return m.begin == recvs[0].begin && m.end == recvs[0].end; });
  if (one_interval) {
    add(recvs[0].end - recvs[0].begin, static_cast<std::int64_t>(recvs.size()), recvs[0].accumulate);
    return out;
  }
  struct End {
    std::int64_t unit;
    std::int64_t change;
    bool accumulate;
  };
  std::vector<End> ends;
  ends.reserve(recvs.size() * 2);
  for (const Message& m : recvs) {
    ends.push_back({m.begin, 1, m.accumulate});
    ends.push_back({m.end, -1, m.accumulate});
  }
  std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.unit < b.unit; });
  std::int64_t covering = 0;
  std::int64_t accumulating = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    covering += ends[i].change;
    accumulating += ends[i].accumulate ? ends[i].change : 0;
    if (i + 1 < ends.size() && ends[i + 1].unit > ends[i].unit && covering > 0) {
      add(ends[i + 1].unit - ends[i].unit, covering, accumulating > 0);
    }
  }
  return out;
}

}  // namespace gar
