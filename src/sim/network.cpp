#include "sim/network.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "gar/errors.hpp"
#include "gar/limits.hpp"

namespace gar::sim {

namespace {

/// Several conditions multiply; what comes out must be a factor again.
void check_factor(double factor, const std::string& what) {
  if (factor >= 1 / kMaxFactor && factor <= kMaxFactor) return;
  throw InvalidArgument(
      fmt::format("{} of {} in all; expected {:g} to {:g}", what, factor, 1 / kMaxFactor, kMaxFactor));
}

}  // namespace

Network::Network(const Topology& topology, const SimulationOptions& options)
    : topology_(topology),
      model_(options.model),
      extra_senders_(options.degree == IncastDegree::kParticipants ? 1 : 0),
      tree_(expand(topology, topology.root())) {
  spans_.resize(tree_.size());
  latency_.resize(tree_.size());
  for (std::size_t i = 0; i < tree_.size(); ++i) {
    spans_[i] = {.parent = tree_.parent[i], .first_rank = tree_.first_rank[i], .end_rank = tree_.last_rank[i]};
    const double above = tree_.parent[i] < 0 ? 0 : latency_[static_cast<std::size_t>(tree_.parent[i])];
    latency_[i] = above + topology.node(tree_.node[i]).alpha;
  }
  for (const SlowServer& slow : options.slow_servers) add_slow_server(slow);
  for (const LinkCondition& link : options.links) add_condition(link);
  if (!(options.jitter >= 0) || !(options.jitter <= kMaxJitter)) {
    throw InvalidArgument(fmt::format("jitter {}: expected 0 to {}", options.jitter, kMaxJitter));
  }
}

void Network::add_slow_server(const SlowServer& slow) {
  if (slow.rank < 0 || slow.rank >= num_ranks()) {
    throw InvalidArgument(fmt::format("slow server: {} is not a rank; expected 0..{}", slow.rank, num_ranks() - 1));
  }
  if (!(slow.factor > 0) || !std::isfinite(slow.factor)) {
    throw InvalidArgument(fmt::format("slow server {}: factor {} is not a number above 0", slow.rank, slow.factor));
  }
  const auto rank = static_cast<std::int32_t>(slow.rank);
  double& factor = slow_.try_emplace(rank, 1.0).first->second;
  factor *= slow.factor;
  check_factor(factor, fmt::format("slow server {}: a factor", slow.rank));
  marked_ranks_.push_back(rank);
}

void Network::add_condition(const LinkCondition& link) {
  const std::int32_t instance = instance_of(link.node);
  const std::string name = topology_.instance_name(link.node.rank, link.node.depth);
  if (!(link.capacity >= 0) || !std::isfinite(link.capacity)) {
    throw InvalidArgument(
        fmt::format("link of {}: a capacity of {}; expected 0 (failed) or more", name, link.capacity));
  }
  if (!(link.background >= 0) || !(link.background < 1)) {
    throw InvalidArgument(
        fmt::format("link of {}: a background load of {}; expected 0 to below 1", name, link.background));
  }
  for (const bool is_down : {false, true}) {
    if (!(is_down ? link.down : link.up)) continue;
    Condition& condition = conditions_[2 * std::int64_t{instance} + (is_down ? 1 : 0)];
    condition.scale *= link.capacity;
    if (condition.scale != 0) check_factor(condition.scale, fmt::format("link of {}: a capacity", name));
    condition.background += link.background;
    if (!(condition.background <= 1 - 1 / kMaxFactor)) {
      throw InvalidArgument(
          fmt::format("link of {}: background loads of {} in all; expected below 1", name, condition.background));
    }
  }
  marked_instances_.push_back(instance);
}

std::int32_t Network::instance_of(const NodePlace& place) const {
  if (place.rank < 0 || place.rank >= num_ranks()) {
    throw InvalidArgument(fmt::format("{} is not a rank; expected 0..{}", place.rank, num_ranks() - 1));
  }
  std::int32_t i = leaf(static_cast<std::int32_t>(place.rank));
  if (place.depth < 1 || place.depth > depth(i)) {
    throw InvalidArgument(
        fmt::format("there is no link at depth {} above rank {}; expected 1..{}", place.depth, place.rank, depth(i)));
  }
  while (depth(i) > place.depth) i = span(i).parent;
  return i;
}

LinkState Network::link(std::int32_t instance, bool is_down) const {
  const LinkParams& p = topology_.node(node(instance)).uplink;
  LinkState out{.beta = p.beta,
                .epsilon = has_incast_and_memory(model_) ? p.epsilon : 0,
                .threshold = p.incast_threshold,
                .extra_senders = extra_senders_};
  const auto it = conditions_.find(2 * std::int64_t{instance} + (is_down ? 1 : 0));
  if (it != conditions_.end()) {
    out.scale = it->second.scale * (1 - it->second.background);
    if (it->second.background > 0) out.extra_senders += 1;
  }
  return out;
}

LinkId Network::link_id(std::int32_t instance, bool is_down) const {
  return {{span(instance).first_rank, depth(instance)}, is_down};
}

ServerParams Network::server(std::int32_t rank) const {
  ServerParams out = known_to(model_, topology_.node(node(leaf(rank))).server);
  const auto it = slow_.find(rank);
  if (it != slow_.end()) {
    out.gamma *= it->second;
    out.delta *= it->second;
    out.mu *= it->second;
  }
  return out;
}

void throw_unreachable(const Topology& topology, const LinkId& link) {
  throw InvalidArgument(fmt::format("rank {} cannot be reached: the {} has failed, and the plan sends over it",
                                    link.node.rank, link_name(topology, link)));
}

}  // namespace gar::sim
