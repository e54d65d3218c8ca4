// Digits one after the other (hcps, cps) on any tree, as they are felt by one rank: in every stage it waits for the
// group of ranks that it is in, so for the links above it with what these ranks put on them, for its own additions and
// its own messages. Groups do not wait for each other, so the whole takes at least as long as that of any rank.
#include <algorithm>

#include "gar/model.hpp"
#include "model/digit_loads.hpp"
#include "model/link_loads.hpp"

namespace gar {

namespace {

constexpr std::size_t kMostPlaces = 8;
constexpr std::size_t kMostSeen = 4096;

}  // namespace

DigitsBound::DigitsBound(const Topology& topology, const ModelOptions& options) : options_(options) {
  std::vector<Place> seen;
  std::vector<LinkAbove> above;
  add_places(topology, topology.root(), 0, above, seen);
  const std::size_t wanted = std::min(seen.size(), kMostPlaces);
  for (std::size_t i = 0; i < wanted; ++i) places_.push_back(std::move(seen[i * seen.size() / wanted]));
}

// The first of equal children stands for all of them.
void DigitsBound::add_places(const Topology& topology, NodeId id, std::int64_t first, std::vector<LinkAbove>& above,
                             std::vector<Place>& seen) const {
  const Node& node = topology.node(id);
  if (node.is_server()) {
    if (seen.size() < kMostSeen) seen.push_back({first, known_to(options_.kind, node.server), above});
    return;
  }
  for (const ChildRun& run : node.children) {
    const std::int64_t n = topology.num_servers(run.node);
    above.push_back({topology.node(run.node).uplink, first, first + n});
    add_places(topology, run.node, first, above, seen);
    above.pop_back();
    first += run.count * n;
  }
}

double DigitsBound::seconds(const std::vector<std::int64_t>& factors, double size_floats,
                            const std::function<double(std::int64_t distance)>& path) const {
  constexpr double kRounding = 1e-12;
  const double scatters = options_.collective == Collective::kAllGather ? 0 : 1;
  const double halves = options_.collective == Collective::kAllReduce ? 2 : 1;
  double most = 0;
  for (const Place& place : places_) {
    double seconds = 0;
    double held = size_floats;
    std::int64_t stride = 1;
    for (const std::int64_t radix : factors) {
      if (radix < 2) continue;
      const Stage stage{StageKind::kDirect, stride, radix, {}};
      const std::int64_t block = stride * radix;
      const std::int64_t base = place.rank / block * block;
      const double piece = held / static_cast<double>(radix);
      double busiest = 0;
      for (const LinkAbove& link : place.above) {
        const Crossing c =
            crossing(stage, std::max(link.first - base, std::int64_t{0}), std::min(link.last - base, block));
        const double load = static_cast<double>(c.pieces) * piece;
        for (const std::int64_t senders : {c.senders_out, c.senders_in}) {
          const LinkCost cost = cost_of_load(link.link, load, senders, options_);
          busiest = std::max(busiest, cost.beta + cost.epsilon);
        }
      }
      const double messages = 2 * static_cast<double>(radix - 1) * place.server.mu;
      seconds += halves * (path(stride * (radix - 1)) + busiest + messages);
      seconds +=
          scatters * piece *
          (static_cast<double>(radix - 1) * place.server.gamma + static_cast<double>(radix + 1) * place.server.delta);
      held = piece;
      stride = block;
    }
    most = std::max(most, seconds);
  }
  return (1 - kRounding) * most;
}

}  // namespace gar
