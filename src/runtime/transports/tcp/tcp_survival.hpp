// What ranks over TCP need to go on without some of them (runtime/survival): a second set of connections that carry
// letters, and everything that it takes to connect those who are left. The store is not asked again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gar/tcp.hpp"
#include "runtime/survival/survival.hpp"
#include "runtime/transports/tcp/announcement.hpp"
#include "runtime/transports/tcp/tcp_group.hpp"

namespace gar {

/// What the members of a job know, from which later generations are made.
struct TcpJob {
  int rank = 0;
  Address own;     ///< of this rank, as it was first; the port means nothing later
  JobTable table;  ///< of the first generation
  int num_fakes = 1;
  std::string secret;
  TcpPath path = TcpPath::kHierarchy;
  double timeout_s = 30;
  std::int64_t staging_bytes = 0;
  int max_senders = 0;
};

/// Collective.
std::unique_ptr<Survival> survival_over_tcp(const TcpJob& job, TransportProbe& probe);

}  // namespace gar
