// Measured AllReduces against the links of a network that somebody describes.
//
// The limit is the strongest cut of the network (src/model/lower_bound.cpp), which no algorithm beats; for equal links
// of one switch it is busbw = the speed of a link. Where it is known what ran, the row is judged by what this algorithm
// needs on these links, so that a ring over many hosts is not blamed for its latencies. Of a stated latency nobody
// knows how it was found, so only rows are judged in which it hardly counts, and of these the longest, at which
// benchmarks settle.
#include "gar/link_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/index.hpp"
#include "gar/errors.hpp"
#include "gar/format.hpp"
#include "gar/limits.hpp"
#include "gar/model.hpp"
#include "gar/network_words.hpp"

namespace gar {
namespace {

constexpr double kLinksDecide = 4;      // links take this many times as long as latency
constexpr double kLongest = 0.25;       // of the longest vector: what is judged
constexpr double kMostShare = 1.05;     // what is faster is too fast
constexpr double kLeastOfClass = 0.85;  // a link that is this busy might be one of a slower class
constexpr double kMostSlow = 0.1;       // of the judged rows

/// The network without its servers' work.
Topology links_alone(const Topology& topology) {
  std::vector<Node> nodes;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    Node node = topology.node(id);
    node.server = {};
    nodes.push_back(std::move(node));
  }
  return {topology.name(), std::move(nodes), topology.root()};
}

/// What the links need for a row, and what latency does.
struct Need {
  double links_s = 0;
  double latency_s = 0;
};

class Judge {
 public:
  Judge(const Topology& topology, std::int64_t num_ranks)
      : network_(links_alone(topology)), num_ranks_(num_ranks), options_(metered({}, network_)) {}

  [[nodiscard]] const Topology& network() const { return network_; }
  [[nodiscard]] LowerBound bound(double floats) const { return lower_bound(network_, floats); }

  Need need_of(const ResultRow& row, const LowerBound& limit) {
    const double floats = row.bytes / 4;
    // The fewest steps in which links can be used well: halving and doubling.
    const double steps = 2 * std::ceil(std::log2(static_cast<double>(num_ranks_)));
    const Need least{limit.bandwidth, steps * limit.alpha};
    if (row.algorithm.empty()) return least;
    const AlgorithmSpec spec = parse_algorithm(row.algorithm);
    if (is_tree_planner(spec)) return least;
    const PricedPlan plan(build_plan(spec, num_ranks_), network_, options_);
    const Terms terms = plan.cost(floats);
    return {std::max(limit.bandwidth, terms.beta + terms.epsilon), terms.alpha};
  }

 private:
  Topology network_;
  std::int64_t num_ranks_;
  ModelOptions options_;  // all rows together count against one limit
};

double bus_share(std::int64_t num_ranks) {
  return 2 * static_cast<double>(num_ranks - 1) / static_cast<double>(num_ranks);
}

std::string rate(double bytes_per_s) { return format_bytes(bytes_per_s) + "/s"; }

/// The class of links that would explain the speed, if that is clearly a slower one.
std::string slower_class_words(double share, double link_beta) {
  const double stated = 32 / link_beta;
  std::string names;
  for (const NetworkClass& one : network_classes()) {
    const double of_class = share * stated / one.bandwidth;
    if (!one.is_link || one.bandwidth > 0.9 * stated || of_class > 1 || of_class < kLeastOfClass) continue;
    names += fmt::format("{}{}", names.empty() ? "" : " or ", one.name);
  }
  if (names.empty()) return "";
  return fmt::format(
      "{} would explain that: check for a link that came up at a lower speed, or traffic that went over another "
      "network",
      names);
}

/// The fastest of the longest vectors, which speaks for the network.
const LimitRow& best_of_longest(const std::vector<LimitRow>& rows) {
  return *std::max_element(rows.begin(), rows.end(), [](const LimitRow& a, const LimitRow& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.measured_s > b.measured_s;
  });
}

/// Is the limit the speed of a server's link, as in all networks of equal links and one switch?
bool is_link_speed(const LimitRow& row, const Topology& network) {
  const double link = 4 / network.node(0).uplink.beta;
  return std::abs(row.bus_bytes_per_s / row.share() - link) < 1e-6 * link;
}

/// "3 GB/s busbw for 64 MB is 24% of what 100 Gbit/s allows (12.5 GB/s)".
std::string share_words(const LimitRow& row, const LowerBound& limit, const Topology& network) {
  const bool is_own = is_link_speed(row, network);
  return fmt::format(
      "{} busbw for {} is {:.0f}% of what {} allows ({}){}", rate(row.bus_bytes_per_s), format_bytes(row.bytes),
      100 * row.share(), is_own ? format_link_speed(network.node(0).uplink.beta) : "the stated network",
      rate(row.bus_bytes_per_s / row.share()), is_own ? "" : fmt::format("; the limit is that {}", limit.cut));
}

/// What short vectors take, which nobody judges.
std::string latency_words(const std::vector<LimitRow>& rows, double path_s) {
  const LimitRow& shortest = *std::min_element(rows.begin(), rows.end(),
                                               [](const LimitRow& a, const LimitRow& b) { return a.bytes < b.bytes; });
  if (shortest.limit_s * kLinksDecide > shortest.measured_s || path_s <= 0) return "";
  return fmt::format("{} take {}, {:.1f} times the stated latency of {} (not judged)", format_bytes(shortest.bytes),
                     format_seconds(shortest.measured_s, 3), shortest.measured_s / path_s, format_seconds(path_s, 3));
}

void judge_rows(LimitDiagnosis& out, const std::vector<Need>& needs) {
  double longest = 0;
  for (const LimitRow& row : out.rows) longest = std::max(longest, row.bytes);
  for (std::size_t i = 0; i < out.rows.size(); ++i) {
    LimitRow& row = out.rows[i];
    row.is_judged = row.bytes >= kLongest * longest && needs[i].links_s >= kLinksDecide * needs[i].latency_s;
    if (!row.is_judged) continue;
    row.verdict = row.share() > kMostShare                            ? Verdict::kFast
                  : row.expected_s / row.measured_s < out.least_share ? Verdict::kSlow
                                                                      : Verdict::kNormal;
  }
}

/// The verdict over all rows, in words.
void conclude(LimitDiagnosis& out, const std::vector<ResultRow>& rows, const Topology& network) {
  const auto count = [&](auto holds) { return std::count_if(out.rows.begin(), out.rows.end(), holds); };
  const auto judged = count([](const LimitRow& r) { return r.is_judged; });
  const auto slow = count([](const LimitRow& r) { return r.verdict == Verdict::kSlow; });
  const auto fast = count([](const LimitRow& r) { return r.verdict == Verdict::kFast; });
  out.is_judged = judged > 0;
  out.is_normal = judged > 0 && fast == 0 && static_cast<double>(slow) <= kMostSlow * static_cast<double>(judged);
  if (judged == 0) {
    out.words.emplace_back("all vectors are so short that latency decides, and nothing is judged; measure longer ones");
    return;
  }
  if (fast > 0) {
    out.words.push_back(fmt::format(
        "{} of the {} longest results are faster than these links can be: the network is faster than stated, or "
        "several ranks share a host",
        fast, judged));
    return;
  }
  if (out.is_normal) {
    out.words.push_back(fmt::format("{:.0f}% and more is normal", 100 * out.least_share));
    return;
  }
  out.words.push_back(fmt::format("{} of the {} longest results are below {:.0f}% of what is possible", slow, judged,
                                  100 * out.least_share));
  const LimitRow& best = best_of_longest(out.rows);
  if (is_link_speed(best, network) && best.verdict == Verdict::kSlow) {
    const std::string words = slower_class_words(best.share(), network.node(0).uplink.beta);
    if (!words.empty()) out.words.push_back(words);
  }
  if (std::any_of(rows.begin(), rows.end(), [](const ResultRow& r) { return r.algorithm.empty(); })) {
    out.words.emplace_back(
        "is it the network, or the algorithm that the library chose? gar bench --algo native,ring on these hosts "
        "tells");
  }
}

}  // namespace

LimitDiagnosis diagnose_by_links(const Topology& topology, const std::vector<ResultRow>& rows, std::int64_t num_ranks,
                                 double least_share) {
  if (rows.empty()) throw InvalidArgument("there are no results to judge");
  check_work(kResultLimit, static_cast<double>(num_ranks) * static_cast<double>(rows.size()), "the table of results");
  std::vector<std::int64_t> servers(idx(num_ranks));
  std::iota(servers.begin(), servers.end(), std::int64_t{0});
  Judge judge(num_ranks == topology.num_servers() ? topology : place_ranks(topology, servers), num_ranks);
  LimitDiagnosis out;
  out.least_share = least_share;
  std::vector<Need> needs;
  for (const ResultRow& row : rows) {
    const LowerBound limit = judge.bound(row.bytes / 4);
    if (!(limit.bandwidth > 0)) {
      throw InvalidArgument(
          "the links of this network cost no time, so that nothing can be said against them; expected links with a "
          "speed, such as star:12@100Gbit/s");
    }
    const Need need = needs.emplace_back(judge.need_of(row, limit));
    out.rows.push_back({.bytes = row.bytes,
                        .measured_s = row.seconds,
                        .limit_s = limit.seconds(),
                        .expected_s = row.algorithm.empty() ? limit.seconds() : need.links_s + need.latency_s,
                        .bus_bytes_per_s = bus_share(num_ranks) * row.bytes / row.seconds});
  }
  judge_rows(out, needs);
  const LowerBound limit = judge.bound(best_of_longest(out.rows).bytes / 4);
  out.words.push_back(share_words(best_of_longest(out.rows), limit, judge.network()));
  if (const std::string words = latency_words(out.rows, limit.alpha); !words.empty()) out.words.push_back(words);
  conclude(out, rows, judge.network());
  return out;
}

}  // namespace gar
