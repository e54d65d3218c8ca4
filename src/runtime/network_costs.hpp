// The network between ranks on several hosts as a topology with measured parameters.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "gar/topology.hpp"

namespace gar {

/// Where the ranks of a communicator run.
struct HostMap {
  std::vector<int> host_of;      ///< of every rank: numbers from 0 in the order of their first ranks
  std::vector<int> numa_of;      ///< of every rank: NUMA node of its host that it is bound to; -1: none, or not known
  std::vector<double> cores_of;  ///< of every rank: cores that its host offers to this job, the pretended hosts' share
  int num_hosts = 1;
  /// Switches between hosts and network, level by level from the top: of every rank, the number of the one above it.
  std::vector<std::vector<int>> switches_of;
  std::vector<int> members;  ///< ranks of this rank's host, ascending
};

/// GAR_FAKE_HOSTS, a test aid that lets one machine run what several would: the ranks of every host are divided into so
/// many pretended hosts of consecutive ranks. 1 when it is not set. Throws InvalidArgument.
int fake_hosts_from_environment();

/// What a measurement needs of whatever connects the ranks. All functions are collective.
class NetworkProbe {
 public:
  static constexpr int kMostBytes = 256 << 10;  ///< of a message

  NetworkProbe() = default;
  NetworkProbe(const NetworkProbe&) = delete;
  NetworkProbe& operator=(const NetworkProbe&) = delete;
  virtual ~NetworkProbe() = default;

  /// A message that every rank sends to another one, and one that it gets.
  struct Shift {
    int to = -1;    ///< -1: no rank, here and below
    int from = -1;  ///< another one for every message of a call
  };

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  virtual void barrier() = 0;
  /// Several at once, of `bytes` each: at most kMostBytes together.
  virtual void shift(std::span<const Shift> messages, int bytes) = 0;
  /// All ranks' values, in the order of ranks.
  template <class T>
  std::vector<T> all_gather(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> out(static_cast<std::size_t>(size()), value);
    gather_bytes(std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(out)));
    return out;
  }

 protected:
  /// `out` has room for all ranks' bytes.
  virtual void gather_bytes(std::span<const std::byte> in, std::span<std::byte> out) = 0;
};

/// Collective. A tree of switches (where they are known), hosts, NUMA nodes (where ranks are bound to several) and
/// ranks; parameters come from a measurement of some milliseconds, the same on all ranks. `is_shared`: the ranks of a
/// host use shared memory and not messages.
Topology measure_network(const std::string& name, NetworkProbe& probe, const HostMap& hosts, bool is_shared);

/// Collective. A rank among others of its host, for a network that is given; measured where a host has several ranks,
/// the same on all ranks. gamma and delta are left open.
Node measure_rank(NetworkProbe& probe, const HostMap& hosts, bool is_shared);

/// Collective. A network that is given, for short vectors: with what a step of short messages takes here, and what a
/// rank does for each, measured by all ranks at once. Nothing where the network says what a message costs, or where
/// there is one host.
std::optional<Topology> measure_messages(NetworkProbe& probe, const HostMap& hosts, const Topology& network);

/// The tree alone: what groups of each level cost (ranks, NUMA nodes, hosts, switches).
struct LevelCosts {
  double latency = 0;  ///< seconds of a short message between two neighbours
  double beta = 0;     ///< seconds per float of a group's link while all groups use theirs
  double mu = 0;       ///< seconds of a rank for a message that it sends or receives
};
struct NetworkCosts {
  LevelCosts rank;
  LevelCosts numa;
  LevelCosts host;
  std::vector<LevelCosts> switches;  ///< of each level of HostMap::switches_of
  ServerParams server;
};
/// What was measured, with handling messages (mu of the hosts' level, or of the ranks' where there is one host) as a
/// part of the server instead of the latencies: a step with one message each way costs what it did.
NetworkCosts with_mu(NetworkCosts costs);
/// Consecutive ranks with the same host (and NUMA node) form a node of the tree.
Topology network_topology(const std::string& name, const HostMap& hosts, const NetworkCosts& costs);

}  // namespace gar
