#include "runtime/transports/tcp/line.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "gar/errors.hpp"
#include "runtime/transports/tcp/tcp_transport.hpp"

namespace gar {

namespace {

void wait_on_line(int fd, int events, std::int64_t limit_ns) {
  constexpr std::int64_t kLinePollMs = 500;
  const std::int64_t left_ms = (limit_ns - now_ns()) / 1'000'000;
  if (left_ms < 0) throw TransportError("the other end of a line has said nothing in time");
  pollfd entry{fd, static_cast<short>(events), 0};
  poll(&entry, 1, static_cast<int>(std::min(left_ms + 1, kLinePollMs)));
}

}  // namespace

void Line::say(std::string_view word, std::string_view text, std::int64_t limit_ns) {
  std::vector<std::byte> out;
  write_message(out, StoreKind::kSet, word, text);
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t sent = send(socket_.fd, out.data() + done, out.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) done += static_cast<std::size_t>(sent);
    if (sent >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      throw TransportError(fmt::format("the other end of a line has gone: {}", std::strerror(errno)));
    }
    wait_on_line(socket_.fd, POLLOUT, limit_ns);
  }
}

std::string Line::hear(std::string_view word, std::int64_t limit_ns) {
  std::array<std::byte, 4096> in;
  while (true) {
    if (std::optional<StoreMessage> message = reader_.next()) {
      if (message->key == word) return std::move(message->value);
      throw TransportError(fmt::format("expected {} on a line, and something else has come", word));
    }
    const ssize_t got = recv(socket_.fd, in.data(), in.size(), MSG_DONTWAIT);
    if (got > 0) reader_.take(std::span(in).first(static_cast<std::size_t>(got)));
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    if (got == 0) throw TransportError("the other end of a line has gone");
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      throw TransportError(fmt::format("the other end of a line has gone: {}", std::strerror(errno)));
    }
    wait_on_line(socket_.fd, POLLIN, limit_ns);
  }
}

bool Line::has_ended() const {
  std::byte byte{};
  const ssize_t got = recv(socket_.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace gar
