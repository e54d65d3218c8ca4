#include "runtime/mpi/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <sstream>

#include "gar/errors.hpp"
#include "gar/topology_io.hpp"

namespace gar {

std::vector<std::int64_t> servers_of(const Topology& network, const Hosts& hosts) {
  const auto num_ranks = static_cast<std::int64_t>(hosts.host_of.size());
  if (network.num_servers() == num_ranks) {
    std::vector<std::int64_t> out(hosts.host_of.size());
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  if (network.num_servers() == hosts.num_hosts) return {hosts.host_of.begin(), hosts.host_of.end()};
  throw InvalidArgument(
      fmt::format("the topology '{}' has {} server{}, but there are {} ranks on {} host{}; accepted is one server per "
                  "rank, or one per host",
                  network.name(), network.num_servers(), network.num_servers() == 1 ? "" : "s", num_ranks,
                  hosts.num_hosts, hosts.num_hosts == 1 ? "" : "s"));
}

std::uint64_t hash_of(const Topology& topology) {
  std::ostringstream text;
  write_topology(topology, text);
  return std::hash<std::string>()(text.str());
}

// With one at a time a port stands idle while the next sender is told, and waits whenever that one is busy elsewhere;
// two lose little (measured on the virtual cluster, docs/validation.md).
constexpr double kLeastSenders = 2;

int admitted_senders(const Topology& topology) {
  const char* text = std::getenv("GAR_MAX_SENDERS");  // NOLINT(concurrency-mt-unsafe): only read
  if (text != nullptr && *text != '\0') {
    int value = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, value);
    if (error != std::errc() || stop != end || value < 0) {
      throw InvalidArgument(fmt::format(
          "GAR_MAX_SENDERS={} in the environment: accepted is a number of senders, or 0 for no limit", text));
    }
    return value;
  }
  double least = 0;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const LinkParams& link = topology.node(id).uplink;
    if (id == topology.root() || (link.epsilon <= 0 && link.max_senders <= 0)) continue;
    // Every rank below the link admits on its own.
    const double share = link.incast_threshold / static_cast<double>(topology.num_servers(id));
    const double senders = std::clamp(std::floor(link.max_senders > 0 ? link.max_senders : share), kLeastSenders, 1e6);
    least = least == 0 ? senders : std::min(least, senders);
  }
  return static_cast<int>(least);
}

}  // namespace gar
