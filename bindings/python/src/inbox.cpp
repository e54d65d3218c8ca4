#include "inbox.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "gar/errors.hpp"

namespace gar::python {
namespace {

constexpr std::chrono::microseconds kFirstPause{200};
constexpr std::chrono::microseconds kLongestPause{20'000};

/// A thread that waits for the next message of a rank may do so for years. Calls have the limit of the group, which
/// oversee() looks after.
constexpr double kForeverS = 1e8;

/// Has the other end gone as it should, and not died?
bool tells_of_leaving(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return std::string_view(error.what()).find("has left the communicator") != std::string_view::npos;
  }
}

std::exception_ptr other_length(const Parcel& parcel, int source, int destination, std::int64_t bytes) {
  if (bytes == parcel.bytes) return nullptr;
  return std::make_exception_ptr(
      TransportError("recv: rank " + std::to_string(source) + " has sent " + std::to_string(bytes) +
                     " bytes with tag " + std::to_string(parcel.tag) + ", but rank " + std::to_string(destination) +
                     " has room for " + std::to_string(parcel.bytes) + "; expected equal numbers"));
}

std::exception_ptr too_late(const Parcel& parcel, double timeout_s) {
  const std::string who =
      parcel.peer == kAnySource ? "no rank has sent" : "rank " + std::to_string(parcel.peer) + " has not sent";
  std::string seconds = std::to_string(timeout_s);
  seconds.erase(seconds.find_last_not_of('0') + 1);
  if (seconds.back() == '.') seconds.pop_back();
  return std::make_exception_ptr(TransportError("recv: " + who + " anything with tag " + std::to_string(parcel.tag) +
                                                " for " + seconds + " s, the timeout of the process group"));
}

}  // namespace

Inbox::Inbox(GroupPlace place) : place_(std::move(place)), sources_(static_cast<std::size_t>(place_.size)) {}

void Inbox::start() {
  std::thread([self = shared_from_this()] { self->oversee(); }).detach();
}

void Inbox::want(Parcel parcel) {
  Lock lock(mutex_);
  if (const std::optional<Kept> kept = claim_kept(parcel)) {
    lock.unlock();
    hand_over(parcel, *kept);
  } else if (const std::exception_ptr failure = why_in_vain(parcel)) {
    lock.unlock();
    parcel.done(failure, parcel.peer);
  } else {
    const auto limit = std::chrono::duration<double>(std::min(place_.timeout_s, kForeverS));
    wanted_.push_back({std::move(parcel), Clock::now() + std::chrono::duration_cast<Clock::duration>(limit)});
    pause_ = kFirstPause;
    changed_.notify_all();
  }
}

void Inbox::close() {
  const std::lock_guard lock(mutex_);
  is_closing_ = true;
  changed_.notify_all();
}

void Inbox::abandon() {
  const std::lock_guard lock(mutex_);
  for (Source& one : sources_) {
    if (!one.is_busy) one.channel.reset();
  }
}

// --- the thread of a rank that sends ---------------------------------------------------------------------------------

void Inbox::take_from(int rank) {
  Lock lock(mutex_);
  std::exception_ptr failure;
  while (!failure) {
    changed_.wait(lock, [&] { return is_closing_ || wants_from(rank); });
    if (!wants_from(rank)) break;
    source(rank).is_busy = true;
    lock.unlock();
    try {
      take_one(rank);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    source(rank).is_busy = false;
  }
  source(rank).channel.reset();
  if (failure) fail(lock, rank, failure);
}

void Inbox::take_one(int rank) {
  std::optional<Channel>& channel = source(rank).channel;
  if (!channel) channel.emplace(place_, rank, place_.rank, kForeverS);
  std::array<std::int64_t, 2> head{};
  channel->transfer(head.data(), 2, DataType::kInt64);
  const int tag = static_cast<int>(head[0]);
  const std::int64_t bytes = head[1];
  if (bytes < 0) throw TransportError("recv: rank " + std::to_string(rank) + " has sent a length below 0");
  std::optional<Parcel> parcel;
  {
    const std::lock_guard lock(mutex_);
    parcel = claim(rank, tag);
  }
  if (parcel) {
    fill(*parcel, *channel, rank, bytes);
  } else {
    keep(*channel, rank, tag, bytes);
  }
}

void Inbox::fill(const Parcel& parcel, Channel& channel, int rank, std::int64_t bytes) {
  try {
    if (bytes == parcel.bytes) {
      channel.transfer(parcel.memory, bytes, DataType::kUint8);
    } else {
      std::vector<std::byte> unwanted(static_cast<std::size_t>(bytes));
      channel.transfer(unwanted.data(), bytes, DataType::kUint8);
    }
  } catch (...) {
    parcel.done(std::current_exception(), rank);
    throw;
  }
  parcel.done(other_length(parcel, rank, place_.rank, bytes), rank);
}

void Inbox::keep(Channel& channel, int rank, int tag, std::int64_t bytes) {
  Kept kept{rank, tag, std::vector<std::byte>(static_cast<std::size_t>(bytes))};
  channel.transfer(kept.bytes.data(), bytes, DataType::kUint8);
  Lock lock(mutex_);
  // Somebody may have asked for it meanwhile.
  if (const std::optional<Parcel> parcel = claim(rank, tag)) {
    lock.unlock();
    hand_over(*parcel, kept);
  } else {
    kept_.push_back(std::move(kept));
  }
}

void Inbox::hand_over(const Parcel& parcel, const Kept& kept) const {
  const auto bytes = static_cast<std::int64_t>(kept.bytes.size());
  if (bytes == parcel.bytes && bytes > 0) std::memcpy(parcel.memory, kept.bytes.data(), kept.bytes.size());
  parcel.done(other_length(parcel, kept.source, place_.rank, bytes), kept.source);
}

void Inbox::fail(Lock& lock, int rank, const std::exception_ptr& failure) {
  source(rank).failure = failure;
  source(rank).has_left = tells_of_leaving(failure);
  end_calls(lock, [&](const Wanted& one) { return why_in_vain(one.parcel); });
}

// --- the thread that looks after the others --------------------------------------------------------------------------

void Inbox::oversee() {
  Lock lock(mutex_);
  while (!is_closing_ || !wanted_.empty()) {
    if (wanted_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Clock::time_point now = Clock::now();
    end_calls(lock, [&](const Wanted& one) {
      return one.deadline <= now ? too_late(one.parcel, place_.timeout_s) : std::exception_ptr();
    });
    if (needs_senders()) look_for_senders(lock);
    if (wanted_.empty()) continue;
    // Calls of a group have the same limit, so the first is the first to end.
    Clock::time_point next = wanted_.front().deadline;
    if (needs_senders()) {
      next = std::min(next, Clock::now() + pause_);
      pause_ = std::min(2 * pause_, kLongestPause);
    }
    changed_.wait_until(lock, next);
  }
}

/// Does a call wait for a rank that has not said that it sends?
bool Inbox::needs_senders() const {
  if (num_announced_ == place_.size - 1) return false;
  return std::any_of(wanted_.begin(), wanted_.end(), [&](const Wanted& one) {
    return one.parcel.peer == kAnySource || !source(one.parcel.peer).is_announced;
  });
}

void Inbox::look_for_senders(Lock& lock) {
  const int num_known = num_announced_;
  std::vector<int> found;
  std::exception_ptr failure;
  lock.unlock();
  try {
    found = place_.store->announced(place_.box(place_.rank), num_known);
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  for (const int rank : found) {
    if (rank < 0 || rank >= place_.size || rank == place_.rank || source(rank).is_announced) continue;
    source(rank).is_announced = true;
    ++num_announced_;
    std::thread([self = shared_from_this(), rank] { self->take_from(rank); }).detach();
  }
  if (!failure) return;
  end_calls(lock, [&](const Wanted& one) {
    const bool is_known = one.parcel.peer != kAnySource && source(one.parcel.peer).is_announced;
    return is_known ? std::exception_ptr() : failure;
  });
}

// --- who waits for what: called while locked -------------------------------------------------------------------------

template <class Judge>
void Inbox::end_calls(Lock& lock, const Judge& failure_of) {
  std::vector<std::pair<Parcel, std::exception_ptr>> ended;
  for (auto one = wanted_.begin(); one != wanted_.end();) {
    const std::exception_ptr failure = failure_of(*one);
    if (failure) ended.emplace_back(std::move(one->parcel), failure);
    one = failure ? wanted_.erase(one) : std::next(one);
  }
  if (ended.empty()) return;
  lock.unlock();
  for (const auto& [parcel, failure] : ended) parcel.done(failure, parcel.peer);
  lock.lock();
}

bool Inbox::wants_from(int rank) const {
  return std::any_of(wanted_.begin(), wanted_.end(),
                     [&](const Wanted& one) { return one.parcel.peer == kAnySource || one.parcel.peer == rank; });
}

std::optional<Parcel> Inbox::claim(int rank, int tag) {
  const auto found = std::find_if(wanted_.begin(), wanted_.end(), [&](const Wanted& one) {
    return one.parcel.tag == tag && (one.parcel.peer == kAnySource || one.parcel.peer == rank);
  });
  if (found == wanted_.end()) return std::nullopt;
  Parcel parcel = std::move(found->parcel);
  wanted_.erase(found);
  return parcel;
}

std::optional<Inbox::Kept> Inbox::claim_kept(const Parcel& parcel) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& one) {
    return one.tag == parcel.tag && (parcel.peer == kAnySource || parcel.peer == one.source);
  });
  if (found == kept_.end()) return std::nullopt;
  Kept kept = std::move(*found);
  kept_.erase(found);
  return kept;
}

/// What is known of the ranks that could send this: null, as long as one of them may do so.
std::exception_ptr Inbox::why_in_vain(const Parcel& parcel) const {
  if (parcel.peer != kAnySource) return source(parcel.peer).failure;
  std::exception_ptr last;
  bool may_come = false;
  for (int rank = 0; rank < place_.size; ++rank) {
    if (rank == place_.rank) continue;
    const Source& one = source(rank);
    if (one.failure && !one.has_left) return one.failure;
    may_come = may_come || !one.failure;
    if (one.failure) last = one.failure;
  }
  return may_come ? nullptr : last;
}

}  // namespace gar::python
