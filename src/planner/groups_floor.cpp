// An exchange inside of the groups, then one between them, in which every active rank gets an equal share of the vector
// (Asymmetric CPS). uneven_hcps_bound() says why the latter takes at least as long as one of equal groups: on a link
// with u active ranks below it, each of them gets its share from as many others as there are other groups, and nobody
// sends to two of them; on the way back the small groups, whose ranks hold more, get at least as much from as many.
//
// In one piece the slowest way counts, so it takes at least as long as the way over a large group and over a small one.
// In chunks the first chunk takes the way that is critical for the whole vector, which may be any, so every term is the
// least of both. The turns are at least those of the links and servers of a child in a small group.
#include "planner/groups_floor.hpp"

#include <algorithm>

namespace gar {

GroupsFloor groups_floor(const Footprint& child, const UnevenGroups& uneven, double size_floats,
                         const ModelOptions& options) {
  const double halves = halves_of(options.collective);
  const bool reduces = options.collective != Collective::kAllGather;
  const auto active = static_cast<double>(child.active);
  const auto after = [&](std::int64_t members) {
    Footprint f = child;
    // Ranks that are not active do nothing any more, and it is not known which servers these are.
    if (!uneven.all_are_active) f.servers = best_server(child).servers;
    if (members > 1) {
      const double piece = 1 / (active * static_cast<double>(members));
      add_stage(f, {members, piece, 1, halves, reduces}, uneven.pair_latency, options);
    }
    const double share = 1 / (active * static_cast<double>(uneven.num_children));
    add_stage(f, {uneven.groups, share, 1, halves, reduces}, uneven.pair_latency, options);
    if (!uneven.all_are_active) f.servers.insert(f.servers.end(), child.servers.begin(), child.servers.end());
    return f;
  };
  const Footprint large = after(uneven.large);
  GroupsFloor out;
  out.footprint = after(uneven.large - 1);
  Footprint& f = out.footprint;
  out.whole = std::max(f.seconds(size_floats), large.seconds(size_floats));
  f.fixed.alpha = std::min(f.fixed.alpha, large.fixed.alpha);
  f.fixed.mu = std::min(f.fixed.mu, large.fixed.mu);
  f.slope.beta = std::min(f.slope.beta + f.slope.epsilon, large.slope.beta + large.slope.epsilon);
  f.slope.epsilon = 0;
  f.slope.gamma = std::min(f.slope.gamma, large.slope.gamma);
  f.slope.delta = std::min(f.slope.delta, large.slope.delta);
  return out;
}

Footprint best_server(const Footprint& servers) {
  Footprint out = servers;
  out.links = {servers.links.front()};
  LinkParams& link = out.links.front().link;
  for (const FootprintLink& use : servers.links) {
    link.beta = std::min(link.beta, use.link.beta);
    link.epsilon = std::min(link.epsilon, use.link.epsilon);
    link.incast_threshold = std::max(link.incast_threshold, use.link.incast_threshold);
  }
  out.servers = {{servers.servers.front().server, 0, 0}};
  ServerParams& server = out.servers.front().server;
  for (const ServerUse& use : servers.servers) {
    server.gamma = std::min(server.gamma, use.server.gamma);
    server.delta = std::min(server.delta, use.server.delta);
    server.mu = std::min(server.mu, use.server.mu);
  }
  return out;
}

}  // namespace gar
