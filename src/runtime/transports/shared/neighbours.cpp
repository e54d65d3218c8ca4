#include "runtime/transports/shared/neighbours.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "gar/errors.hpp"
#include "runtime/transports/shared/exchange_once.hpp"

namespace gar {

namespace {

constexpr int kPollMs = 20;

/// What a rank tells the others: where it is called, and what a caller must say.
struct Door {
  std::array<char, 16> name{};  ///< of an abstract socket, which the kernel chooses
  std::uint32_t name_bytes = 0;
  std::array<std::byte, 16> password{};
};

/// What a caller says.
struct PasswordCall {
  std::array<std::byte, 16> password{};
  std::int32_t rank = 0;
};

[[noreturn]] void refuse_links(const char* what) {
  throw TransportError(fmt::format("cannot {} between the processes of this host: {}", what, std::strerror(errno)));
}

class Neighbours {
 public:
  Neighbours(SharedTransport& transport, double timeout_s)
      : transport_(transport), deadline_(seconds_from_now(timeout_s)) {
    sockets_.resize(static_cast<std::size_t>(transport.size()));
  }

  std::vector<File> connect(std::uint64_t sequence) {
    open_door();
    const std::vector<Door> doors = exchange_once(transport_, sequence, own_);
    for (int rank = 0; rank < transport_.rank(); ++rank) call(rank, doors[static_cast<std::size_t>(rank)]);
    const auto is_missing = [&](int rank) {
      return rank > transport_.rank() && sockets_[static_cast<std::size_t>(rank)].fd < 0;
    };
    int rank = transport_.rank() + 1;
    while (rank < transport_.size()) {
      if (is_missing(rank)) {
        answer_some();
      } else {
        ++rank;
      }
    }
    // Nobody goes on before all links are there.
    exchange_once(transport_, sequence + 1, 0);
    return std::move(sockets_);
  }

 private:
  void check_time() {
    transport_.check_peers(false);
    if (std::chrono::steady_clock::now() > deadline_) {
      errno = ETIMEDOUT;
      refuse_links("connect sockets");
    }
  }

  void open_door() {
    if (getrandom(own_.password.data(), own_.password.size(), 0) != static_cast<ssize_t>(own_.password.size())) {
      refuse_links("get random numbers");
    }
    listening_ = File(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socklen_t length = sizeof address;
    if (listening_.fd < 0 ||
        bind(listening_.fd, reinterpret_cast<const sockaddr*>(&address), sizeof(sa_family_t)) != 0 ||
        listen(listening_.fd, SOMAXCONN) != 0 ||
        getsockname(listening_.fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      refuse_links("make sockets");
    }
    own_.name_bytes = std::min<std::uint32_t>(length - offsetof(sockaddr_un, sun_path), own_.name.size());
    std::memcpy(own_.name.data(), static_cast<const char*>(address.sun_path), own_.name_bytes);
  }

  void call(int rank, const Door& door) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::uint32_t bytes = std::min<std::uint32_t>(door.name_bytes, door.name.size());
    std::memcpy(static_cast<char*>(address.sun_path), door.name.data(), bytes);
    File out(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes);
    while (::connect(out.fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      if (errno != EAGAIN && errno != EINTR) refuse_links("connect sockets");
      check_time();  // many call at once
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const PasswordCall words{door.password, transport_.rank()};
    if (send(out.fd, &words, sizeof words, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof words))
      refuse_links("connect sockets");
    sockets_[static_cast<std::size_t>(rank)] = std::move(out);
  }

  void answer_some() {
    pollfd entry{listening_.fd, POLLIN, 0};
    poll(&entry, 1, callers_.empty() ? kPollMs : 1);
    while (true) {
      File caller(accept4(listening_.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (caller.fd < 0) break;
      ucred peer{};
      socklen_t length = sizeof peer;
      const bool is_own = getsockopt(caller.fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
      if (is_own) callers_.push_back(std::move(caller));
    }
    std::erase_if(callers_, [&](File& caller) { return hear(caller); });
    check_time();
  }

  /// True: it has said what it wants, and is let in or sent away.
  bool hear(File& caller) {
    PasswordCall words;
    const ssize_t got = recv(caller.fd, &words, sizeof words, MSG_PEEK);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got != static_cast<ssize_t>(sizeof words)) return got <= 0 || words.password != own_.password;
    recv(caller.fd, &words, sizeof words, 0);
    const bool is_known =
        words.password == own_.password && words.rank > transport_.rank() && words.rank < transport_.size();
    if (is_known) sockets_[static_cast<std::size_t>(words.rank)] = std::move(caller);
    return true;
  }

  SharedTransport& transport_;
  std::chrono::steady_clock::time_point deadline_;
  Door own_;
  File listening_;
  std::vector<File> callers_;
  std::vector<File> sockets_;
};

}  // namespace

std::vector<File> connect_neighbours(SharedTransport& transport, double timeout_s, std::uint64_t sequence) {
  return Neighbours(transport, timeout_s).connect(sequence);
}

}  // namespace gar
