// Pricing digit stages by the number of active ranks below each link.
//
// Equal ranks of different children exchange pieces, so a link with a active ranks below it carries, in a direct
// exchange of radix r with pieces of s floats, a (r - 1) s up from a senders and as much down from a (r - 1) senders;
// in a ring a s each way from a senders; an exchange is a direct exchange of larger pieces without a mirror image.
// Links with the same parameters and the same a behave the same. O(distinct links) per stage.
#include "planner/footprint.hpp"

#include <algorithm>

namespace gar {

namespace {

double link_seconds(const LinkParams& link, double load, std::int64_t senders, const ModelOptions& options,
                    double& epsilon) {
  const auto w = static_cast<double>(senders + (options.degree == IncastDegree::kParticipants ? 1 : 0));
  epsilon = 0;
  if (has_incast_and_memory(options.kind)) epsilon = load * std::max(w - link.incast_threshold, 0.0) * link.epsilon;
  return load * link.beta;
}

void merge_link(std::vector<FootprintLink>& links, const FootprintLink& use) {
  for (FootprintLink& known : links) {
    if (known.link == use.link && known.active == use.active) {
      known.up = std::max(known.up, use.up);
      known.down = std::max(known.down, use.down);
      return;
    }
  }
  links.push_back(use);
}

void merge_server(std::vector<ServerUse>& servers, const ServerUse& use) {
  for (ServerUse& known : servers) {
    if (known.server == use.server) {
      known.busy = std::max(known.busy, use.busy);
      known.handling = std::max(known.handling, use.handling);
      return;
    }
  }
  servers.push_back(use);
}

}  // namespace

StagePrice add_stage(Footprint& f, const FootprintStage& stage, double latency, const ModelOptions& options) {
  const auto [fan, piece, steps, halves, reduces] = stage;
  StagePrice price;
  double worst = -1;
  const auto others = static_cast<double>(fan - 1);
  for (FootprintLink& use : f.links) {
    const double load = static_cast<double>(use.active) * others * piece;
    double up_epsilon = 0;
    double down_epsilon = 0;
    const double up = link_seconds(use.link, load, use.active, options, up_epsilon);
    const double down = link_seconds(use.link, load, use.active * (fan - 1), options, down_epsilon);
    use.up += halves * steps * (up + up_epsilon);
    use.down += halves * steps * (down + down_epsilon);
    if (down + down_epsilon > worst) {
      worst = down + down_epsilon;
      price.slope.beta = halves * steps * down;
      price.slope.epsilon = halves * steps * down_epsilon;
    }
  }
  double slowest = -1;
  double handling = 0;  // of one step, by the slowest: what it sends and what it receives
  for (ServerUse& use : f.servers) {
    const ServerParams server = known_to(options.kind, use.server);
    const double reduced = reduces ? steps * piece : 0;
    const double gamma = reduced * others * server.gamma;
    const double delta = reduced * static_cast<double>(fan + 1) * server.delta;
    use.busy += gamma + delta;
    const double messages = 2 * others * server.mu;
    use.handling += halves * steps * messages;
    handling = std::max(handling, messages);
    if (gamma + delta > slowest) {
      slowest = gamma + delta;
      price.slope.gamma = gamma;
      price.slope.delta = delta;
    }
  }
  price.fixed.alpha = halves * steps * latency;
  price.fixed.mu = halves * steps * handling;
  f.steps.emplace_back(latency + handling, worst + std::max(slowest, 0.0) / steps);
  f.fixed += price.fixed;
  f.slope += price.slope;
  return price;
}

double Footprint::busiest() const {
  double most = 0;
  for (const FootprintLink& use : links) most = std::max({most, use.up, use.down});
  for (const ServerUse& use : servers) most = std::max(most, use.busy);
  return most;
}

double Footprint::busiest_handling() const {
  double most = 0;
  for (const ServerUse& use : servers) most = std::max(most, use.handling);
  return most;
}

double Footprint::pipelined_seconds(double size_floats, std::int64_t chunks) const {
  const double chunk = size_floats / static_cast<double>(chunks);
  const double fill = seconds(chunk);
  if (chunks == 1) return fill;
  double turn = chunk * busiest();
  for (const ServerUse& use : servers) turn = std::max(turn, use.handling + chunk * use.busy);
  for (const auto& [fixed_part, rate] : steps) turn = std::max(turn, fixed_part + chunk * rate);
  return fill + static_cast<double>(chunks - 1) * turn;
}

Footprint server_footprint(const Node& server) {
  Footprint f;
  f.links = {{server.uplink, 1, 0, 0}};
  f.servers = {{server.server, 0, 0}};
  f.latency = server.alpha;
  return f;
}

Footprint joined(const std::vector<Footprint>& children) {
  Footprint out = children.front();
  for (std::size_t c = 1; c < children.size(); ++c) {
    const Footprint& f = children[c];
    for (const FootprintLink& use : f.links) merge_link(out.links, use);
    for (const ServerUse& use : f.servers) merge_server(out.servers, use);
    out.latency = std::max(out.latency, f.latency);
    if ((f.fixed + f.slope).total() > (out.fixed + out.slope).total()) {
      out.fixed = f.fixed;
      out.slope = f.slope;
    }
    out.steps.insert(out.steps.end(), f.steps.begin(), f.steps.end());
  }
  return out;
}

void put_below(Footprint& footprint, const Node& parent_switch) {
  footprint.latency += parent_switch.alpha;
  merge_link(footprint.links, {parent_switch.uplink, footprint.active, 0, 0});
}

StagePrice add_digits(Footprint& footprint, const Digits& digits, double pair_latency, const ModelOptions& options) {
  StagePrice total;
  double held = 1 / static_cast<double>(footprint.active);
  std::int64_t count = 1;
  for (std::size_t s = 0; s < digits.radices.size(); ++s) {
    const std::int64_t r = digits.radices[s];
    const bool is_ring = digits.kind_of(s) == StageKind::kRing;
    const bool is_exchange = digits.kind_of(s) == StageKind::kExchange;
    if (!is_exchange) held /= static_cast<double>(r);
    count *= r;
    const FootprintStage stage{is_ring ? 2 : r, held, is_ring ? static_cast<double>(r - 1) : 1.0,
                               is_exchange ? 1.0 : halves_of(options.collective),
                               options.collective != Collective::kAllGather};
    const StagePrice p = add_stage(footprint, stage, pair_latency, options);
    total.fixed += p.fixed;
    total.slope += p.slope;
  }
  footprint.active *= count;
  return total;
}

StagePrice add_fold(Footprint& footprint, double pair_latency, const ModelOptions& options) {
  return add_stage(footprint,
                   {2, 1 / static_cast<double>(footprint.active), 1, halves_of(options.collective),
                    options.collective != Collective::kAllGather},
                   pair_latency, options);
}

double halves_of(Collective collective) { return collective == Collective::kAllReduce ? 2 : 1; }

double transfer_out(const Footprint& footprint, double size_floats, const ModelOptions& options) {
  double worst = 0;
  for (const FootprintLink& use : footprint.links) {
    double epsilon = 0;
    const double load = static_cast<double>(use.active) / static_cast<double>(footprint.active);
    const double beta = link_seconds(use.link, load, use.active, options, epsilon);
    worst = std::max(worst, beta + epsilon);
  }
  return 2 * size_floats * worst;
}

Footprint counted_footprint(const std::vector<Piece>& placement, const Topology& topology, NodeId node, bool with_top,
                            const BusyTimes* busy) {
  Footprint out;
  const ExpandedTree tree = expand(topology, node);
  std::vector<std::int64_t> below(tree.size(), 0);
  std::vector<double> latency(tree.size(), 0);
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto parent = static_cast<std::size_t>(std::max(tree.parent[i], 0));
    const bool counts = i > 0 || with_top;
    latency[i] = (counts ? topology.node(tree.node[i]).alpha : 0) + (i == 0 ? 0 : latency[parent]);
  }
  std::vector<std::int32_t> owners;
  for (const Piece& p : placement) owners.push_back(p.owner);
  std::sort(owners.begin(), owners.end());
  owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
  out.active = static_cast<std::int64_t>(owners.size());
  for (const std::int32_t rank : owners) {
    const std::int32_t leaf = tree.leaf[static_cast<std::size_t>(rank)];
    out.latency = std::max(out.latency, latency[static_cast<std::size_t>(leaf)]);
    for (std::int32_t i = leaf; i >= 0; i = tree.parent[static_cast<std::size_t>(i)])
      ++below[static_cast<std::size_t>(i)];
  }
  for (std::size_t i = with_top ? 0 : 1; i < tree.size(); ++i) {
    if (below[i] == 0 && busy == nullptr) continue;
    const double up = busy != nullptr ? busy->up[i] : 0;
    const double down = busy != nullptr ? busy->down[i] : 0;
    merge_link(out.links, {topology.node(tree.node[i]).uplink, below[i], up, down});
  }
  for (std::int32_t rank = 0; rank < tree.num_ranks(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const bool is_active = std::binary_search(owners.begin(), owners.end(), rank);
    if (!is_active && busy == nullptr) continue;
    const ServerParams& server = topology.node(tree.node[static_cast<std::size_t>(tree.leaf[r])]).server;
    merge_server(out.servers, busy != nullptr ? ServerUse{server, busy->calculation[r], busy->handling[r]}
                                              : ServerUse{server, 0, 0});
  }
  return out;
}

}  // namespace gar
