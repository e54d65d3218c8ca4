#include "runtime/transports/tcp/connection.hpp"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gar/errors.hpp"

namespace gar {

namespace {

constexpr std::size_t kMostPieces = 64;        // of one system call
constexpr std::size_t kMostAtOnce = 4U << 20;  // bytes of one peer before another one's turn
constexpr std::size_t kHead = sizeof(FrameHead);

/// Throws away what comes.
class Discard final : public FrameSink {
 public:
  explicit Discard(std::vector<std::byte>& waste) : waste_(waste) {}
  std::byte* place(int /*peer*/, const FrameHead& head) override {
    waste_.resize(std::max<std::size_t>(waste_.size(), head.length));
    return waste_.data();
  }
  void arrived(int /*peer*/, const FrameHead& /*head*/) override {}

 private:
  std::vector<std::byte>& waste_;
};

}  // namespace

void Connection::note(std::uint32_t events) {
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) is_readable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) is_hung_up_ = true;
  if ((events & EPOLLOUT) != 0) is_writable_ = true;
}

// --- what leaves -----------------------------------------------------------------------------------------------------

void Connection::queue(const FrameHead& head, const std::byte* data, const SendToken& token) {
  Outgoing& out = out_.emplace_back();
  out.head = head;
  out.data = data;
  out.token = token;
}

void Connection::queue_copy(const FrameHead& head, std::span<const std::byte> payload) {
  Outgoing& out = out_.emplace_back();
  out.head = head;
  out.own.assign(payload.begin(), payload.end());
  out.data = out.own.data();
}

bool Connection::flush(std::vector<SendToken>& left) {
  bool has_left = false;
  while (may_flush()) {
    std::array<iovec, kMostPieces> pieces;
    std::size_t count = 0;
    std::size_t bytes = 0;
    std::size_t skip = front_sent_;
    const auto add = [&](const void* begin, std::size_t length) {
      const std::size_t gone = std::min(skip, length);
      skip -= gone;
      if (gone == length) return;
      // An iovec has one type for what is read and what is written.
      pieces[count++] = {const_cast<std::byte*>(static_cast<const std::byte*>(begin)) + gone,  // NOLINT(*-const-cast)
                         length - gone};
      bytes += length - gone;
    };
    for (auto next = out_.begin(); next != out_.end() && count + 2 <= kMostPieces; ++next) {
      add(&next->head, kHead);
      add(next->data, next->head.length);
    }
    msghdr message = {};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t sent = sendmsg(socket_.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      is_writable_ = false;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        error_ = errno;
        is_readable_ = true;  // what it said before is still to be read
      }
      break;
    }
    has_left = true;
    if (static_cast<std::size_t>(sent) < bytes) is_writable_ = false;
    pop_sent(static_cast<std::size_t>(sent), left);
  }
  return has_left;
}

void Connection::pop_sent(std::size_t bytes, std::vector<SendToken>& left) {
  front_sent_ += bytes;
  while (!out_.empty() && front_sent_ >= kHead + out_.front().head.length) {
    front_sent_ -= kHead + out_.front().head.length;
    if (out_.front().token.slot >= 0) left.push_back(out_.front().token);
    out_.pop_front();
  }
}

void Connection::withdraw() {
  if (front_sent_ == 0) {
    out_.clear();
  } else {
    out_.resize(1);
    Outgoing& front = out_.front();
    if (front.own.empty()) front.own.assign(front.data, front.data + front.head.length);
    front.data = front.own.data();
    front.token = {};
  }
  waste_.resize(std::max(waste_.size(), missing_));
  target_ = waste_.data();
  is_stalled_ = false;
}

void Connection::shut_down() {
  if (socket_.fd >= 0) shutdown(socket_.fd, SHUT_WR);
}

bool Connection::is_delivered() const {
  if (socket_.fd < 0 || is_broken()) return true;
  // A connection that the other end has reset counts what it never took for ever.
  tcp_info info = {};
  socklen_t length = sizeof info;
  if (getsockopt(socket_.fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_state == TCP_CLOSE) return true;
  int waiting = 0;
  return ioctl(socket_.fd, SIOCOUTQ, &waiting) != 0 || waiting == 0;
}

// --- what comes ------------------------------------------------------------------------------------------------------

bool Connection::receive(FrameSink& sink) {
  const std::size_t before = staged_ - begin_;
  take_staged(sink);
  bool has_come = staged_ - begin_ != before;
  std::size_t taken = 0;
  while (is_readable_ && !is_stalled_ && taken < kMostAtOnce) {
    std::array<iovec, 2> pieces;
    int count = 0;
    if (missing_ > 0) pieces[static_cast<std::size_t>(count++)] = {target_, missing_};
    pieces[static_cast<std::size_t>(count++)] = {staging_.data() + staged_, kStaging - staged_};
    const std::size_t wanted = missing_ + kStaging - staged_;
    const ssize_t got = readv(socket_.fd, pieces.data(), count);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      is_readable_ = false;
      if (got == 0) has_ended_ = true;
      if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK) error_ = errno;
      break;
    }
    const auto bytes = static_cast<std::size_t>(got);
    // Less than there was room for: all there is, unless the end follows, of which epoll does not speak again.
    is_readable_ = bytes == wanted || is_hung_up_;
    has_come = true;
    taken += bytes;
    const std::size_t direct = std::min(bytes, missing_);
    staged_ += bytes - direct;
    if (direct > 0) advance_payload(direct, sink);
    take_staged(sink);
  }
  return has_come;
}

void Connection::advance_payload(std::size_t bytes, FrameSink& sink) {
  target_ += bytes;
  missing_ -= bytes;
  if (missing_ == 0) sink.arrived(peer_, head_);
}

void Connection::take_staged(FrameSink& sink) {
  while (!is_stalled_) {
    if (missing_ > 0) {
      const std::size_t bytes = std::min(missing_, staged_ - begin_);
      if (bytes == 0) break;
      std::memcpy(target_, staging_.data() + begin_, bytes);
      begin_ += bytes;
      advance_payload(bytes, sink);
      continue;
    }
    if (staged_ - begin_ < kHead) break;
    const auto head = read_head(std::span(staging_).subspan(begin_, kHead));
    if (!head) throw TransportError(fmt::format("rank {} has sent a message that no rank sends", peer_));
    if (head->length > 0) {
      target_ = sink.place(peer_, *head);
      if (target_ == nullptr) {
        is_stalled_ = true;
        break;
      }
    }
    begin_ += kHead;
    head_ = *head;
    missing_ = head->length;
    if (missing_ == 0) sink.arrived(peer_, head_);
  }
  if (begin_ == 0) return;
  std::memmove(staging_.data(), staging_.data() + begin_, staged_ - begin_);
  staged_ -= begin_;
  begin_ = 0;
}

void Connection::discard() {
  Discard sink(waste_);
  receive(sink);
}

}  // namespace gar
