// Single links, measured one by one.
#include "measure/fit/links.hpp"

#include <algorithm>
#include <map>

#include "base/index.hpp"
#include "gar/stats.hpp"

namespace gar::measure {
namespace {

constexpr int kShortTimes = 3;
constexpr int kLongTimes = 5;
/// Short messages have this part of the long ones' length: still shorter ones would just fill buffers.
constexpr std::int64_t kShortPart = 4;
constexpr std::size_t kMaxServerLinks = 64;
/// A link is full if its servers take this many times as long over it as over their own links.
constexpr double kFilled = 1.15;

LinkPair::End end_of(const Topology& topology, const ExpandedTree& tree, std::size_t index) {
  const std::int32_t rank = tree.first_rank[index];
  return {topology.instance_name(rank, tree.depth[index]), topology.height(tree.node[index]), rank};
}

std::int64_t num_servers_below(const ExpandedTree& tree, std::size_t index) {
  return tree.last_rank[index] - tree.first_rank[index];
}

/// The other end of this rank's pair; -1: none.
int partner_of(const std::vector<LinkPair>& pairs, int rank) {
  for (const LinkPair& pair : pairs) {
    const std::int64_t in_a = rank - pair.a.first_server;
    const std::int64_t in_b = rank - pair.b.first_server;
    if (in_a >= 0 && in_a < pair.num_servers) return static_cast<int>(pair.b.first_server + in_a);
    if (in_b >= 0 && in_b < pair.num_servers) return static_cast<int>(pair.a.first_server + in_b);
  }
  return -1;
}

double slowest_of(const LinkPair& pair, const std::vector<double>& seconds) {
  double out = 0;
  for (const std::int64_t first : {pair.a.first_server, pair.b.first_server}) {
    for (std::int64_t i = 0; i < pair.num_servers; ++i) out = std::max(out, seconds[idx(first + i)]);
  }
  return out;
}

Estimate beta_of(const PairTimes& times, double floats) {
  const double start = median(times.short_s);
  const double all = static_cast<double>(times.pair.num_servers) * floats * (1 - 1.0 / kShortPart);
  const auto beta = [&](double seconds) { return std::max(seconds - start, 0.0) / all; };
  const auto [least, most] = std::minmax_element(times.long_s.begin(), times.long_s.end());
  return {beta(median(times.long_s)), beta(*least), beta(*most), true};
}

}  // namespace

std::vector<std::vector<LinkPair>> link_rounds(const Topology& topology, const std::vector<int>& host_of) {
  const ExpandedTree tree = expand(topology, topology.root());
  std::map<std::int32_t, std::vector<std::size_t>> children;
  for (std::size_t i = 1; i < tree.size(); ++i) children[tree.parent[i]].push_back(i);
  std::map<std::pair<int, std::size_t>, std::vector<LinkPair>> rounds;
  for (const auto& [parent, below] : children) {
    const std::size_t count = below.size();
    const std::size_t num_pairs = count == 2 ? 1 : count;
    for (std::size_t i = 0; i < num_pairs && count > 1; ++i) {
      const std::size_t a = below[i];
      const std::size_t b = below[(i + 1) % count];
      LinkPair pair{end_of(topology, tree, a), end_of(topology, tree, b),
                    std::min(num_servers_below(tree, a), num_servers_below(tree, b))};
      const auto host = [&](const LinkPair::End& end) { return host_of[idx(end.first_server)]; };
      if (host(pair.a) == host(pair.b)) continue;
      const std::size_t turn = i + 1 == count && count % 2 == 1 ? 2 : i % 2;
      const auto height = topology.height(tree.node[idx(parent)]);
      rounds[{height, turn}].push_back(std::move(pair));
    }
  }
  std::vector<std::vector<LinkPair>> out;
  for (auto& [key, pairs] : rounds) out.push_back(std::move(pairs));
  return out;
}

std::vector<LinkProfile> links_of(const std::vector<PairTimes>& times, double floats) {
  std::vector<double> server_betas;
  for (const PairTimes& t : times) {
    if (t.pair.a.level == 0 && t.pair.b.level == 0) server_betas.push_back(beta_of(t, floats).value);
  }
  const double server_beta = median(server_betas);
  std::vector<LinkProfile> out;
  std::size_t num_server_links = 0;
  for (const PairTimes& t : times) {
    Estimate beta = beta_of(t, floats);
    for (const LinkPair::End* end : {&t.pair.a, &t.pair.b}) {
      Estimate own = beta;
      if (end->level > 0 && beta.value * static_cast<double>(t.pair.num_servers) < kFilled * server_beta) {
        own.is_identified = false;
        own.low = 0;
      }
      const auto found =
          std::find_if(out.begin(), out.end(), [&](const LinkProfile& l) { return l.name == end->name; });
      if (found == out.end()) {
        if (end->level == 0) ++num_server_links;
        out.push_back({end->name, end->level, own});
      } else if (own.value < found->beta.value) {
        found->beta = own;
      }
    }
  }
  if (num_server_links > kMaxServerLinks) std::erase_if(out, [](const LinkProfile& link) { return link.level == 0; });
  return out;
}

std::optional<std::vector<LinkProfile>> measure_links(FitEngine& engine, World& world, const Topology& topology,
                                                      const std::vector<int>& host_of, std::int64_t floats) {
  std::vector<PairTimes> times;
  for (const std::vector<LinkPair>& round : link_rounds(topology, host_of)) {
    const std::size_t first = times.size();
    for (const LinkPair& pair : round) times.push_back({pair, {}, {}});
    const int partner = partner_of(round, world.rank());
    const auto measure = [&](std::int64_t bytes, int count, std::vector<double> PairTimes::*member) {
      std::function<void()> body;
      if (partner >= 0) body = [&, bytes] { world.exchange(partner, engine.input(), engine.output(), bytes); };
      for (int i = 0; i <= count; ++i) {
        const std::optional<std::vector<double>> seconds = engine.time_ranks(body);
        if (!seconds) return false;
        if (i == 0) continue;  // warms up
        for (std::size_t p = 0; p < round.size(); ++p) {
          (times[first + p].*member).push_back(slowest_of(round[p], *seconds));
        }
      }
      return true;
    };
    if (!measure(4 * (floats / kShortPart), kShortTimes, &PairTimes::short_s)) return std::nullopt;
    if (!measure(4 * floats, kLongTimes, &PairTimes::long_s)) return std::nullopt;
  }
  return links_of(times, static_cast<double>(floats));
}

}  // namespace gar::measure
