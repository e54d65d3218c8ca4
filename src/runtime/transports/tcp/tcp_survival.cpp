#include "runtime/transports/tcp/tcp_survival.hpp"

#include <fmt/format.h>

#include <exception>

#include "gar/errors.hpp"
#include "runtime/transports/tcp/tcp_growth.hpp"

namespace gar {

namespace {

class TcpRebuilder final : public Rebuilder {
 public:
  explicit TcpRebuilder(TcpJob job) : job_(std::move(job)) {}

  std::string prepare() override {
    listening_ = listen_beside(job_.own);
    return to_string(bound_address(listening_.fd));
  }

  std::unique_ptr<Transport> rebuild(const Regrouping& regrouping) override {
    const TcpGroup group = group_of(regrouping);
    std::unique_ptr<TcpTransport> messages = connect_messages(group, std::move(listening_));
    messages->set_admission(job_.max_senders);
    const bool is_shared =
        job_.path == TcpPath::kHierarchy && group.hosts.num_hosts < static_cast<int>(regrouping.members.size());
    if (!is_shared) return messages;
    try {
      TransportProbe probe(*messages, 2);
      const std::string name =
          fmt::format("tcp-{}-{}", to_hex(std::span(job_.table.nonce).first(16)), regrouping.generation);
      return share_memory(messages, group, probe, name, job_.staging_bytes);
    } catch (const std::exception& error) {
      if (messages != nullptr) messages->fail(error.what());
      throw;
    }
  }

 private:
  [[nodiscard]] TcpGroup group_of(const Regrouping& regrouping) const {
    TcpGroup out;
    MeshMember& member = out.member;
    member.rank = regrouping.rank;
    member.key = job_key(job_.secret, job_.table.nonce, "data", regrouping.generation);
    member.own = job_.own;
    member.timeout_s = job_.timeout_s;
    member.look = regrouping.look;
    std::vector<Announcement> ranks;
    for (std::size_t i = 0; i < regrouping.members.size(); ++i) {
      const std::optional<Address> address = read_address(regrouping.addresses[i]);
      if (!address) {
        throw TransportError(fmt::format("rank {} has sent a message that no rank sends", regrouping.members[i]));
      }
      member.addresses.push_back(*address);
      ranks.push_back(job_.table.ranks[static_cast<std::size_t>(regrouping.members[i])]);
    }
    out.hosts = map_hosts(ranks, regrouping.rank, job_.num_fakes);
    return out;
  }

  TcpJob job_;
  File listening_;  ///< where the others find this rank in the next generation
};

}  // namespace

File listen_beside(const Address& address) {
  Address any_port = address;
  any_port.set_port(0);
  return listen_on(any_port);
}

std::unique_ptr<Survival> survival_over_tcp(const TcpJob& job, TransportProbe& probe,
                                            const std::function<void()>& look) {
  File listening = listen_beside(job.own);
  MeshMember member;
  member.rank = probe.rank();
  member.key = job_key(job.secret, job.table.nonce, "letters", job.generation);
  member.own = job.own;
  member.timeout_s = job.timeout_s;
  member.look = look;
  for (const Address& address : probe.all_gather(bound_address(listening.fd))) member.addresses.push_back(address);
  const Introduction own{Purpose::kPeer, 0, static_cast<std::uint32_t>(member.rank),
                         static_cast<std::uint32_t>(member.addresses.size())};
  Reception reception(std::move(listening), member.key, own);
  std::vector<File> connected = connect_mesh(member, reception);
  std::vector<File> links(static_cast<std::size_t>(job.members.back()) + 1);
  for (std::size_t i = 0; i < connected.size(); ++i) {
    if (connected[i].fd >= 0) set_silence_limit(connected[i].fd, 2 * job.timeout_s);
    links[static_cast<std::size_t>(job.members[i])] = std::move(connected[i]);
  }
  probe.barrier();
  // A link may end because something between the hosts ends it: only a majority can go on.
  const Survival::Setup setup{.rank = job.rank,
                              .members = job.members,
                              .generation = job.generation,
                              .timeout_s = job.timeout_s,
                              .closing_is_death = false};
  return std::make_unique<Survival>(setup, std::move(links), std::make_unique<TcpRebuilder>(job),
                                    job.door.store == nullptr ? nullptr : grower_over_tcp(job));
}

}  // namespace gar
