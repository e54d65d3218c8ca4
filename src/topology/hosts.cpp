#include "topology/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "gar/errors.hpp"

namespace gar {
namespace {

/// Ranks from `begin` up to, and without, `end`.
struct RankRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(end - begin); }
};

/// The runs of equal values within a range.
std::vector<RankRange> runs_of(const std::vector<int>& values, RankRange range) {
  std::vector<RankRange> out;
  for (std::size_t r = range.begin; r < range.end; ++r) {
    if (r == range.begin || values[r] != values[r - 1]) out.push_back({r, r});
    out.back().end = r + 1;
  }
  return out;
}

/// Is every value in one run only?
bool is_contiguous(const std::vector<int>& values, const std::vector<RankRange>& runs) {
  std::vector<int> seen;
  for (const RankRange& run : runs) seen.push_back(values[run.begin]);
  std::sort(seen.begin(), seen.end());
  return std::adjacent_find(seen.begin(), seen.end()) == seen.end();
}

class HostTree {
 public:
  HostTree(const std::vector<int>& host_of, const std::vector<int>& numa_of, const HostNodes& kinds,
           const std::vector<std::vector<int>>& switches_of)
      : host_of_(host_of), numa_of_(numa_of), kinds_(kinds), switches_of_(switches_of) {}

  Topology build(std::string name) && {
    const RankRange all{0, host_of_.size()};
    const std::vector<RankRange> hosts = runs_of(host_of_, all);
    NodeId root = -1;
    if (!is_contiguous(host_of_, hosts)) {
      root = add_above(kinds_.network, add(kinds_.lone_rank), all.size());
    } else {
      rank_ = add(kinds_.rank);
      root = hosts.size() == 1 ? add_host(all) : add_above_hosts(kinds_.network, all, 0);
    }
    return {std::move(name), std::move(nodes_), root};
  }

 private:
  NodeId add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeId>(nodes_.size()) - 1;
  }
  NodeId add_above(Node node, NodeId child, std::int64_t count) {
    node.children = {{child, count}};
    return add(std::move(node));
  }
  NodeId add_host(RankRange ranks) {
    const std::vector<RankRange> numas = numa_of_.empty() ? std::vector{ranks} : runs_of(numa_of_, ranks);
    if (numas.size() == 1 || !is_contiguous(numa_of_, numas)) return add_above(kinds_.host, rank_, ranks.size());
    Node host = kinds_.divided_host;
    for (const RankRange& numa : numas) host.children.push_back({add_above(kinds_.numa, rank_, numa.size()), 1});
    return add(std::move(host));
  }
  /// `node` above its ranks: the switches of `level` are below it, or the hosts where there are no more levels.
  NodeId add_above_hosts(Node node, RankRange ranks, std::size_t level) {
    const bool has_switches = level < switches_of_.size();
    for (const RankRange& part : runs_of(has_switches ? switches_of_[level] : host_of_, ranks)) {
      const NodeId child = has_switches ? add_above_hosts(kinds_.switches[level], part, level + 1) : add_host(part);
      node.children.push_back({child, 1});
    }
    return add(std::move(node));
  }

  const std::vector<int>& host_of_;
  const std::vector<int>& numa_of_;
  const HostNodes& kinds_;
  const std::vector<std::vector<int>>& switches_of_;
  std::vector<Node> nodes_;
  NodeId rank_ = -1;
};

}  // namespace

Topology topology_of_hosts(std::string name, const std::vector<int>& host_of, const std::vector<int>& numa_of,
                           const HostNodes& nodes, const std::vector<std::vector<int>>& switches_of) {
  return HostTree(host_of, numa_of, nodes, switches_of).build(std::move(name));
}

std::vector<std::int64_t> servers_of_ranks(const Topology& network, const std::vector<int>& host_of) {
  const auto num_ranks = static_cast<std::int64_t>(host_of.size());
  if (network.num_servers() == num_ranks) {
    std::vector<std::int64_t> out(host_of.size());
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  const std::int64_t num_hosts = 1 + *std::max_element(host_of.begin(), host_of.end());
  if (network.num_servers() == num_hosts) return {host_of.begin(), host_of.end()};
  throw InvalidArgument(
      fmt::format("the topology '{}' has {} server{}, but there are {} ranks on {} host{}; expected one server per "
                  "rank, or one per host",
                  network.name(), network.num_servers(), network.num_servers() == 1 ? "" : "s", num_ranks, num_hosts,
                  num_hosts == 1 ? "" : "s"));
}

void check_order(const Topology& network, const std::vector<std::int64_t>& server_of) {
  if (std::is_sorted(server_of.begin(), server_of.end())) return;
  throw InvalidArgument(
      fmt::format("the topology '{}' has one server per host, and the ranks of a host do not follow each other; "
                  "expected a job whose ranks fill one host after the other",
                  network.name()));
}

}  // namespace gar
