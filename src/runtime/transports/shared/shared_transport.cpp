#include "runtime/transports/shared/shared_transport.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

#include "base/hash.hpp"
#include "gar/errors.hpp"
#include "runtime/survival/peer_lost.hpp"

namespace gar {

namespace {

/// What a plan takes beyond its stages: chunks, slots, signatures. Measured with `gar bench --collective reduce_scatter
/// --local 2 --algo gather,cps`, 8 bytes.
constexpr double kPlanSeconds = 2e-7;
constexpr unsigned kStepBits = 12;  // steps of a chunk program: below 4096
constexpr std::int64_t kGraceNs = 200'000'000;
constexpr int kSliceUs = 20'000;  // how long to sleep before looking after the peers
// The same before something else may make progress (set_idle): soon at first, then less and less often.
constexpr int kFirstIdleUs = 100;
constexpr int kLongestIdleUs = 2'000;

std::uint32_t progress_code(std::uint32_t serial, int num_steps) {
  return (serial << kStepBits) + static_cast<std::uint32_t>(num_steps);
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::array<std::uint64_t, 4> pack(const Signature& s) {
  return {static_cast<std::uint64_t>(s.count), s.plan,
          static_cast<std::uint64_t>(code_of(s)) | static_cast<std::uint64_t>(s.type) << 8U |
              static_cast<std::uint64_t>(s.op) << 16U,
          0};
}

Signature unpack(std::uint64_t sequence, const std::array<std::uint64_t, 4>& words) {
  Signature s;
  s.sequence = sequence;
  s.count = static_cast<std::int64_t>(words[0]);
  s.plan = words[1];
  set_code(s, static_cast<int>(words[2] & 0xffU));
  s.type = static_cast<DataType>(words[2] >> 8U & 0xffU);
  s.op = static_cast<ReduceOp>(words[2] >> 16U & 0xffU);
  return s;
}

/// Could a rank have called this?
bool is_meaningful(const Signature& s) {
  return s.count >= 0 && code_of(s) < kNumSignatureCodes && static_cast<int>(s.type) < kNumDataTypes &&
         static_cast<int>(s.op) < kNumReduceOps;
}

std::uint64_t hash(const Signature& s) {
  std::uint64_t h = s.sequence;
  for (const std::uint64_t word : pack(s)) h = mix_in(h, word);
  return h;
}

/// Ranks that have a core each can afford to look for a while before they sleep (a yield is one more look when no other
/// thread wants the core); otherwise they give the core to the rank that they wait for.
Patience patience_for(int num_ranks) {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return num_ranks <= cores ? Patience{100, 200} : Patience{20, 4};
}

}  // namespace

SharedTransport::SharedTransport(std::shared_ptr<Segment> segment, const Membership& membership, double timeout_s)
    : segment_(std::move(segment)), membership_(membership), timeout_s_(timeout_s) {
  num_local_ = segment_->shape().num_ranks;
  if (membership_.members.empty()) {
    membership_.members.resize(static_cast<std::size_t>(num_local_));
    std::iota(membership_.members.begin(), membership_.members.end(), 0);
  }
  local_of_.assign(static_cast<std::size_t>(membership_.size), -1);
  for (int l = 0; l < num_local_; ++l) local_of_[static_cast<std::size_t>(global(l))] = l;
  self_ = local(membership_.rank);
  agreed_.assign(static_cast<std::size_t>(num_local_), 0);
  heartbeats_.assign(static_cast<std::size_t>(num_local_), 0);
  patience_ = patience_for(num_local_);
}

SharedTransport::~SharedTransport() {
  // A child that was forked has a copy of this object; the rank is still its parent.
  if (getpid() == process_) segment_->block(self_).has_left.store(1, std::memory_order_release);
}

int SharedTransport::global(int local_rank) const { return membership_.members[static_cast<std::size_t>(local_rank)]; }

TransportLimits SharedTransport::limits() const {
  return {.num_slots = segment_->shape().num_slots,
          .staging_bytes = segment_->shape().staging_bytes,
          .least_chunk_bytes = std::numeric_limits<std::int64_t>::max()};
}

void SharedTransport::throw_failure(const std::string& text) {
  failure_ = text;
  segment_->set_failure(text);
  throw TransportError(text);
}

void SharedTransport::throw_lost(const std::string& text, std::vector<int> silent) {
  failure_ = text;
  segment_->set_failure(text);
  throw PeerLost(text, std::move(silent));
}

void SharedTransport::begin(const Signature& signature, const Operands& /*operands*/) {
  if (failure_.empty()) {
    failure_ = segment_->failure();
    if (!failure_.empty()) throw PeerLost("this communicator has failed before: " + failure_);
  }
  if (!failure_.empty()) throw TransportError("this communicator has failed before: " + failure_);
  signature_ = signature;
  signature_hash_ = hash(signature);
  SignatureCell& cell = segment_->block(self_).signatures[signature.sequence % 4];
  // A rank that reads one of the new words also sees that the cell is being changed.
  cell.sequence.store(0, std::memory_order_relaxed);
  const std::array<std::uint64_t, 4> words = pack(signature);
  for (std::size_t i = 0; i < words.size(); ++i) cell.words[i].store(words[i], std::memory_order_release);
  cell.sequence.store(signature.sequence, std::memory_order_release);
  has_progressed_ = true;
}

bool SharedTransport::agrees(int peer) {
  std::uint64_t& agreed = agreed_[static_cast<std::size_t>(peer)];
  if (agreed == signature_.sequence) return true;
  const SignatureCell& cell = segment_->block(peer).signatures[signature_.sequence % 4];
  const std::uint64_t sequence = cell.sequence.load(std::memory_order_acquire);
  if (sequence < signature_.sequence) return false;
  if (sequence == signature_.sequence) {
    std::array<std::uint64_t, 4> words{};
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = cell.words[i].load(std::memory_order_acquire);
    const bool is_stable = cell.sequence.load(std::memory_order_relaxed) == sequence;
    const Signature theirs = unpack(sequence, words);
    if (is_stable && !is_meaningful(theirs)) {
      throw_failure(
          fmt::format("rank {} has written something into the shared memory that no rank writes (noticed by rank {})",
                      global(peer), membership_.rank));
    }
    if (is_stable && theirs != signature_) {
      throw_failure(describe_mismatch(signature_, membership_.rank, theirs, global(peer)));
    }
  }
  agreed = signature_.sequence;
  return true;
}

bool SharedTransport::await(Signal& signal, std::uint32_t target, int peer) {
  if (has_reached(signal, target)) return true;
  if (awaited_.signal == nullptr) awaited_ = {&signal, target, peer};
  return false;
}

std::uint32_t SharedTransport::num_receivers(const ChunkProgram& program) const {
  if (num_local_ == membership_.size) return static_cast<std::uint32_t>(program.num_receivers);
  std::vector<int> receivers;
  for (const ChunkStep& step : program.steps) {
    for (const ChunkSend& send : step.sends) {
      if (is_member(send.peer)) receivers.push_back(send.peer);
    }
  }
  std::sort(receivers.begin(), receivers.end());
  receivers.erase(std::unique(receivers.begin(), receivers.end()), receivers.end());
  return static_cast<std::uint32_t>(receivers.size());
}

bool SharedTransport::try_open(Flight& flight) {
  if (flight.program->steps.size() >= (1U << kStepBits)) {
    throw_failure(fmt::format("the plan has {} steps for rank {}; shared memory takes {} at most",
                              flight.program->steps.size(), membership_.rank, (1U << kStepBits) - 1));
  }
  SlotSignals& slot = segment_->block(self_).slots[static_cast<std::size_t>(flight.slot)];
  std::uint32_t& to_release = to_release_[static_cast<std::size_t>(flight.slot)];
  if (!await(slot.released, to_release, -1)) return false;
  to_release += num_receivers(*flight.program);
  slot.published.value.store(progress_code(flight.serial, 0), std::memory_order_release);
  return true;
}

bool SharedTransport::try_send(Flight& flight, int step) {
  const ChunkStep& s = flight.program->steps[static_cast<std::size_t>(step)];
  std::byte* staging = segment_->staging(self_, flight.slot) + s.staging_begin * flight.element_size;
  bool has_sent = false;
  std::vector<std::int64_t> staged;  // only where some receivers are elsewhere
  std::int64_t staged_below = 0;
  for (const ChunkSend& send : s.sends) {
    if (num_local_ < membership_.size) {
      if (!is_member(send.peer)) continue;
      if (std::find(staged.begin(), staged.end(), send.staged_at) != staged.end()) continue;
      staged.push_back(send.staged_at);
    } else {
      // Places are given out in the order of sends: what lies below has been copied for an earlier receiver.
      if (send.staged_at < staged_below) continue;
      staged_below = send.staged_at + 1;
    }
    has_sent = true;
    std::byte* out = staging + send.staged_at * flight.element_size;
    for (const Part& part : send.parts) {
      const SpaceView& view = part.space == Space::kInput ? flight.input : flight.work;
      std::memcpy(out, address(view, part, flight.element_size),
                  static_cast<std::size_t>(part.count * flight.element_size));
      out += part.count * flight.element_size;
    }
  }
  if (has_sent) {
    raise(segment_->block(self_).slots[static_cast<std::size_t>(flight.slot)].published,
          progress_code(flight.serial, step + 1));
  }
  return true;
}

bool SharedTransport::try_receive(Flight& flight, int step, std::span<const std::byte*> operands) {
  const ChunkStep& s = flight.program->steps[static_cast<std::size_t>(step)];
  for (std::size_t i = 0; i < s.recvs.size(); ++i) {
    const ChunkRecv& recv = s.recvs[i];
    const int peer = local(recv.peer);
    if (peer < 0) continue;
    Signal& published = segment_->block(peer).slots[static_cast<std::size_t>(flight.slot)].published;
    if (!await(published, progress_code(flight.serial, recv.peer_step + 1), peer)) return false;
    if (!agrees(peer)) {
      throw_failure(fmt::format(
          "rank {} is in another operation than rank {} ({}); expected the same calls in the same order on all "
          "ranks",
          recv.peer, membership_.rank, describe(signature_)));
    }
    operands[i] = segment_->staging(peer, flight.slot) + recv.staged_at * flight.element_size;
  }
  return true;
}

void SharedTransport::consumed(Flight& flight, int step) {
  for (const ChunkRecv& recv : flight.program->steps[static_cast<std::size_t>(step)].recvs) {
    const int peer = local(recv.peer);
    if (peer < 0 || !recv.is_last_of_peer) continue;
    increase(segment_->block(peer).slots[static_cast<std::size_t>(flight.slot)].released);
  }
}

bool SharedTransport::try_close(Flight& /*flight*/) { return true; }

void SharedTransport::progressed() {
  has_progressed_ = true;
  awaited_ = {};
}

std::vector<int> SharedTransport::silent_ranks() const {
  std::vector<int> out;
  for (int peer = 0; peer < num_local_; ++peer) {
    const std::uint32_t before = heartbeats_[static_cast<std::size_t>(peer)];
    if (peer == self_ || segment_->block(peer).heartbeat.load(std::memory_order_relaxed) != before) continue;
    out.push_back(global(peer));
  }
  return out;
}

void SharedTransport::note_time() {
  segment_->block(self_).heartbeat.fetch_add(1, std::memory_order_relaxed);
  if (!has_progressed_) return;
  has_progressed_ = false;
  silent_since_ns_ = now_ns();
  for (int peer = 0; peer < num_local_; ++peer) {
    heartbeats_[static_cast<std::size_t>(peer)] = segment_->block(peer).heartbeat.load(std::memory_order_relaxed);
  }
}

void SharedTransport::check_time() {
  if (static_cast<double>(now_ns() - silent_since_ns_) < timeout_s_ * 1e9) return;
  const std::vector<int> silent = silent_ranks();
  std::vector<int> named = silent;
  if (named.empty() && awaited_.peer >= 0) named.push_back(global(awaited_.peer));
  const bool is_one = named.size() == 1;
  const std::string who =
      fmt::format("rank{} {} {}", is_one ? "" : "s", fmt::join(named, ", "), is_one ? "has" : "have");
  throw_lost(fmt::format("{} been silent for {} s in {} (noticed by rank {}); expected a longer timeout_s "
                         "(GAR_TIMEOUT), if that is not too long",
                         named.empty() ? "other ranks have" : who, timeout_s_, describe(signature_), membership_.rank),
             silent);
}

void SharedTransport::check_peers(bool has_limit) {
  note_time();
  if (const std::string text = segment_->failure(); !text.empty()) throw_lost(text);
  const auto is_there = [&] { return awaited_.signal != nullptr && has_reached(*awaited_.signal, awaited_.target); };
  for (int peer = 0; peer < num_local_; ++peer) {
    if (peer == self_) continue;
    agrees(peer);
    const bool has_left = segment_->block(peer).has_left.load(std::memory_order_acquire) != 0;
    const bool is_gone = has_left || !segment_->is_alive(peer);
    // A rank that has done its part may leave; that matters only to a rank that still waits for it.
    const bool is_awaited = awaited_.signal != nullptr && (peer == awaited_.peer || awaited_.peer < 0);
    if (!is_gone || is_there() || (has_left && !is_awaited)) continue;
    // A dead rank may not matter to this one, which waits for another: but that one may wait for the dead rank, and
    // then nothing arrives here either.
    if (peer != awaited_.peer && now_ns() - silent_since_ns_ < kGraceNs) continue;
    // It may have failed first and said why.
    if (const std::string text = segment_->failure(); !text.empty()) throw_lost(text);
    throw_lost(has_left ? fmt::format("rank {} has left the communicator while rank {} is in {}", global(peer),
                                      membership_.rank, describe(signature_))
                        : fmt::format("rank {} has died (noticed by rank {} in {})", global(peer), membership_.rank,
                                      describe(signature_)));
  }
  if (has_limit) check_time();
}

void SharedTransport::wait() {
  if (awaited_.signal == nullptr) return;
  const Awaited awaited = awaited_;
  if (awaited.peer >= 0) agrees(awaited.peer);
  int slice_us = idle_ ? kFirstIdleUs : kSliceUs;
  bool is_there = wait_for(*awaited.signal, awaited.target, patience_, slice_us);
  Patience at_once;
  for (int slept_us = slice_us; !is_there && slept_us < kSliceUs; slept_us += slice_us) {
    idle_();
    slice_us = std::min(2 * slice_us, kLongestIdleUs);
    is_there = wait_for(*awaited.signal, awaited.target, at_once, slice_us);
  }
  if (!is_there) check_peers();
  awaited_ = {};
}

void SharedTransport::fail(std::string_view reason) noexcept {
  try {
    if (failure_.empty()) failure_ = std::string(reason);
    segment_->set_failure(reason);
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory while failing; the others will notice the silence
  }
}

QuickGather SharedTransport::quick_gather() const {
  if (num_local_ != membership_.size) return {};
  return {.max_bytes = static_cast<double>(segment_->shape().exchange_bytes),
          .num_rounds = 1,
          .is_read_in_place = true,
          .plan_seconds = kPlanSeconds};
}

bool SharedTransport::try_exchange(const void* in, std::int64_t bytes, std::span<const std::byte*> operands) {
  if (exchange_of_ != signature_.sequence) {
    exchange_of_ = signature_.sequence;
    ++exchange_;
    // Two areas take turns: a rank in exchange n + 2 has seen all ranks in n + 1, and these are done with n.
    if (bytes > 0) std::memcpy(segment_->exchange_area(self_, exchange_), in, static_cast<std::size_t>(bytes));
    Signal& exchanged = segment_->block(self_).exchanged;
    exchanged.note.store(signature_hash_, std::memory_order_relaxed);
    raise(exchanged, exchange_);
  }
  for (int peer = 0; peer < num_local_; ++peer) {
    Signal& exchanged = segment_->block(peer).exchanged;
    if (!await(exchanged, exchange_, peer)) return false;
    // The note may already be that of the next operation, if the peer is ahead.
    if (exchanged.note.load(std::memory_order_relaxed) != signature_hash_ && !agrees(peer)) {
      throw_failure(fmt::format("rank {} is in another operation than rank {} ({})", global(peer), membership_.rank,
                                describe(signature_)));
    }
    operands[static_cast<std::size_t>(peer)] = segment_->exchange_area(peer, exchange_);
  }
  return true;
}

}  // namespace gar
