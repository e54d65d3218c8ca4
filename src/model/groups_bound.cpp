// A price is the slowest of many ways up the groups: that of every innermost group is one. Each of its stages takes at
// least its longest path, its busiest link and its slowest rank, of which some are looked at: those at both ends of the
// group and in its middle, with the links above them. Stages of siblings that share a link are priced together and
// cost more.
//
// The innermost stage, m ranks that exchange directly: of a link with k of them below it k (m - k) pieces of 1/m leave,
// from k senders, and as many come in from m - k.
//
// A stage between g groups that have M ranks together, where everyone owns 1/M afterwards. Of the groups, h have ranks
// below a link, R of them in all. Each position of the vector is held by one rank of every group.
//
//   - The way back: what each of the R ranks owns goes to the holders in all other groups; g - h at least are not below
//     the link. So R (g - h)/M leaves from R senders.
//   - The way there: that comes in, from g - h senders at least.
//   - And the R ranks hold R/large at least, if large is the size of the largest group. Of each position that is owned
//     below the link they keep up to h, and R/M is owned there: so R/large - h R/M leaves. Every rank has a part in
//     that if no h groups can own all that it holds. Where groups hold intervals, what one rank holds is held by three
//     ranks of another group at most.
#include "model/groups_bound.hpp"

#include <algorithm>

namespace gar {

/// What is asked.
struct GroupsBound::Query {
  const std::vector<std::int64_t>& factors;
  double size = 0;
  const std::function<double(std::int64_t distance)>& path;
  bool has_equal_shares = false;
};

/// Ranks that a stage brings together, in groups.
struct GroupsBound::Group {
  std::size_t level = 0;
  std::int64_t first = 0;
  std::int64_t members = 0;
  std::int64_t groups = 0;  // at level 0 each rank is one
  std::int64_t small = 0;   // members of a group
  std::int64_t large = 0;
  std::int64_t num_large = 0;  // groups that have one more; these come first
  bool is_fair = false;        // everyone owns as much afterwards

  /// Which of the groups a rank is in.
  [[nodiscard]] std::int64_t group_of(std::int64_t rank) const {
    const std::int64_t at = rank - first;
    return at < num_large * large ? at / large : num_large + (at - num_large * large) / small;
  }
};

/// Seconds per half that the busiest link takes.
struct GroupsBound::Loads {
  double scatter = 0;
  double gather = 0;
};

GroupsBound::GroupsBound(const Topology& topology, const ModelOptions& options)
    : topology_(topology), options_(options), tree_(make_pricing_tree(topology, topology.root())) {
  bool is_first = true;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    if (!topology.node(id).is_server()) continue;
    const ServerParams server = known_to(options.kind, topology.node(id).server);
    if (is_first) least_ = server;
    is_first = false;
    least_.gamma = std::min(least_.gamma, server.gamma);
    least_.delta = std::min(least_.delta, server.delta);
    least_.mu = std::min(least_.mu, server.mu);
  }
}

void GroupsBound::add_link(const Group& group, double piece, std::int32_t instance, Loads& loads) const {
  const auto i = static_cast<std::size_t>(instance);
  const LinkParams& link = topology_.node(tree_.tree.node[i]).uplink;
  const std::int64_t begin = std::max<std::int64_t>(tree_.tree.first_rank[i], group.first);
  const std::int64_t end = std::min<std::int64_t>(tree_.tree.last_rank[i], group.first + group.members);
  const std::int64_t below = end - begin;
  const auto offer = [&](double& busiest, double load, std::int64_t senders) {
    const LinkCost cost = cost_of_load(link, load, senders, options_);
    busiest = std::max(busiest, cost.beta + cost.epsilon);
  };
  if (group.level == 0) {
    const double load = static_cast<double>(below * (group.members - below)) * piece;
    offer(loads.scatter, load, std::max(below, group.members - below));
    loads.gather = loads.scatter;
    return;
  }
  const std::int64_t here = group.group_of(end - 1) - group.group_of(begin) + 1;
  if (here >= group.groups || !group.is_fair) return;
  const auto ranks = static_cast<double>(below);
  const double moved = ranks * static_cast<double>(group.groups - here) * piece;
  offer(loads.gather, moved, below);
  offer(loads.scatter, moved, group.groups - here);
  const bool is_even = group.num_large == 0;
  const bool all_send = is_even || (group.level == 1 && group.members > 3 * here * group.large);
  const double kept = static_cast<double>(here) * ranks * piece;
  const double held = ranks * piece * static_cast<double>(group.members) / static_cast<double>(group.large);
  if (held > kept) offer(loads.scatter, held - kept, all_send ? below : 1);
}

GroupsBound::Loads GroupsBound::loads_at(const Query& query, const Group& group, std::int64_t rank) const {
  Loads out;
  const double piece = query.size / static_cast<double>(group.members);
  for (std::int32_t i = tree_.tree.leaf[static_cast<std::size_t>(rank)]; i > 0;
       i = tree_.tree.parent[static_cast<std::size_t>(i)]) {
    const auto at = static_cast<std::size_t>(i);
    const bool has_all =
        tree_.tree.first_rank[at] <= group.first && group.first + group.members <= tree_.tree.last_rank[at];
    if (has_all) break;
    add_link(group, piece, i, out);
  }
  return out;
}

double GroupsBound::of_stage(const Query& query, const Group& group) const {
  const double scatters = options_.collective == Collective::kAllGather ? 0 : 1;
  const double gathers = options_.collective == Collective::kReduceScatter ? 0 : 1;
  const std::int64_t last = group.first + group.members - 1;
  const bool is_even = group.num_large == 0;
  const auto to_rank = [](std::int64_t rank) { return static_cast<std::int32_t>(rank); };
  double latency = 0;
  if (group.level == 0) {
    latency = path_latency(tree_, topology_, to_rank(group.first), to_rank(last));
  } else if (is_even) {
    latency =
        path_latency(tree_, topology_, to_rank(group.first), to_rank(group.first + (group.groups - 1) * group.small));
  } else {
    latency = query.path(((group.is_fair ? group.groups - 1 : group.groups / 2) - 1) * group.small + 1);
  }
  const auto others = static_cast<double>(group.groups - 1);
  const double piece = query.size / static_cast<double>(group.members);
  Loads busiest;
  double calculation = 0;
  double handling = 0;
  for (const std::int64_t rank : {group.first, group.first + group.members / 2, last}) {
    const Loads loads = loads_at(query, group, rank);
    busiest.scatter = std::max(busiest.scatter, loads.scatter);
    busiest.gather = std::max(busiest.gather, loads.gather);
    const auto leaf = static_cast<std::size_t>(tree_.tree.leaf[static_cast<std::size_t>(rank)]);
    const ServerParams own = known_to(options_.kind, topology_.node(tree_.tree.node[leaf]).server);
    const ServerParams& server = group.is_fair ? own : least_;
    calculation = std::max(calculation, piece * (others * server.gamma + (others + 2) * server.delta));
    handling = std::max(handling, group.is_fair ? others * (server.mu + least_.mu) : (others + 1) * least_.mu);
  }
  return scatters * (latency + busiest.scatter + handling + calculation) +
         gathers * (latency + busiest.gather + handling);
}

double GroupsBound::of_group(const Query& query, std::size_t level, std::int64_t first, std::int64_t members) const {
  if (members < 2) return 0;
  Group group;
  group.level = level;
  group.first = first;
  group.members = members;
  group.groups = level == 0 ? members : std::min(query.factors[level], members);
  group.small = members / group.groups;
  group.large = (members + group.groups - 1) / group.groups;
  group.num_large = members % group.groups;
  group.is_fair =
      group.num_large == 0 || query.has_equal_shares ||
      (holds_intervals(query.factors, group.small, level) && holds_intervals(query.factors, group.large, level));
  double slowest = 0;
  for (std::int64_t i = 0, at = first; level > 0 && i < group.groups; ++i) {
    const std::int64_t size = i < group.num_large ? group.large : group.small;
    slowest = std::max(slowest, of_group(query, level - 1, at, size));
    at += size;
  }
  return slowest + of_stage(query, group);
}

double GroupsBound::seconds(const std::vector<std::int64_t>& factors, double size_floats,
                            const std::function<double(std::int64_t distance)>& path, bool has_equal_shares) const {
  constexpr double kRounding = 1e-9;  // shares are whole units
  const Query query{factors, size_floats, path, has_equal_shares};
  return (1 - kRounding) * of_group(query, factors.size() - 1, 0, topology_.num_servers());
}

}  // namespace gar
