#include "runtime/transports/mpi/mpi_transport.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/hash.hpp"
#include "runtime/schedule.hpp"
#include "runtime/transports/mpi/polite.hpp"

namespace gar {

namespace {

constexpr std::int64_t kMaxMessageBytes = std::int64_t{1} << 30U;  // MPI counts are ints
constexpr std::size_t kKeptRequests = 8192;
constexpr std::int64_t kSlotAlignment = 64;
// In front of the data of a frame; keeps their alignment.
constexpr std::int64_t kFrameHead = kSlotAlignment;
static_assert(sizeof(WireSignature) <= kFrameHead);
// Copying that much takes less than another message does.
constexpr std::int64_t kMostFramedBytes = 16 << 10;
// A rank that waits gives its core away at once, but sleeps only when the wait has become long.
constexpr int kLooks = 8;  // before giving the core away: some MPIs do that in every look themselves
constexpr std::int64_t kYieldNs = 1'000'000;
constexpr std::int64_t kLookNs = 2'000'000;
constexpr std::int64_t kTellNs = 20'000'000;  // a rank that has waited this long tells the others what it has called
constexpr std::int64_t kFarewellNs = 1'000'000'000;
constexpr std::int64_t kCancelNs = 100'000'000;
constexpr std::int64_t kFirstSleepNs = 5'000;
constexpr std::int64_t kLongestSleepNs = 100'000;

// Measured with Open MPI 4.1 and MPICH 4.0: below this the messages of many ranks become so short that their fixed
// costs count, and above it nothing is gained. Three chunks overlap sending, receiving and reducing.
constexpr int kNumSlots = 3;
constexpr std::int64_t kChunkBytes = 4 << 20;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::int64_t round_up(std::int64_t bytes) { return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment; }

const SpaceView& view_of(const Flight& flight, const Part& part) {
  return part.space == Space::kInput ? flight.input : flight.work;
}

std::byte* memory_of(const Flight& flight, const Part& part) {
  return address(view_of(flight, part), part, flight.element_size);
}

void pack(const Flight& flight, const ChunkSend& send, std::byte* out) {
  for (const Part& part : send.parts) {
    std::memcpy(out, memory_of(flight, part), static_cast<std::size_t>(part.count * flight.element_size));
    out += part.count * flight.element_size;
  }
}

/// Looking a request up takes as long as making one, where messages are so short that this counts.
MPI_Request start_once(const MpiMessage& message, MPI_Comm comm) {
  MPI_Request out = MPI_REQUEST_NULL;
  if (message.is_send) {
    check_mpi(MPI_Isend(message.memory, message.bytes, MPI_BYTE, message.peer, message.tag, comm, &out), "MPI_Isend");
  } else {
    check_mpi(MPI_Irecv(message.memory, message.bytes, MPI_BYTE, message.peer, message.tag, comm, &out), "MPI_Irecv");
  }
  return out;
}

/// The same for all operations that differ in their number only, so that their requests can be used again.
std::uint64_t hash_of(const Signature& signature) {
  std::uint64_t hash = signature.plan;
  for (const std::int64_t value :
       {signature.count, static_cast<std::int64_t>(code_of(signature)), static_cast<std::int64_t>(signature.type),
        static_cast<std::int64_t>(signature.op)}) {
    hash = mix_in(hash, value);
  }
  return hash;
}

}  // namespace

MpiTransport::MpiTransport(MPI_Comm comm, const MpiTransportOptions& options)
    : options_(options), has_other_way_(options.has_other_way) {
  comm_ = duplicate_politely(comm).release();
  check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  allows_threads_ = level == MPI_THREAD_MULTIPLE;
  void* largest_tag = nullptr;
  int is_set = 0;
  // Open MPI has it on the world's communicator and its duplicates only.
  if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest_tag, &is_set) == MPI_SUCCESS && is_set != 0) {
    tags_ = MpiTags(*static_cast<int*>(largest_tag));
  }
  if (options_.num_slots <= 0) options_.num_slots = kNumSlots;
  options_.num_slots = std::min(options_.num_slots, MpiTags::kMaxSlots);
  if (options_.chunk_bytes <= 0) options_.chunk_bytes = kChunkBytes;
  if (options_.least_chunk_bytes <= 0) options_.least_chunk_bytes = options_.chunk_bytes;
  slots_.resize(static_cast<std::size_t>(options_.num_slots));
  requests_ = std::make_unique<RequestCache>(comm_, kKeptRequests);
  control_ = std::make_unique<MpiControl>(comm_, rank_, size_, tags_);
  exchange_ = std::make_unique<MpiExchange>(comm_, rank_, size_, tags_);
  admission_ = std::make_unique<MpiAdmission>(comm_, rank_, size_, options_.max_senders);
}

MpiTransport::~MpiTransport() {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized != 0) {  // too late for MPI calls: what it holds stays where it is
    static_cast<void>(requests_.release());
    static_cast<void>(control_.release());
    static_cast<void>(exchange_.release());
    static_cast<void>(admission_.release());
    return;
  }
  cancel_receives();
  const bool is_clean = active_.empty();
  abandon();
  exchange_.reset();
  control_->finish();
  // Messages that no rank has received would turn up in the next communicator that gets the same number.
  const bool may_free = is_clean && control_->is_clean() && (!has_failed_ || control_->have_all_given_up());
  control_.reset();
  requests_.reset();
  if (may_free) MPI_Comm_free(&comm_);
}

TransportLimits MpiTransport::limits() const {
  TransportLimits limits;
  limits.num_slots = options_.num_slots;
  limits.chunk_bytes = options_.chunk_bytes;
  limits.least_chunk_bytes = options_.least_chunk_bytes;
  return limits;
}

void MpiTransport::begin(const Signature& signature, const Operands& operands) {
  if (has_failed_) throw TransportError("this communicator has failed before: " + failure_);
  const bool was_away = look_for_aborts();
  control_->begin(signature);
  if (was_away) control_->take_signatures();
  operation_hash_ = hash_of(signature);
  frame_ = to_wire(signature, rank_);
  has_told_ = false;
  admission_->begin(operands.schedule == nullptr ? 1 : operands.schedule->plan->fan_in);
  is_exchanging_ = false;
  has_progressed_ = true;
}

/// The others may have given up while this rank was busy with something else. What they said is still on its way
/// through MPI when it was away for long, and receives must not be posted for data that they have taken back.
/// True where it was away for so long that they may have told it what they have called.
bool MpiTransport::look_for_aborts() {
  const std::int64_t now = now_ns();
  const bool may_have_told = last_begin_ns_ != 0 && now - last_begin_ns_ >= kTellNs;
  const bool was_away = static_cast<double>(now - last_begin_ns_) > options_.timeout_s * 0.5e9 && last_begin_ns_ != 0;
  last_begin_ns_ = now;
  while (was_away && now_ns() < now + kLookNs) control_->check_abort();
  return may_have_told;
}

// --- messages --------------------------------------------------------------------------------------------------------

int MpiTransport::start(bool is_send, int peer, std::byte* memory, std::int64_t bytes, const Owner& owner) {
  int num_messages = 0;
  for (std::int64_t done = 0; done < bytes; done += kMaxMessageBytes, ++num_messages) {
    Owner piece = owner;
    piece.message.is_send = is_send;
    piece.message.peer = peer;
    piece.message.memory = memory + done;
    piece.message.bytes = static_cast<int>(std::min(bytes - done, kMaxMessageBytes));
    active_.push_back(piece.is_once ? start_once(piece.message, comm_) : requests_->start(piece.message));
    owners_.push_back(piece);
  }
  slots_[index(owner.slot)].num_pending += num_messages;
  return num_messages;
}

bool MpiTransport::poll() {
  const bool has_sent = send_admitted();
  if (active_.empty()) return has_sent;
  int num_done = 0;
  done_.resize(active_.size());
  statuses_.resize(active_.size());
  const int code =
      MPI_Testsome(static_cast<int>(active_.size()), active_.data(), &num_done, done_.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) check_mpi(code, "MPI_Testsome");
  if (num_done == 0 || num_done == MPI_UNDEFINED) return has_sent;
  std::optional<Failed> failed;
  order_.resize(static_cast<std::size_t>(num_done));
  std::iota(order_.begin(), order_.end(), 0);
  // From the last to the first: what is completed makes room for what comes last.
  std::sort(order_.begin(), order_.end(), [&](int a, int b) { return done_[index(a)] > done_[index(b)]; });
  for (const int i : order_) {
    const int error = code == MPI_ERR_IN_STATUS ? statuses_[index(i)].MPI_ERROR : MPI_SUCCESS;
    const bool is_failed = error != MPI_SUCCESS && error != MPI_ERR_PENDING;
    const auto which = index(done_[index(i)]);
    if (is_failed) {
      failed = {owners_[which].message, error};
      drop(which);
    } else {
      complete(which);
    }
  }
  has_progressed_ = true;
  if (failed) message_failed(*failed);
  return true;
}

void MpiTransport::complete(std::size_t i) {
  if (!owners_[i].is_once) requests_->give_back(owners_[i].message, active_[i]);
  const int admitted = remove(i);
  if (admitted >= 0) admission_->arrived(admitted);
}

void MpiTransport::drop(std::size_t i) noexcept {
  if (active_[i] != MPI_REQUEST_NULL) MPI_Request_free(&active_[i]);
  static_cast<void>(remove(i));
}

int MpiTransport::remove(std::size_t i) noexcept {
  const Owner owner = owners_[i];
  active_[i] = active_.back();
  owners_[i] = owners_.back();
  active_.pop_back();
  owners_.pop_back();
  Slot& slot = slots_[index(owner.slot)];
  --slot.num_pending;
  if (owner.index < 0) return -1;
  if (owner.message.is_send) {
    --slot.user_sends[index(owner.index)].num_pending;
    return -1;
  }
  Recv& recv = slot.steps[index(owner.step)].recvs[index(owner.index)];
  return --recv.num_pending == 0 && recv.is_admitted ? owner.message.peer : -1;
}

/// A message that does not fit belongs to a rank that has called something else, and has said so before.
void MpiTransport::message_failed(const Failed& failed) {
  const MpiMessage& message = failed.message;
  for (int i = 0; i < 100 && !message.is_send && !control_->is_agreed(message.peer); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw TransportError(fmt::format("a message {} rank {} failed: {}", message.is_send ? "to" : "from", message.peer,
                                   mpi_error_text(failed.code)));
}

// --- chunks ----------------------------------------------------------------------------------------------------------

bool MpiTransport::is_framed(std::int64_t bytes) const {
  return bytes <= kMostFramedBytes && !admission_->concerns(bytes);
}

/// Gives every message that needs one its place in the slot's buffer.
void MpiTransport::lay_out(const Flight& flight, Slot& slot) {
  const std::vector<ChunkStep>& steps = flight.program->steps;
  slot.steps.resize(steps.size());
  slot.user_sends.clear();
  if (flight.chunk == 0) partners_.clear();
  std::int64_t bytes = 0;
  const auto take = [&](std::int64_t length) {
    const std::int64_t at = bytes;
    bytes += round_up(length);
    return at;
  };
  std::vector<std::pair<std::byte**, std::int64_t>> places;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    StepState& state = slot.steps[s];
    state.packed.assign(steps[s].sends.size(), nullptr);
    state.recvs.assign(steps[s].recvs.size(), {});
    state.num_deferred = 0;
    for (std::size_t i = 0; i < steps[s].sends.size(); ++i) {
      const ChunkSend& send = steps[s].sends[i];
      const std::int64_t length = (send.end - send.begin) * flight.element_size;
      if (is_mine(send.peer) && (send.parts.size() > 1 || is_framed(length))) {
        places.emplace_back(&state.packed[i], take(length + (is_framed(length) ? kFrameHead : 0)));
        if (flight.chunk == 0 && is_framed(length)) partners_.push_back(send.peer);
      }
    }
    for (std::size_t i = 0; i < steps[s].recvs.size(); ++i) {
      const ChunkRecv& recv = steps[s].recvs[i];
      if (!is_mine(recv.peer)) continue;
      state.recvs[i].state = RecvState::kDeferred;
      ++state.num_deferred;
      const std::int64_t length = (recv.end - recv.begin) * flight.element_size;
      if (is_framed(length)) {
        state.recvs[i].is_framed = true;
        if (flight.chunk == 0) partners_.push_back(recv.peer);
        places.emplace_back(&state.recvs[i].memory, take(length + kFrameHead));
      } else if (is_direct(flight, steps[s], i)) {
        state.recvs[i].memory = memory_of(flight, recv.target);
        state.recvs[i].is_direct = true;
      } else {
        places.emplace_back(&state.recvs[i].memory, take(length));
      }
    }
  }
  slot.arena.reserve(bytes);
  for (const auto& [pointer, at] : places) *pointer = slot.arena.data() + at;
}

/// May what a rank sends in this step be received straight into its place? Such receives are posted late, the others
/// early, and MPI matches the messages of a pair in the order in which they are posted: so all of them or none.
bool MpiTransport::is_direct(const Flight& flight, const ChunkStep& step, std::size_t message) const {
  const std::vector<ChunkRecv>& recvs = step.recvs;  // sorted by peer
  const auto stays = [&](const ChunkRecv& recv) {
    return recv.is_direct && !is_framed((recv.end - recv.begin) * flight.element_size) &&
           !swaps(flight, step, recv.target);
  };
  const std::int32_t peer = recvs[message].peer;
  std::size_t begin = message;
  while (begin > 0 && recvs[begin - 1].peer == peer) --begin;
  for (std::size_t i = begin; i < recvs.size() && recvs[i].peer == peer; ++i) {
    if (!stays(recvs[i])) return false;
  }
  return true;
}

/// Does the step send out of the memory that one of its receives goes to?
bool MpiTransport::swaps(const Flight& flight, const ChunkStep& step, const Part& target) const {
  if (!step.overwrites_sent) return false;
  const Range to = range_of(flight, target);
  return std::any_of(step.sends.begin(), step.sends.end(), [&](const ChunkSend& send) {
    return is_mine(send.peer) && send.parts.size() == 1 && range_of(flight, send.parts.front()).meets(to);
  });
}

MpiTransport::Range MpiTransport::range_of(const Flight& flight, const Part& part) {
  const std::byte* begin = memory_of(flight, part);
  return {begin, begin + part.count * flight.element_size};
}

bool MpiTransport::try_open(Flight& flight) {
  Slot& slot = slot_of(flight);
  lay_out(flight, slot);
  const std::vector<ChunkStep>& steps = flight.program->steps;
  // Two steps of one tag are received in the order in which they are sent only when they are posted in that order.
  slot.is_posted_early = steps.empty() || steps.back().number < tags_.step_limit();
  if (options_.max_senders > 0) expect(flight);
  if (!slot.is_posted_early) return true;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    for (std::size_t i = 0; i < steps[s].recvs.size(); ++i) {
      const Recv& recv = slot.steps[s].recvs[i];
      if (recv.state == RecvState::kDeferred && !recv.is_direct) post(flight, static_cast<int>(s), i);
    }
  }
  return true;
}

void MpiTransport::post(const Flight& flight, int step, std::size_t message) {
  const ChunkStep& chunk_step = flight.program->steps[index(step)];
  const ChunkRecv& recv = chunk_step.recvs[message];
  StepState& step_state = slot_of(flight).steps[index(step)];
  Recv& state = step_state.recvs[message];
  --step_state.num_deferred;
  Owner owner;
  owner.message.tag = tags_.data(operation_hash_, flight.slot, chunk_step.number);
  owner.slot = flight.slot;
  owner.step = step;
  owner.index = static_cast<int>(message);
  state.state = RecvState::kPosted;
  owner.is_once = state.is_framed;
  const std::int64_t bytes = (recv.end - recv.begin) * flight.element_size + (state.is_framed ? kFrameHead : 0);
  state.num_pending = start(false, recv.peer, state.memory, bytes, owner);
}

void MpiTransport::send(const Flight& flight, int step, std::size_t message) {
  const ChunkStep& chunk_step = flight.program->steps[index(step)];
  const ChunkSend& send = chunk_step.sends[message];
  Slot& slot = slot_of(flight);
  Owner owner;
  owner.message.tag = tags_.data(operation_hash_, flight.slot, chunk_step.number);
  owner.slot = flight.slot;
  owner.step = step;
  const std::int64_t bytes = (send.end - send.begin) * flight.element_size;
  std::byte* packed = slot.steps[index(step)].packed[message];
  if (is_framed(bytes)) {
    std::memcpy(packed, &frame_, sizeof frame_);
    pack(flight, send, packed + kFrameHead);
    owner.is_once = true;
    send_in_order({send.peer, packed, bytes + kFrameHead, owner});
    return;
  }
  control_->announce(send.peer);
  const int admission_tag = tags_.admission(flight.slot, chunk_step.number);
  if (packed == nullptr) {
    owner.index = static_cast<int>(slot.user_sends.size());
    std::byte* memory = memory_of(flight, send.parts.front());
    slot.user_sends.push_back({{memory, memory + bytes}, step, 0});
    send_or_hold({send.peer, memory, bytes, owner}, admission_tag);
    return;
  }
  pack(flight, send, packed);
  send_or_hold({send.peer, packed, bytes, owner}, admission_tag);
}

void MpiTransport::send_or_hold(const Held& message, int admission_tag) {
  Slot& slot = slots_[index(message.owner.slot)];
  int num_pending = 1;
  if (admission_->concerns(message.bytes)) {
    ++slot.num_pending;
    admission_->await(message.peer, admission_tag, num_held_);
    held_.emplace(num_held_++, message);
  } else {
    num_pending = send_in_order(message);
  }
  if (message.owner.index >= 0) slot.user_sends[index(message.owner.index)].num_pending = num_pending;
}

/// Sends it, or lets it follow one of the same step that waits to be admitted: the receiver has posted both in this
/// order.
int MpiTransport::send_in_order(const Held& message) {
  Held* before = last_held(message.peer, message.owner.message.tag);
  if (before == nullptr) return start(true, message.peer, message.memory, message.bytes, message.owner);
  ++slots_[index(message.owner.slot)].num_pending;
  before->followers.push_back(message);
  return 1;
}

MpiTransport::Held* MpiTransport::last_held(int peer, int tag) {
  Held* last = nullptr;
  for (auto& [id, held] : held_) {
    if (held.peer == peer && held.owner.message.tag == tag) last = &held;
  }
  return last;
}

/// Admissions of one step and rank may be noticed in any order: the first message that waits leaves first.
MpiTransport::Held MpiTransport::release(std::int64_t id) {
  Held next = std::move(held_.at(id));
  const int peer = next.peer;
  const int tag = next.owner.message.tag;
  for (auto it = held_.find(id); it != held_.begin();) {
    --it;
    if (it->second.peer == peer && it->second.owner.message.tag == tag) std::swap(it->second, next);
  }
  held_.erase(id);
  return next;
}

/// True when something has left.
bool MpiTransport::send_admitted() {
  if (held_.empty()) return false;
  bool has_sent = false;
  for (const std::int64_t id : admission_->admitted()) {
    const Held admitted = release(id);
    Slot& slot = slots_[index(admitted.owner.slot)];
    const auto leave = [&](const Held& message) {
      --slot.num_pending;
      const int num_pending = start(true, message.peer, message.memory, message.bytes, message.owner);
      if (message.owner.index >= 0) slot.user_sends[index(message.owner.index)].num_pending = num_pending;
    };
    leave(admitted);
    for (const Held& follower : admitted.followers) leave(follower);
    has_sent = true;
  }
  return has_sent;
}

/// Tells the senders of a chunk, step by step, when they may send.
void MpiTransport::expect(const Flight& flight) {
  const std::vector<ChunkStep>& steps = flight.program->steps;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    std::vector<MpiAdmission::Expected> messages;
    for (std::size_t i = 0; i < steps[s].recvs.size(); ++i) {
      const ChunkRecv& recv = steps[s].recvs[i];
      if (!is_mine(recv.peer) || !admission_->concerns((recv.end - recv.begin) * flight.element_size)) continue;
      slot_of(flight).steps[s].recvs[i].is_admitted = true;
      messages.push_back({recv.peer, tags_.admission(flight.slot, steps[s].number)});
    }
    admission_->expect(std::move(messages));
  }
  admission_->admit();
}

bool MpiTransport::try_send(Flight& flight, int step) {
  const std::vector<ChunkSend>& sends = flight.program->steps[index(step)].sends;
  post_deferred(flight, step);
  for (std::size_t i = 0; i < sends.size(); ++i) {
    if (is_mine(sends[i].peer)) send(flight, step, i);
  }
  return true;
}

/// Posts the receives of a step that has started, as far as earlier sends have left their memory.
void MpiTransport::post_deferred(const Flight& flight, int step) {
  Slot& slot = slot_of(flight);
  StepState& state = slot.steps[index(step)];
  if (state.num_deferred == 0) return;
  const ChunkStep& chunk_step = flight.program->steps[index(step)];
  int waiting_for = -1;  // what a rank sends is posted in the order in which it is sent
  for (std::size_t i = 0; i < state.recvs.size(); ++i) {
    Recv& recv = state.recvs[i];
    if (recv.state != RecvState::kDeferred || chunk_step.recvs[i].peer == waiting_for) continue;
    if (recv.is_direct && chunk_step.overwrites_sent) {
      const Range target = range_of(flight, chunk_step.recvs[i].target);
      if (std::any_of(slot.user_sends.begin(), slot.user_sends.end(), [&](const UserSend& sent) {
            return sent.num_pending > 0 && sent.step < step && sent.range.meets(target);
          })) {
        if (!slot.is_posted_early) return;
        waiting_for = chunk_step.recvs[i].peer;
        continue;
      }
    }
    post(flight, step, i);
  }
}

/// May the step's results be written, or is something of that memory still to be sent?
bool MpiTransport::may_write(const Flight& flight, int step) {
  const Slot& slot = slot_of(flight);
  const std::vector<ChunkStep>& steps = flight.program->steps;
  const auto is_pending = [](const UserSend& sent) { return sent.num_pending > 0; };
  // After the last step of a ReduceScatter the user's output is written, which may be a part of the input.
  if (control_->signature().collective == Collective::kReduceScatter &&
      static_cast<std::size_t>(step) + 1 == steps.size()) {
    return std::none_of(slot.user_sends.begin(), slot.user_sends.end(), is_pending);
  }
  const ChunkStep& chunk_step = steps[index(step)];
  if (!chunk_step.overwrites_sent) return true;
  return std::none_of(slot.user_sends.begin(), slot.user_sends.end(), [&](const UserSend& sent) {
    return is_pending(sent) &&
           std::any_of(chunk_step.reductions.begin(), chunk_step.reductions.end(),
                       [&](const Reduction& r) { return range_of(flight, r.out).meets(sent.range); });
  });
}

/// The data are there: is what they belong to?
bool MpiTransport::has_come(const Recv& recv, int peer) {
  if (!recv.is_framed) return control_->is_agreed(peer);
  control_->compare(read_signature({recv.memory, sizeof(WireSignature)}, peer), peer);
  return true;
}

bool MpiTransport::try_receive(Flight& flight, int step, std::span<const std::byte*> operands) {
  const ChunkStep& chunk_step = flight.program->steps[index(step)];
  StepState& state = slot_of(flight).steps[index(step)];
  const auto is_missing = [&] {
    post_deferred(flight, step);
    return std::any_of(state.recvs.begin(), state.recvs.end(),
                       [](const Recv& recv) { return recv.state == RecvState::kDeferred || recv.num_pending > 0; });
  };
  if (is_missing() && (!poll() || is_missing())) return false;
  for (std::size_t i = 0; i < chunk_step.recvs.size(); ++i) {
    if (state.recvs[i].state == RecvState::kElsewhere) continue;
    if (!has_come(state.recvs[i], chunk_step.recvs[i].peer)) return false;
    operands[i] = state.recvs[i].memory + (state.recvs[i].is_framed ? kFrameHead : 0);
  }
  return may_write(flight, step) || (poll() && may_write(flight, step));
}

void MpiTransport::consumed(Flight& /*flight*/, int /*step*/) {}

bool MpiTransport::try_close(Flight& flight) {
  const Slot& slot = slot_of(flight);
  return slot.num_pending == 0 || (poll() && slot.num_pending == 0);
}

bool MpiTransport::try_exchange(const void* in, std::int64_t bytes, std::span<const std::byte*> operands) {
  is_exchanging_ = true;
  return exchange_->advance(control_->signature(), in, bytes, operands);
}

// --- waiting and failing ---------------------------------------------------------------------------------------------

void MpiTransport::progressed() { has_progressed_ = true; }

void MpiTransport::wait() {
  for (int i = 0; i < kLooks; ++i) {
    if (poll() || exchange_->poll()) return;
  }
  const std::int64_t now = now_ns();
  if (has_progressed_) {
    has_progressed_ = false;
    silent_since_ns_ = now;
    sleep_ns_ = kFirstSleepNs;
  }
  const std::int64_t silent_ns = now - silent_since_ns_;
  if (silent_ns < kYieldNs) {
    if (!courtesy_.may_yield() || !courtesy_.yield()) std::this_thread::sleep_for(kNap);
    return;
  }
  // With frames, ranks that have called different things wait for messages that never come.
  if (silent_ns >= kTellNs && !is_exchanging_ && !std::exchange(has_told_, true)) tell_partners();
  control_->look(is_exchanging_);
  check_time(silent_ns);
  std::this_thread::sleep_for(std::chrono::nanoseconds(sleep_ns_));
  sleep_ns_ = std::min(sleep_ns_ * 2, kLongestSleepNs);
}

void MpiTransport::tell_partners() {
  for (const int peer : partners_) control_->tell(peer);
}

void MpiTransport::check_time(std::int64_t silent_ns) const {
  if (static_cast<double>(silent_ns) < options_.timeout_s * 1e9) return;
  throw TransportError(fmt::format(
      "nothing has come for {} s in {} (noticed by rank {}, which waits for {}); expected a longer timeout_s "
      "(GAR_TIMEOUT), if that is not too long",
      options_.timeout_s, describe(control_->signature()), rank_, awaited()));
}

std::string MpiTransport::awaited() const {
  std::set<int> senders;
  std::set<int> receivers;
  for (const Owner& owner : owners_) (owner.message.is_send ? receivers : senders).insert(owner.message.peer);
  if (exchange_->awaited() >= 0) senders.insert(exchange_->awaited());
  for (const auto& [id, message] : held_) receivers.insert(message.peer);
  const auto list = [](const std::set<int>& ranks, std::string_view what) {
    std::string out;
    int shown = 0;
    for (const int rank : ranks) {
      if (++shown > 16) return out + ", ...";
      out += (out.empty() ? fmt::format("{} rank ", what) : ", ") + std::to_string(rank);
    }
    return out;
  };
  const std::string from = list(senders, "data from");
  const std::string to = list(receivers, "data to leave for");
  if (from.empty() && to.empty()) return "the signature of a rank";
  return from.empty() ? to : to.empty() ? from : from + "; " + to;
}

// A rank that fails leaves its caller free to release the memory that messages were to come out of or go to. It first
// takes back its receives, or completes those that have begun, and says that it gives up. Then all ranks that give up
// take in whatever is still sent to them and throw it away, so that the sends complete and nothing is left inside MPI.
// That ends after a second, for ranks that hang do not take part; they are told that the memory is gone.
void MpiTransport::fail(std::string_view reason) noexcept {
  if (has_failed_) return;
  has_failed_ = true;
  try {
    failure_ = std::string(reason);
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory; the others are told all the same
  }
  cancel_receives();
  control_->give_up(reason);
  const std::int64_t limit = now_ns() + kFarewellNs;
  while (now_ns() < limit) {
    complete_some();
    const bool is_empty = !control_->discard();
    if (is_empty && active_.empty() && control_->have_all_given_up()) break;
    if (is_empty) sched_yield();
  }
  std::set<int> hanging;
  for (const Owner& owner : owners_) hanging.insert(owner.message.peer);
  for (const int peer : hanging) control_->say_gone(peer);
  abandon();
}

void MpiTransport::cancel_receives() noexcept {
  for (std::size_t i = 0; i < active_.size(); ++i) {
    if (!owners_[i].message.is_send) MPI_Cancel(&active_[i]);
  }
  exchange_->cancel();
  admission_->cancel();
  held_.clear();
  const std::int64_t limit = now_ns() + kCancelNs;
  const auto is_receive = [](const Owner& owner) { return !owner.message.is_send; };
  while (std::any_of(owners_.begin(), owners_.end(), is_receive) && now_ns() < limit) {
    complete_some();
    sched_yield();
  }
}

/// poll() for requests that may end in any way.
void MpiTransport::complete_some() noexcept {
  for (std::size_t i = active_.size(); i-- > 0;) {
    int is_done = 0;
    if (MPI_Test(&active_[i], &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS || is_done != 0) drop(i);
  }
}

/// Leaves to MPI what cannot be completed, and our own memory with it.
void MpiTransport::abandon() noexcept {
  if (active_.empty()) return;
  for (MPI_Request& request : active_) MPI_Request_free(&request);
  active_.clear();
  owners_.clear();
  for (Slot& slot : slots_) slot.arena.leak();
}

}  // namespace gar
