#include "runtime/transports/tcp/reception.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "gar/errors.hpp"
#include "runtime/transports/tcp/tcp_transport.hpp"

namespace gar {

namespace {

constexpr std::size_t kMostCallers = 128;
constexpr std::int64_t kMostHandshakeNs = 5'000'000'000;
constexpr int kAcceptedAtOnce = 64;

}  // namespace

bool Greeter::advance() {
  while (true) {
    while (!handshake_.output().empty()) {
      const std::span<const std::byte> out = handshake_.output();
      const ssize_t sent = send(socket_.fd, out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
      handshake_.sent(static_cast<std::size_t>(sent));
    }
    if (handshake_.state() != Handshake::State::kGoesOn) {
      is_welcome_ = handshake_.state() == Handshake::State::kDone;
      return true;
    }
    std::array<std::byte, Handshake::kMostBytes> in;
    const ssize_t got = recv(socket_.fd, in.data(), handshake_.wanted(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
    if (got == 0) return true;
    handshake_.take(std::span(in).first(static_cast<std::size_t>(got)));
  }
}

Reception::Reception(File listening, const Digest& key, const Introduction& own)
    : listening_(std::move(listening)), key_(key), own_(own), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  epoll_event event = {};
  event.events = EPOLLIN;
  if (epoll_.fd < 0 || epoll_ctl(epoll_.fd, EPOLL_CTL_ADD, listening_.fd, &event) != 0) {
    throw TransportError(fmt::format("epoll: {}", std::strerror(errno)));
  }
}

void Reception::accept_some() {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    File socket(accept4(listening_.fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.fd < 0) return;
    if (callers_.size() >= kMostCallers) make_room();
    epoll_event event = {};
    event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    if (epoll_ctl(epoll_.fd, EPOLL_CTL_ADD, socket.fd, &event) != 0) return;
    set_up(socket.fd);
    callers_.push_back({Greeter(std::move(socket), Handshake::answerer(key_, own_, random_nonce())), now_ns()});
  }
}

/// The oldest goes, of those who have said nothing sound unless the others have more than half of the places: in a
/// crowd of the silent a member has the time to answer, and a crowd that says hello cannot keep members out either.
void Reception::make_room() {
  const auto has_heard = [](const Caller& caller) { return caller.greeter.handshake().has_heard(); };
  const auto num_heard = static_cast<std::size_t>(std::count_if(callers_.begin(), callers_.end(), has_heard));
  const bool is_heard = num_heard > kMostCallers / 2;
  callers_.erase(std::find_if(callers_.begin(), callers_.end(),
                              [&](const Caller& caller) { return has_heard(caller) == is_heard; }));
}

std::vector<Guest> Reception::serve() {
  std::array<epoll_event, 64> events;  // who has something to say: the few callers are all asked
  epoll_wait(epoll_.fd, events.data(), static_cast<int>(events.size()), 0);
  accept_some();
  const std::int64_t now = now_ns();
  std::vector<Guest> out;
  for (auto caller = callers_.begin(); caller != callers_.end();) {
    const bool is_over = caller->greeter.advance();
    if (is_over && caller->greeter.is_welcome()) {
      const auto rank = static_cast<int>(caller->greeter.handshake().introduction().rank);
      epoll_ctl(epoll_.fd, EPOLL_CTL_DEL, caller->greeter.fd(), nullptr);
      out.push_back({rank, caller->greeter.take()});
    }
    caller = is_over || now - caller->since_ns > kMostHandshakeNs ? callers_.erase(caller) : std::next(caller);
  }
  return out;
}

}  // namespace gar
