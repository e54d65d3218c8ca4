// Connects a group of ranks that know each other's addresses: over TCP, and through shared memory inside a host. Used
// when a communicator is made, and again for those who are left when it has lost some.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/network_costs.hpp"
#include "runtime/transports/tcp/mesh.hpp"
#include "runtime/transports/tcp/tcp_transport.hpp"
#include "runtime/transports/tcp/transport_probe.hpp"

namespace gar {

struct TcpGroup {
  MeshMember member;
  HostMap hosts;
};

/// The key for what ranks of a job say to each other: `purpose` is what about. Different for every nonce and
/// generation.
Digest job_key(const std::string& secret, const Nonce& nonce, std::string_view purpose, std::uint64_t generation);

/// Collective. Returns when all are connected and nobody listens any more. Takes operation 1.
std::unique_ptr<TcpTransport> connect_messages(const TcpGroup& group, File listening);

/// Collective. Messages between ranks of a host go through its memory from now on. `name` is new for each group.
/// `messages` are taken over unless it throws.
std::unique_ptr<Transport> share_memory(std::unique_ptr<TcpTransport>& messages, const TcpGroup& group,
                                        TransportProbe& probe, const std::string& name, std::int64_t staging_bytes);

}  // namespace gar
