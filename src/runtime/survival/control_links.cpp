#include "runtime/survival/control_links.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace gar {

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

ControlLinks::ControlLinks(std::vector<File> sockets) {
  for (File& socket : sockets) {
    Link& link = links_.emplace_back();
    link.socket = std::move(socket);
    link.heard_ns = steady_ns();
    if (link.socket.fd >= 0) fcntl(link.socket.fd, F_SETFL, fcntl(link.socket.fd, F_GETFL) | O_NONBLOCK);
  }
}

void ControlLinks::send(int to, const Letter& letter) {
  Link& link = links_[static_cast<std::size_t>(to)];
  if (link.socket.fd < 0 || (letter.kind == LetterKind::kLife && !link.out.empty())) return;
  const std::string bytes = write_letter(letter);
  const auto length = static_cast<std::uint32_t>(bytes.size());
  link.out.append(reinterpret_cast<const char*>(&length), sizeof length);
  link.out.append(bytes);
  write(link);
}

/// A link that has ended says so when it is read.
void ControlLinks::write(Link& link) {
  while (link.socket.fd >= 0 && !link.out.empty()) {
    const ssize_t sent = ::send(link.socket.fd, link.out.data(), link.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) link.out.clear();
    if (sent <= 0) return;
    link.out.erase(0, static_cast<std::size_t>(sent));
  }
}

std::vector<ControlLinks::Event> ControlLinks::wait(int milliseconds) {
  std::vector<pollfd> entries;
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < links_.size(); ++rank) {
    Link& link = links_[rank];
    write(link);
    if (link.socket.fd < 0) continue;
    entries.push_back({link.socket.fd, static_cast<short>(link.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    ranks.push_back(static_cast<int>(rank));
  }
  poll(entries.data(), entries.size(), milliseconds);
  std::vector<Event> events;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].revents == 0) continue;
    Link& link = links_[static_cast<std::size_t>(ranks[i])];
    write(link);
    if (read(ranks[i], link, events)) continue;
    link.socket = File();
    events.push_back({ranks[i], true, {}});
  }
  return events;
}

bool ControlLinks::read(int from, Link& link, std::vector<Event>& events) {
  bool has_seen_error = false;
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t got = recv(link.socket.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) {
      link.heard_ns = steady_ns();
      link.in.append(buffer.data(), static_cast<std::size_t>(got));
      if (!take_letters(from, link, events)) return false;
      continue;
    }
    if (got == 0) return false;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return !has_seen_error;
    // An error may stand before data that came earlier; there is one of a kind.
    if (has_seen_error) return false;
    has_seen_error = true;
  }
}

/// False: it is nothing that a rank sends.
bool ControlLinks::take_letters(int from, Link& link, std::vector<Event>& events) {
  std::size_t begin = 0;
  while (link.in.size() - begin >= sizeof(std::uint32_t)) {
    std::uint32_t length = 0;
    std::memcpy(&length, link.in.data() + begin, sizeof length);
    if (length > kMostLetterBytes) return false;
    if (link.in.size() - begin - sizeof length < length) break;
    std::optional<Letter> letter = read_letter(std::string_view(link.in).substr(begin + sizeof length, length));
    if (!letter) return false;
    events.push_back({from, false, std::move(*letter)});
    begin += sizeof length + length;
  }
  link.in.erase(0, begin);
  return true;
}

void ControlLinks::flush(int milliseconds) noexcept {
  const std::int64_t limit = steady_ns() + std::int64_t{milliseconds} * 1'000'000;
  try {
    while (true) {
      std::vector<pollfd> entries;
      for (Link& link : links_) {
        write(link);
        if (link.socket.fd >= 0 && !link.out.empty()) entries.push_back({link.socket.fd, POLLOUT, 0});
      }
      const std::int64_t left = (limit - steady_ns()) / 1'000'000;
      if (entries.empty() || left <= 0) return;
      poll(entries.data(), entries.size(), static_cast<int>(left));
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory: closing must do
  }
}

}  // namespace gar
