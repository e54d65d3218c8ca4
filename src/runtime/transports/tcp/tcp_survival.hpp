// What ranks over TCP need to go on without some of them (runtime/survival): a second set of connections that carry
// letters, and everything that it takes to connect those who are left. The store is not asked again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gar/tcp.hpp"
#include "runtime/survival/survival.hpp"
#include "runtime/transports/tcp/announcement.hpp"
#include "runtime/transports/tcp/tcp_group.hpp"

namespace gar {

/// What a job needs to take newcomers in (tcp_growth.hpp).
struct TcpDoor {
  Store* store = nullptr;       ///< null: nobody is taken in
  std::string prefix;           ///< of the job's keys in the store
  Nonce nonce{};                ///< the same as long as the job lives; newcomers find it in the store
  std::uint64_t next_seat = 0;  ///< of those who wait: members have seen to the ones before
  /// What newcomers take over from the members' options.
  std::string algorithm;
  std::int64_t latency_bytes = -1;
  bool is_reproducible = false;
  double overlap = 1;
};

/// What the members of a job know, from which later generations are made. Ranks are those of the first generation, and
/// the numbers of newcomers.
struct TcpJob {
  int rank = 0;
  std::vector<int> members;  ///< ascending
  std::uint64_t generation = 0;
  Address own;     ///< of this rank, as it was first; the port means nothing later
  JobTable table;  ///< by rank; of those who are no members nothing is known
  int num_fakes = 1;
  std::string secret;
  TcpPath path = TcpPath::kHierarchy;
  double timeout_s = 30;
  std::int64_t staging_bytes = 0;
  int max_senders = 0;
  TcpDoor door;
};

/// Listens on a free port of this address.
File listen_beside(const Address& address);

/// Collective. `look`: see MeshMember.
std::unique_ptr<Survival> survival_over_tcp(const TcpJob& job, TransportProbe& probe,
                                            const std::function<void()>& look = {});

}  // namespace gar
