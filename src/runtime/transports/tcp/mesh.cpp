#include "runtime/transports/tcp/mesh.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "runtime/survival/peer_lost.hpp"
#include "runtime/transports/tcp/tcp_transport.hpp"

namespace gar {

namespace {

constexpr std::int64_t kAgainNs = 50'000'000;    // before a rank is called again
constexpr std::int64_t kGoneNs = 2'000'000'000;  // who does not listen for this long does not come back
constexpr int kPollMs = 50;

/// A rank that is called.
struct Call {
  int rank = 0;
  std::optional<Greeter> greeter;  ///< while a call is under way
  bool is_connected = false;
  std::int64_t since_ns = 0;    ///< of this call, or of the end of the last one
  std::int64_t refused_ns = 0;  ///< since when nobody listens there; 0: somebody does, or nobody knows
  std::string trouble;
};

class Mesh {
 public:
  Mesh(const MeshMember& member, Reception& reception) : member_(member), reception_(reception) {
    sockets_.resize(member.addresses.size());
    for (int rank = 0; rank < member.rank; ++rank) {
      Call& call = calls_.emplace_back();
      call.rank = rank;
    }
  }

  std::vector<File> connect() {
    const std::int64_t limit = now_ns() + static_cast<std::int64_t>(member_.timeout_s * 1e9);
    while (num_missing() > 0) {
      for (Call& call : calls_) advance(call);
      for (Guest& guest : reception_.serve()) {
        if (guest.rank > member_.rank) sockets_[static_cast<std::size_t>(guest.rank)] = std::move(guest.socket);
      }
      if (num_missing() == 0) break;
      if (now_ns() > limit) give_up();
      if (member_.look) {
        member_.look();
      } else {
        check_gone();
      }
      wait();
    }
    return std::move(sockets_);
  }

 private:
  [[nodiscard]] bool is_missing(int rank) const {
    return rank != member_.rank && sockets_[static_cast<std::size_t>(rank)].fd < 0;
  }
  [[nodiscard]] int num_missing() const {
    int out = 0;
    for (int rank = 0; rank < static_cast<int>(sockets_.size()); ++rank) out += is_missing(rank) ? 1 : 0;
    return out;
  }

  void begin(Call& call) {
    if (call.since_ns != 0 && now_ns() - call.since_ns < kAgainNs) return;
    call.since_ns = now_ns();
    File socket = start_connecting(member_.addresses[static_cast<std::size_t>(call.rank)], member_.own);
    if (socket.fd < 0) return end(call, errno);
    set_up(socket.fd);
    const Introduction own{Purpose::kPeer, static_cast<std::uint32_t>(member_.rank),
                           static_cast<std::uint32_t>(call.rank), static_cast<std::uint32_t>(sockets_.size())};
    call.is_connected = false;
    call.greeter.emplace(std::move(socket), Handshake::caller(member_.key, own, random_nonce()));
  }

  void advance(Call& call) {
    if (!is_missing(call.rank)) return;
    if (!call.greeter) begin(call);
    if (!call.greeter) return;
    if (!call.is_connected) {
      pollfd entry{call.greeter->fd(), POLLOUT, 0};
      if (poll(&entry, 1, 0) == 1) {
        const int error = connect_error(entry.fd);
        call.is_connected = error == 0;
        if (error == 0) call.refused_ns = 0;
        if (error != 0) end(call, error);
      }
    }
    if (call.greeter && call.is_connected && call.greeter->advance()) {
      if (call.greeter->is_welcome()) {
        sockets_[static_cast<std::size_t>(call.rank)] = call.greeter->take();
        call.greeter.reset();
      } else {
        end(call, "it did not accept the secret of the job");
      }
    }
    // Who has heard the challenge waits for the answerer's word, or for its end: hung up on, an answerer that has just
    // let this rank in would not listen any more, and not know that it is called again.
    const bool is_waiting = call.greeter && !call.greeter->handshake().has_heard();
    if (is_waiting && static_cast<double>(now_ns() - call.since_ns) > member_.answer_s * 1e9) end(call, "no answer");
  }

  static void end(Call& call, int error) {
    if (error != ECONNREFUSED) call.refused_ns = 0;
    if (error == ECONNREFUSED && call.refused_ns == 0) call.refused_ns = now_ns();
    end(call, std::strerror(error));
  }
  static void end(Call& call, const char* trouble) {
    call.trouble = trouble;
    call.greeter.reset();
    call.since_ns = now_ns();
  }

  void wait() {
    std::vector<pollfd> entries{{reception_.fd(), POLLIN, 0}};
    for (const Call& call : calls_) {
      if (!call.greeter) continue;
      const bool writes = !call.is_connected || call.greeter->wants_to_write();
      entries.push_back({call.greeter->fd(), static_cast<short>(writes ? POLLOUT : POLLIN), 0});
    }
    poll(entries.data(), entries.size(), kPollMs);
  }

  /// Ranks listen before they say where, and until all have met.
  void check_gone() const {
    for (const Call& call : calls_) {
      if (call.refused_ns == 0 || now_ns() - call.refused_ns < kGoneNs) continue;
      throw PeerLost(
          fmt::format("rank {} at {} has ended, or given up, before rank {} was connected with it", call.rank,
                      to_string(member_.addresses[static_cast<std::size_t>(call.rank)]), member_.rank),
          {call.rank});
    }
  }

  [[noreturn]] void give_up() {
    std::vector<int> missing;
    std::string why;
    for (int rank = 0; rank < static_cast<int>(sockets_.size()); ++rank) {
      if (is_missing(rank)) missing.push_back(rank);
    }
    for (const Call& call : calls_) {
      if (!why.empty() || !is_missing(call.rank) || call.trouble.empty()) continue;
      why = fmt::format("; rank {} at {}: {}", call.rank,
                        to_string(member_.addresses[static_cast<std::size_t>(call.rank)]), call.trouble);
    }
    throw PeerLost(fmt::format("rank {} has no connection with rank{} {} after {} s{}", member_.rank,
                               missing.size() == 1 ? "" : "s", fmt::join(missing, ", "), member_.timeout_s, why),
                   missing);
  }

  const MeshMember& member_;
  Reception& reception_;
  std::vector<File> sockets_;
  std::vector<Call> calls_;
};

}  // namespace

std::vector<File> connect_mesh(const MeshMember& member, Reception& reception) {
  return Mesh(member, reception).connect();
}

}  // namespace gar
