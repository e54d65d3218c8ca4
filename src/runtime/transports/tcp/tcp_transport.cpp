#include "runtime/transports/tcp/tcp_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "gar/errors.hpp"
#include "runtime/schedule.hpp"

namespace gar {

namespace {

// As over MPI: below this the messages of many ranks become so short that their fixed costs count, and above it nothing
// is gained. Three chunks overlap sending, receiving and reducing.
constexpr int kNumSlots = 3;
constexpr std::int64_t kChunkBytes = 4 << 20;
constexpr std::int64_t kAlignment = 64;
// Parts that are shorter than this on average are sent as one: a copy costs less than a frame for each.
constexpr std::int64_t kLeastPart = 4 << 10;

constexpr std::size_t idx(int i) { return static_cast<std::size_t>(i); }

std::byte* memory_of(const Flight& flight, const Part& part) {
  return address(part.space == Space::kInput ? flight.input : flight.work, part, flight.element_size);
}

}  // namespace

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

TcpTransport::TcpTransport(int rank, std::vector<File> sockets, TcpTransportOptions options)
    : rank_(rank),
      size_(static_cast<int>(sockets.size())),
      options_(std::move(options)),
      exchange_(rank, size_),
      admission_(rank, size_, options_.max_senders),
      slots_(kNumSlots) {
  if (options_.least_chunk_bytes <= 0) options_.least_chunk_bytes = kChunkBytes;
  for (int peer = 0; peer < size_; ++peer) {
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->connection = Connection(peer, std::move(sockets[idx(peer)]));
    peers_.back()->heard_ns = now_ns();
  }
  add_to_epoll();
}

TransportLimits TcpTransport::limits() const {
  TransportLimits limits;
  limits.num_slots = kNumSlots;
  limits.chunk_bytes = kChunkBytes;
  limits.least_chunk_bytes = options_.least_chunk_bytes;
  return limits;
}

void TcpTransport::set_admission(int max_senders) {
  options_.max_senders = max_senders;
  admission_ = AdmissionQueue<Ticket>(rank_, size_, max_senders);
}

void TcpTransport::leave_to_others(std::vector<bool> has_other_way) {
  options_.has_other_way = std::move(has_other_way);
  options_.sleeps_shortly = true;
  options_.num_looks = std::min(options_.num_looks, 2);
}

void TcpTransport::begin(const Signature& signature, const Operands& operands) {
  if (has_failed_) throw TransportError("this communicator has failed before: " + failure_);
  signature_ = signature;
  before_[signature.sequence % kRemembered] = signature;
  admission_.begin(operands.schedule == nullptr ? 1 : operands.schedule->plan->fan_in);
  has_progressed_ = true;
  is_stale_ = true;
  for (int rank = 0; rank < size_; ++rank) {
    Peer& peer = peer_of(rank);
    peer.connection.resume();
    while (!peer.ahead.empty() && peer.ahead.front().sequence <= signature.sequence) {
      const Signature theirs = peer.ahead.front();
      peer.ahead.pop_front();
      if (theirs.sequence < signature.sequence) continue;
      if (theirs != signature) throw TransportError(describe_mismatch(signature, rank_, theirs, rank));
      peer.agreed = signature.sequence;
    }
  }
}

// --- chunks ----------------------------------------------------------------------------------------------------------

TcpTransport::Range TcpTransport::range_of(const Flight& flight, const Part& part) {
  const std::byte* begin = memory_of(flight, part);
  return {begin, begin + part.count * flight.element_size};
}

bool TcpTransport::try_open(Flight& flight) {
  Slot& slot = slots_[idx(flight.slot)];
  const std::vector<ChunkStep>& steps = flight.program->steps;
  slot.flight = flight;
  slot.step = -1;
  slot.steps.resize(steps.size());
  slot.user_sends.clear();
  slot.spare.clear();
  std::int64_t bytes = 0;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    StepState& state = slot.steps[s];
    state.recvs.assign(steps[s].recvs.size(), {});
    state.num_missing = 0;
    std::vector<AdmissionQueue<Ticket>::Expected> expected;
    std::uint32_t index = 0;
    for (std::size_t i = 0; i < steps[s].recvs.size(); ++i) {
      const ChunkRecv& recv = steps[s].recvs[i];
      index = i > 0 && steps[s].recvs[i - 1].peer == recv.peer ? index + 1 : 0;
      const std::int64_t length = (recv.end - recv.begin) * flight.element_size;
      if (!is_mine(recv.peer) || length == 0) continue;
      state.recvs[i].expected = length;
      ++state.num_missing;
      if (!recv.is_direct) bytes += (length + kAlignment - 1) / kAlignment * kAlignment;
      if (!admission_.concerns(length)) continue;
      state.recvs[i].is_admitted = true;
      expected.push_back({recv.peer, {flight.serial, static_cast<std::uint32_t>(steps[s].number), index}, 0});
    }
    num_missing_ += state.num_missing;
    if (options_.max_senders > 0) admission_.expect(std::move(expected));
  }
  slot.arena.reserve(bytes);
  std::int64_t at = 0;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    for (std::size_t i = 0; i < steps[s].recvs.size(); ++i) {
      Recv& recv = slot.steps[s].recvs[i];
      if (recv.expected == 0 || steps[s].recvs[i].is_direct) continue;
      recv.memory = slot.arena.data() + at;
      at += (recv.expected + kAlignment - 1) / kAlignment * kAlignment;
    }
  }
  slot.is_open = true;
  for (int rank = 0; rank < size_; ++rank) peer_of(rank).connection.resume();
  if (options_.max_senders > 0) tell_admitted();
  is_stale_ = true;
  return true;
}

bool TcpTransport::try_send(Flight& flight, int step) {
  Slot& slot = slots_[idx(flight.slot)];
  slot.step = step;
  const std::vector<ChunkSend>& sends = flight.program->steps[idx(step)].sends;
  for (std::size_t i = 0; i < sends.size(); ++i) {
    if (is_mine(sends[i].peer) && sends[i].end > sends[i].begin) send(slot, step, i);
  }
  for (const ChunkSend& one : sends) {
    if (is_mine(one.peer)) flush(one.peer);
  }
  return true;
}

void TcpTransport::send(Slot& slot, int step, std::size_t message) {
  const Flight& flight = slot.flight;
  const ChunkStep& chunk_step = flight.program->steps[idx(step)];
  const ChunkSend& send = chunk_step.sends[message];
  const std::int64_t bytes = (send.end - send.begin) * flight.element_size;
  Held held;
  held.slot = flight.slot;
  std::uint32_t index = 0;
  for (std::size_t i = 0; i < message; ++i) index += chunk_step.sends[i].peer == send.peer ? 1U : 0U;
  held.id = {send.peer, flight.serial, static_cast<std::uint32_t>(chunk_step.number), index};
  std::int64_t offset = 0;
  const auto add = [&](const std::byte* memory, std::int64_t length) {
    for (std::int64_t done = 0; done < length; done += kMostFrameBytes) {
      const std::int64_t piece = std::min(length - done, kMostFrameBytes);
      FrameHead head = make_head(FrameKind::kData, signature_.sequence, static_cast<std::uint64_t>(piece));
      head.serial = flight.serial;
      head.step = static_cast<std::uint32_t>(chunk_step.number);
      head.index = index;
      head.offset = static_cast<std::uint64_t>(offset);
      held.frames.emplace_back(head, memory + done);
      offset += piece;
    }
  };
  if (bytes < kLeastPart * static_cast<std::int64_t>(send.parts.size()) && send.parts.size() > 1) {
    std::byte* out = slot.spare.emplace_back(new std::byte[static_cast<std::size_t>(bytes)]).get();
    const std::byte* begin = out;
    for (const Part& part : send.parts) {
      std::memcpy(out, memory_of(flight, part), static_cast<std::size_t>(part.count * flight.element_size));
      out += part.count * flight.element_size;
    }
    add(begin, bytes);
  } else {
    held.user_send = static_cast<int>(slot.user_sends.size());
    for (const Part& part : send.parts) {
      add(memory_of(flight, part), part.count * flight.element_size);
      slot.user_sends.push_back({range_of(flight, part), false, false});
    }
    slot.user_sends[idx(held.user_send)] = {slot.user_sends[idx(held.user_send)].range, true, true};
  }
  ++slot.num_pending;
  ++num_sending_;
  const auto known = admitted_.find(held.id);
  if (admission_.concerns(bytes) && known == admitted_.end()) {
    held_.push_back(std::move(held));
    return;
  }
  if (known != admitted_.end()) admitted_.erase(known);
  hand_over(held);
}

void TcpTransport::hand_over(Held& held) {
  const int peer = std::get<0>(held.id);
  tell_status(peer);
  for (std::size_t i = 0; i < held.frames.size(); ++i) {
    const bool is_last = i + 1 == held.frames.size();
    const auto& [head, data] = held.frames[i];
    peer_of(peer).connection.queue(head, data, is_last ? SendToken{held.slot, held.user_send} : SendToken{});
  }
}

void TcpTransport::tell_status(int rank) {
  Peer& peer = peer_of(rank);
  if (peer.told == signature_.sequence) return;
  peer.told = signature_.sequence;
  const WireSignature wire = to_wire(signature_, rank_);
  peer.connection.queue_copy(make_head(FrameKind::kStatus, signature_.sequence, sizeof wire),
                             std::as_bytes(std::span(&wire, 1)));
}

void TcpTransport::tell_admitted() {
  std::set<int> told;
  admission_.admit([&](const AdmissionQueue<Ticket>::Expected& message) {
    FrameHead head = make_head(FrameKind::kAdmit, signature_.sequence, 0);
    head.serial = message.ticket.serial;
    head.step = message.ticket.step;
    head.index = message.ticket.index;
    peer_of(message.peer).connection.queue(head, nullptr, {});
    told.insert(message.peer);
  });
  for (const int peer : told) flush(peer);
}

void TcpTransport::flush(int rank) {
  Connection& connection = peer_of(rank).connection;
  if (!connection.may_flush()) return;
  has_left_.clear();
  connection.flush(has_left_);
  for (const SendToken& token : has_left_) left(token);
}

void TcpTransport::left(const SendToken& token) {
  Slot& slot = slots_[idx(token.slot)];
  --slot.num_pending;
  --num_sending_;
  if (token.index >= 0) slot.user_sends[idx(token.index)].is_pending = false;
}

bool TcpTransport::may_write(const Slot& slot, int step) const {
  const std::vector<ChunkStep>& steps = slot.flight.program->steps;
  // After the last step of a ReduceScatter the user's output is written, which may be a part of the input.
  if (signature_.collective == Collective::kReduceScatter && idx(step) + 1 == steps.size()) {
    return slot.num_pending == 0;
  }
  const ChunkStep& chunk_step = steps[idx(step)];
  if (!chunk_step.overwrites_sent || slot.num_pending == 0) return true;
  return std::none_of(chunk_step.reductions.begin(), chunk_step.reductions.end(),
                      [&](const Reduction& r) { return is_leaving(slot, range_of(slot.flight, r.out)); });
}

/// Is something of this memory still to be sent?
bool TcpTransport::is_leaving(const Slot& slot, const Range& range) {
  bool is_pending = false;  // of the message that a part belongs to
  for (const UserSend& send : slot.user_sends) {
    if (send.is_first) is_pending = send.is_pending;
    if (is_pending && send.range.meets(range)) return true;
  }
  return false;
}

bool TcpTransport::try_receive(Flight& flight, int step, std::span<const std::byte*> operands) {
  Slot& slot = slots_[idx(flight.slot)];
  StepState& state = slot.steps[idx(step)];
  if (state.num_missing > 0 && (!poll_if_stale() || state.num_missing > 0)) return false;
  for (std::size_t i = 0; i < state.recvs.size(); ++i) {
    if (state.recvs[i].expected > 0) operands[i] = state.recvs[i].memory;
  }
  return may_write(slot, step) || (poll_if_stale() && may_write(slot, step));
}

bool TcpTransport::try_close(Flight& flight) {
  Slot& slot = slots_[idx(flight.slot)];
  if (slot.num_pending > 0 && (!poll_if_stale() || slot.num_pending > 0)) return false;
  slot.is_open = false;
  return true;
}

// --- the latency path ------------------------------------------------------------------------------------------------

bool TcpTransport::try_exchange(const void* in, std::int64_t bytes, std::span<const std::byte*> operands) {
  const auto send_round = [&] {
    const int to = exchange_.receiver();
    const std::span<const std::byte> blocks = exchange_.outgoing();
    tell_status(to);
    FrameHead head = make_head(FrameKind::kExchange, signature_.sequence, blocks.size());
    head.serial = static_cast<std::uint32_t>(exchange_.round());
    peer_of(to).connection.queue_copy(head, blocks);
    flush(to);
  };
  if (exchange_.sequence() != signature_.sequence) {
    exchange_.start(signature_.sequence, in, bytes);
    for (int rank = 0; rank < size_; ++rank) peer_of(rank).connection.resume();
    is_exchanging_ = size_ > 1;
    if (is_exchanging_) send_round();
    is_stale_ = true;
  }
  while (!exchange_.is_complete()) {
    if (!exchange_.advance() && (!poll_if_stale() || !exchange_.advance())) return false;
    if (!exchange_.is_complete()) send_round();
  }
  const auto is_sending = [](const std::unique_ptr<Peer>& peer) {
    return peer->connection.is_sending() && !peer->connection.has_ended();
  };
  if (std::any_of(peers_.begin(), peers_.end(), is_sending)) {
    poll_if_stale();
    return false;
  }
  is_exchanging_ = false;
  exchange_.operands(operands);
  return true;
}

}  // namespace gar
