// What comes over the connections of a TcpTransport, and where it goes.
#include <fmt/format.h>

#include <algorithm>

#include "gar/errors.hpp"
#include "runtime/transports/tcp/tcp_transport.hpp"

namespace gar {

namespace {

constexpr std::size_t kMostAhead = 1024;  // operations; a rank can be far ahead only while a communicator is made

[[noreturn]] void refuse(int peer) {
  throw TransportError(fmt::format("rank {} has sent a message that no rank sends", peer));
}

}  // namespace

std::byte* TcpTransport::place(int rank, const FrameHead& head) {
  Peer& peer = peer_of(rank);
  switch (head.kind) {
    case FrameKind::kStatus:
      return reinterpret_cast<std::byte*>(&peer.status);
    case FrameKind::kAbort:
      return reinterpret_cast<std::byte*>(&peer.abort);
    case FrameKind::kData:
    case FrameKind::kExchange:
      break;
    case FrameKind::kAdmit:
    case FrameKind::kBye:
      refuse(rank);
  }
  if (head.sequence > signature_.sequence) return nullptr;
  // The status of the operation comes before its first message, and was compared.
  if (head.sequence < signature_.sequence || peer.agreed != head.sequence) refuse(rank);
  return head.kind == FrameKind::kData ? place_data(rank, head) : place_exchange(rank, head);
}

void TcpTransport::arrived(int rank, const FrameHead& head) {
  Peer& peer = peer_of(rank);
  switch (head.kind) {
    case FrameKind::kStatus:
      return status_arrived(rank);
    case FrameKind::kData:
      return data_arrived(rank, head);
    case FrameKind::kExchange:
      exchange_.arrived(head.serial);
      return;
    case FrameKind::kAdmit:
      return admission_arrived(rank, head);
    case FrameKind::kAbort:
      peer.has_given_up = true;
      if (heard_.origin < 0) heard_ = read_abort(std::as_bytes(std::span(&peer.abort, 1)), rank, size_);
      return;
    case FrameKind::kBye:
      peer.has_left = true;
      return;
  }
}

// --- data ------------------------------------------------------------------------------------------------------------

TcpTransport::Slot* TcpTransport::open_slot(std::uint32_t serial) {
  for (Slot& slot : slots_) {
    if (slot.is_open && slot.flight.serial == serial) return &slot;
  }
  return nullptr;
}

/// Null: nothing of the kind comes from this rank.
TcpTransport::Recv* TcpTransport::find(Slot& slot, int peer, const FrameHead& head, int* step) {
  const std::vector<ChunkStep>& steps = slot.flight.program->steps;
  const auto number = static_cast<std::int64_t>(head.step);
  const auto found = std::lower_bound(steps.begin(), steps.end(), number,
                                      [](const ChunkStep& s, std::int64_t wanted) { return s.number < wanted; });
  if (found == steps.end() || found->number != number) return nullptr;
  *step = static_cast<int>(found - steps.begin());
  std::uint32_t index = 0;
  for (std::size_t i = 0; i < found->recvs.size(); ++i) {
    if (found->recvs[i].peer != peer) continue;
    if (index++ != head.index) continue;
    Recv& recv = slot.steps[static_cast<std::size_t>(*step)].recvs[i];
    if (recv.memory == nullptr && recv.expected > 0) {
      if (may_go_home(slot, *step, found->recvs[i])) {
        recv.memory = address(slot.flight.work, found->recvs[i].target, slot.flight.element_size);
      } else {
        recv.memory = slot.spare.emplace_back(new std::byte[static_cast<std::size_t>(recv.expected)]).get();
      }
    }
    return &recv;
  }
  return nullptr;
}

/// May a message be received straight into its place: has its step begun, and has what lies there left?
bool TcpTransport::may_go_home(const Slot& slot, int step, const ChunkRecv& recv) const {
  return recv.is_direct && slot.step >= step && !is_leaving(slot, range_of(slot.flight, recv.target));
}

std::byte* TcpTransport::place_data(int peer, const FrameHead& head) {
  Slot* slot = open_slot(head.serial);
  if (slot == nullptr) return nullptr;
  int step = 0;
  const Recv* recv = find(*slot, peer, head, &step);
  if (recv == nullptr || recv->expected == 0 || head.offset != static_cast<std::uint64_t>(recv->received) ||
      head.length > static_cast<std::uint64_t>(recv->expected - recv->received)) {
    refuse(peer);
  }
  return recv->memory + recv->received;
}

void TcpTransport::data_arrived(int peer, const FrameHead& head) {
  // Its slot stays open until everything has arrived.
  Slot* slot = open_slot(head.serial);
  int step = 0;
  Recv* recv = slot == nullptr ? nullptr : find(*slot, peer, head, &step);
  if (recv == nullptr) refuse(peer);
  recv->received += static_cast<std::int64_t>(head.length);
  if (recv->received < recv->expected) return;
  --slot->steps[static_cast<std::size_t>(step)].num_missing;
  --num_missing_;
  if (!recv->is_admitted) return;
  admission_.arrived(peer);
  tell_admitted();
}

void TcpTransport::admission_arrived(int peer, const FrameHead& head) {
  const MessageId id{peer, head.serial, head.step, head.index};
  const auto found = std::find_if(held_.begin(), held_.end(), [&](const Held& held) { return held.id == id; });
  if (found == held_.end()) {
    admitted_.insert(id);
    return;
  }
  Held held = std::move(*found);
  held_.erase(found);
  hand_over(held);
  flush(peer);
}

std::byte* TcpTransport::place_exchange(int peer, const FrameHead& head) {
  if (exchange_.sequence() != signature_.sequence) return nullptr;  // this rank has not come that far
  std::byte* out = exchange_.place(peer, head.serial, head.length);
  if (out == nullptr) refuse(peer);
  return out;
}

// --- what the others have called -------------------------------------------------------------------------------------

void TcpTransport::status_arrived(int rank) {
  Peer& peer = peer_of(rank);
  const Signature theirs = read_signature(std::as_bytes(std::span(&peer.status, 1)), rank);
  if (theirs.sequence > signature_.sequence) {
    if (!peer.ahead.empty() && peer.ahead.back().sequence >= theirs.sequence) return;
    if (peer.ahead.size() >= kMostAhead) refuse(rank);
    peer.ahead.push_back(theirs);
    return;
  }
  const Signature& ours = before_[theirs.sequence % kRemembered];
  if (ours.sequence == theirs.sequence && ours != theirs) {
    throw TransportError(describe_mismatch(ours, rank_, theirs, rank));
  }
  if (theirs.sequence == signature_.sequence) peer.agreed = theirs.sequence;
}

}  // namespace gar
