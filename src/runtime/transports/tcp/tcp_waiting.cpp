// Waiting, looking after the others, and giving up.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "gar/errors.hpp"
#include "runtime/survival/peer_lost.hpp"
#include "runtime/transports/tcp/tcp_transport.hpp"

namespace gar {

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kFirstSignNs = 20 * kMillisecond;    // a wait that is worth a word
constexpr std::int64_t kMostSignsNs = 1000 * kMillisecond;  // between two words
constexpr std::int64_t kGraceNs = 100 * kMillisecond;       // in which a rank that ended may have said why
constexpr std::int64_t kLongestSleepNs = 500 * kMillisecond;
constexpr std::int64_t kShortSleepNs = 50'000;
constexpr double kSilentShare = 0.6;  // of the limit: a rank that was silent this long is named
constexpr double kFarewellS = 1;
constexpr double kFarewellShare = 0.25;  // of the limit: meanwhile this rank shows no signs of life
constexpr double kLongestByeS = 5;

}  // namespace

void TcpTransport::add_to_epoll() {
  epoll_ = File(epoll_create1(EPOLL_CLOEXEC));
  if (epoll_.fd < 0) throw TransportError(fmt::format("epoll: {}", std::strerror(errno)));
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    epoll_event event = {};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.u32 = static_cast<std::uint32_t>(rank);
    if (epoll_ctl(epoll_.fd, EPOLL_CTL_ADD, peer_of(rank).connection.fd(), &event) != 0) {
      throw TransportError(fmt::format("epoll: {}", std::strerror(errno)));
    }
  }
}

/// Waits at most this long; takes in what has come and hands out what can leave. True when something has happened.
bool TcpTransport::wait_events(std::int64_t nanoseconds) {
  is_stale_ = false;
  has_come_ = false;
  std::vector<int> restless;
  restless.swap(restless_);
  const bool has_more =
      std::any_of(restless.begin(), restless.end(), [&](int rank) { return peer_of(rank).connection.may_receive(); });
  std::array<epoll_event, 64> events;
  int milliseconds = static_cast<int>(has_more ? 0 : nanoseconds / kMillisecond);
  if (!has_more && nanoseconds > 0 && milliseconds == 0) {
    pollfd entry{epoll_.fd, POLLIN, 0};
    const timespec limit{0, static_cast<long>(nanoseconds)};
    ppoll(&entry, 1, &limit, nullptr);
    milliseconds = 0;
  }
  const int count = epoll_wait(epoll_.fd, events.data(), static_cast<int>(events.size()), milliseconds);
  polled_ns_ = now_ns();
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const int rank = static_cast<int>(event.data.u32);
    peer_of(rank).connection.note(event.events);
    serve(rank);
    std::erase(restless, rank);
  }
  for (const int rank : restless) serve(rank);
  return has_come_;
}

void TcpTransport::serve(int rank) {
  Peer& peer = peer_of(rank);
  if (peer.connection.may_flush()) {
    flush(rank);
    has_come_ = has_come_ || !has_left_.empty();
  }
  if (peer.connection.may_receive()) {
    const bool has_come = peer.connection.receive(*this);
    if (has_come) peer.heard_ns = now_ns();
    has_come_ = has_come_ || has_come;
  }
  if (peer.connection.has_ended()) {
    note_end(rank);
  } else if (peer.connection.is_restless()) {
    restless_.push_back(rank);
  }
}

void TcpTransport::note_end(int rank) {
  Peer& peer = peer_of(rank);
  if (peer.ended_ns != 0) return;
  peer.ended_ns = now_ns();
  if (peer.has_left) has_lost_some_ = true;
  if (!peer.has_left && !peer.has_given_up && first_ended_ < 0) first_ended_ = rank;
}

void TcpTransport::wait() {
  const int num_looks = options_.num_looks > 0 && courtesy_.may_yield() ? options_.num_looks : 0;
  for (int i = 0; i < num_looks; ++i) {
    if (poll()) return;
    if (!courtesy_.yield()) break;
  }
  const std::int64_t now = now_ns();
  check_peers(now);
  std::int64_t sleep = sleep_ns(now);
  if (sleep == 0 && (!courtesy_.may_yield() || !courtesy_.yield())) sleep = kShortSleepNs;
  wait_events(sleep);
}

void TcpTransport::look() {
  poll();
  check_peers(now_ns());
}

std::int64_t TcpTransport::sleep_ns(std::int64_t now) const {
  if (options_.sleeps_shortly) return now - silent_since_ns_ < kMillisecond ? 0 : kShortSleepNs;
  if (first_ended_ >= 0) return 10 * kMillisecond;
  const std::int64_t waited = now - silent_since_ns_;
  const auto left = static_cast<std::int64_t>(options_.timeout_s * 1e9) - waited;
  const std::int64_t next_sign = waited < kFirstSignNs ? kFirstSignNs : kLongestSleepNs;
  return std::max(kMillisecond, std::min({left, next_sign, kLongestSleepNs, sign_interval()}));
}

// --- looking after the others ----------------------------------------------------------------------------------------

/// Between two signs of life: several within the time limit.
std::int64_t TcpTransport::sign_interval() const {
  return std::clamp(static_cast<std::int64_t>(options_.timeout_s * 1e9 / 8), kMillisecond, kMostSignsNs);
}

void TcpTransport::check_peers(std::int64_t now) {
  if (has_progressed_) {
    has_progressed_ = false;
    silent_since_ns_ = now;
  }
  if (heard_.origin >= 0) throw PeerLost(describe(heard_));
  check_ended(now);
  show_life(now);
  check_silence(now);
}

void TcpTransport::check_ended(std::int64_t now) {
  if (first_ended_ >= 0 && now - peer_of(first_ended_).ended_ns >= kGraceNs) {
    const int error = peer_of(first_ended_).connection.error();
    const bool is_lost = error != 0 && error != ECONNRESET && error != EPIPE;
    // One that has only closed this connection may live: whoever knows more about that decides.
    throw PeerLost(
        fmt::format("rank {} {} (noticed by rank {} in {})", first_ended_,
                    is_lost ? fmt::format("cannot be reached any more: {}", std::strerror(error)) : "has died", rank_,
                    describe(signature_)),
        is_lost ? std::vector{first_ended_} : std::vector<int>());
  }
  if (!has_lost_some_) return;
  for (const int rank : awaited()) {
    const Peer& peer = peer_of(rank);
    if (!peer.has_left || peer.ended_ns == 0) continue;
    throw PeerLost(
        fmt::format("rank {} has left the communicator while rank {} is in {}", rank, rank_, describe(signature_)));
  }
}

void TcpTransport::show_life(std::int64_t now) {
  if (now - silent_since_ns_ < kFirstSignNs) return;
  if (shown_ns_ >= silent_since_ns_ && now - shown_ns_ < sign_interval()) return;
  shown_ns_ = now;
  for (int rank = 0; rank < size_; ++rank) {
    Peer& peer = peer_of(rank);
    // What waits to leave says as much.
    if (rank == rank_ || peer.connection.is_sending() || peer.connection.has_ended()) continue;
    peer.told = 0;
    tell_status(rank);
    flush(rank);
  }
}

std::vector<int> TcpTransport::awaited() const {
  std::set<int> out;
  for (const Slot& slot : slots_) {
    if (!slot.is_open) continue;
    for (std::size_t s = 0; s < slot.steps.size(); ++s) {
      if (slot.steps[s].num_missing == 0) continue;
      const std::vector<Recv>& recvs = slot.steps[s].recvs;
      for (std::size_t i = 0; i < recvs.size(); ++i) {
        if (recvs[i].received < recvs[i].expected) out.insert(slot.flight.program->steps[s].recvs[i].peer);
      }
    }
  }
  if (is_exchanging_ && !exchange_.is_complete()) out.insert(exchange_.sender());
  return {out.begin(), out.end()};
}

std::vector<int> TcpTransport::silent_ranks() const {
  const auto limit = static_cast<std::int64_t>(options_.timeout_s * 1e9 * kSilentShare);
  std::vector<int> silent;
  for (int rank = 0; rank < size_; ++rank) {
    const Peer& peer = *peers_[static_cast<std::size_t>(rank)];
    // Who is ahead of this rank waits for others, too; what it says is behind what cannot be taken yet.
    const bool is_ahead = peer.connection.is_stalled();
    if (rank != rank_ && !peer.has_left && !is_ahead && now_ns() - peer.heard_ns >= limit) silent.push_back(rank);
  }
  return silent;
}

std::string TcpTransport::words_of(std::vector<int> silent) {
  constexpr std::size_t kShown = 16;
  const bool is_one = silent.size() == 1;
  const bool is_cut = silent.size() > kShown;
  if (is_cut) silent.resize(kShown);
  return fmt::format("rank{} {}{} {} been silent", is_one ? "" : "s", fmt::join(silent, ", "), is_cut ? ", ..." : "",
                     is_one ? "has" : "have");
}

void TcpTransport::check_silence(std::int64_t now) {
  if (static_cast<double>(now - silent_since_ns_) < options_.timeout_s * 1e9) return;
  const std::vector<int> silent = silent_ranks();
  throw PeerLost(
      fmt::format("{} for {} s in {} (noticed by rank {}, which waits for data from rank {}); expected a longer "
                  "timeout_s (GAR_TIMEOUT), if that is not too long",
                  silent.empty() ? "nothing has come" : words_of(silent), options_.timeout_s, describe(signature_),
                  rank_, fmt::join(awaited(), ", ")),
      silent);
}

// --- the end ---------------------------------------------------------------------------------------------------------

void TcpTransport::fail(std::string_view reason) noexcept {
  if (has_failed_) return;
  has_failed_ = true;
  try {
    failure_ = std::string(reason);
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory; the others are told all the same
  }
  held_.clear();
  const WireAbort abort = heard_.origin >= 0 ? heard_ : make_abort(rank_, reason);
  farewell(make_head(FrameKind::kAbort, signature_.sequence, sizeof abort), std::as_bytes(std::span(&abort, 1)),
           std::min(kFarewellS, options_.timeout_s * kFarewellShare));
}

TcpTransport::~TcpTransport() {
  // A child that was forked has a copy of this object; the rank is still its parent.
  if (getpid() != process_ || has_failed_) return;
  farewell(make_head(FrameKind::kBye, signature_.sequence, 0), {}, std::min(options_.timeout_s, kLongestByeS));
}

void TcpTransport::farewell(const FrameHead& head, std::span<const std::byte> payload, double seconds) noexcept {
  const std::int64_t limit = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  std::vector<int> open;
  try {
    for (int rank = 0; rank < size_; ++rank) {
      Connection& connection = peer_of(rank).connection;
      if (rank == rank_ || connection.has_ended()) continue;
      connection.withdraw();
      connection.queue_copy(head, payload);
      open.push_back(rank);
    }
    std::vector<bool> is_shut(static_cast<std::size_t>(size_), false);
    while (!open.empty()) {
      std::erase_if(open, [&](int rank) {
        Connection& connection = peer_of(rank).connection;
        connection.note(EPOLLIN | EPOLLOUT);  // the system calls find out
        has_left_.clear();
        connection.flush(has_left_);
        if (!connection.is_sending() && !is_shut[static_cast<std::size_t>(rank)]) {
          connection.shut_down();
          is_shut[static_cast<std::size_t>(rank)] = true;
        }
        if (connection.is_broken() || (!connection.is_sending() && connection.is_delivered())) return true;
        try {
          // Others who are about to end may still send; a full connection would keep them from hearing this.
          connection.discard();
        } catch (const TransportError&) {  // nonsense: this one does not listen
          return true;
        }
        return false;
      });
      if (open.empty() || now_ns() >= limit) break;
      std::array<epoll_event, 1> event;
      epoll_wait(epoll_.fd, event.data(), 1, 1);
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory: closing must do
  }
}

}  // namespace gar
