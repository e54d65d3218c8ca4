#include "runtime/transports/tcp/tcp_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "runtime/survival/peer_lost.hpp"

namespace gar {

namespace {

constexpr std::int64_t kLeastChunkBytes = 256 << 10;
constexpr double kSharedForever = 1e9;  // between hosts silence is noticed by messages
constexpr int kLooks = 60;

bool is_crowded(const HostMap& hosts, int rank) {
  const int host = hosts.host_of[static_cast<std::size_t>(rank)];
  const auto num_ranks = static_cast<double>(std::count(hosts.host_of.begin(), hosts.host_of.end(), host));
  return num_ranks > hosts.cores_of[static_cast<std::size_t>(rank)];
}

}  // namespace

Digest job_key(const std::string& secret, const Nonce& nonce, std::string_view purpose, std::uint64_t generation) {
  return hmac(std::as_bytes(std::span(secret)),
              {std::as_bytes(std::span(std::string_view("gar job"))), std::as_bytes(std::span(purpose)),
               std::as_bytes(std::span(&generation, 1)), std::span<const std::byte>(nonce)});
}

std::unique_ptr<TcpTransport> connect_messages(const TcpGroup& group, File listening) {
  const MeshMember& member = group.member;
  const auto size = static_cast<std::uint32_t>(member.addresses.size());
  const Introduction own{Purpose::kPeer, 0, static_cast<std::uint32_t>(member.rank), size};
  Reception reception(std::move(listening), member.key, own);
  std::vector<File> sockets = connect_mesh(member, reception);
  for (const File& socket : sockets) {
    // Later than ranks report silence, who know more about it.
    if (socket.fd >= 0) set_silence_limit(socket.fd, 2 * member.timeout_s);
  }
  TcpTransportOptions options;
  options.timeout_s = member.timeout_s;
  options.num_looks = is_crowded(group.hosts, member.rank) ? 0 : kLooks;
  if (group.hosts.num_hosts > 1) options.least_chunk_bytes = kLeastChunkBytes;
  auto out = std::make_unique<TcpTransport>(member.rank, std::move(sockets), std::move(options));
  // When all have come this far, no rank calls any more: nothing listens while the job runs.
  try {
    TransportProbe(*out, 1).barrier();
  } catch (const std::exception& error) {
    out->fail(error.what());
    throw;
  }
  return out;
}

std::unique_ptr<Transport> share_memory(std::unique_ptr<TcpTransport>& messages, const TcpGroup& group,
                                        TransportProbe& probe, const std::string& name, std::int64_t staging_bytes) {
  const HostMap& hosts = group.hosts;
  const int rank = group.member.rank;
  const auto size = static_cast<int>(hosts.host_of.size());
  SegmentShape shape = suitable_shape(static_cast<int>(hosts.members.size()), staging_bytes);
  // The same staging space everywhere, because it decides how operations are cut.
  for (const std::int64_t other : probe.all_gather(shape.staging_bytes)) {
    shape.staging_bytes = std::min(shape.staging_bytes, other);
  }
  const int local_rank =
      static_cast<int>(std::find(hosts.members.begin(), hosts.members.end(), rank) - hosts.members.begin());
  const std::string of_host = fmt::format("{}-{}", name, hosts.host_of[static_cast<std::size_t>(rank)]);
  std::shared_ptr<Segment> segment;
  try {
    segment = join_segment(of_host, local_rank, shape, group.member.timeout_s, group.member.look);
  } catch (const PeerLost& lost) {  // it counts the ranks of this host
    std::vector<int> silent;
    for (const int local : lost.silent()) silent.push_back(hosts.members.at(static_cast<std::size_t>(local)));
    throw PeerLost(lost.what(), std::move(silent));
  }
  auto shared =
      std::make_unique<SharedTransport>(std::move(segment), Membership{rank, size, hosts.members}, kSharedForever);
  TcpTransport* looked_at = messages.get();
  shared->set_idle([looked_at] { looked_at->look(); });
  std::vector<bool> has_other_way(static_cast<std::size_t>(size), false);
  for (const int member : hosts.members) has_other_way[static_cast<std::size_t>(member)] = true;
  messages->leave_to_others(std::move(has_other_way));
  return std::make_unique<HybridTransport>(std::move(shared), std::move(messages));
}

}  // namespace gar
