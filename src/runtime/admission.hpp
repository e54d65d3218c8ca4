// Receivers that say which ranks may send, so that no more senders meet at a port at once than it can stand.
//
// Problem: GenModel charges a stage for the senders that meet at a port in that stage. Ranks do not wait for each other
// between stages, so on a real network the early ones of the next stage meet the late ones of this stage; with shallow
// switch buffers even two senders lose packets (docs/validation.md has the measurement).
// Idea: the messages that a rank is going to receive queue up in the order of chunks and steps. The receiver admits
// those of the first step, from no more than `max_senders` ranks at a time, by an empty message, and those of the next
// step when these have arrived; senders hold a message until it is admitted. Further messages of a rank that is sending
// already are admitted at once: in a ring no rank ever waits.
// No deadlock: a message depends on messages of earlier steps only, and these are admitted first everywhere.
// What is so short that all messages of a step fit into any buffer together is sent without asking.
// Cost: one empty message for each message; a step that begins with another sender waits for it once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "gar/topology.hpp"

namespace gar {

/// How many senders a rank can admit at once so that no link with incast (epsilon above 0) is met by more than its
/// threshold (but two always), or what the link says itself; 0: there is no such link. GAR_MAX_SENDERS in the
/// environment wins. Throws InvalidArgument.
int admitted_senders(const Topology& topology);

/// The receiver's side. A Ticket names a message to its sender.
template <class Ticket>
class AdmissionQueue {
 public:
  struct Expected {
    int peer = 0;
    Ticket ticket{};
    std::int64_t stage = 0;
  };

  /// `max_senders` 0: every rank may send at any time.
  AdmissionQueue(int rank, int size, int max_senders) : rank_(rank), size_(size), max_senders_(max_senders) {}

  /// An operation begins in whose plan a rank gets that many messages in a step, at most. The same on all ranks.
  void begin(std::int64_t fan_in) {
    least_bytes_ =
        max_senders_ == 1 ? kLeastBytes : std::max(kLeastBytes, kHarmlessBytes / std::max<std::int64_t>(fan_in, 1) + 1);
  }
  /// Do messages of this many bytes have to be admitted? Sender and receiver get the same answer.
  [[nodiscard]] bool concerns(std::int64_t bytes) const { return max_senders_ > 0 && bytes >= least_bytes_; }

  /// The messages of a step, after those of all steps before.
  void expect(std::vector<Expected> messages) {
    // Every rank begins with another sender; otherwise all receivers would admit the same one first.
    const auto distance = [&](const Expected& e) { return (rank_ - e.peer + size_) % size_; };
    std::stable_sort(messages.begin(), messages.end(),
                     [&](const Expected& a, const Expected& b) { return distance(a) < distance(b); });
    for (Expected& message : messages) message.stage = num_stages_;
    ++num_stages_;
    expected_.insert(expected_.end(), messages.begin(), messages.end());
  }
  /// Calls `tell` for every message whose sender may send now.
  template <class Tell>
  void admit(Tell&& tell) {
    while (!expected_.empty()) {
      const Expected next = expected_.front();
      const bool is_sending = under_way_.count(next.peer) != 0;
      const bool has_room = next.stage == stage_ && under_way_.size() < static_cast<std::size_t>(max_senders_);
      if (!is_sending && !under_way_.empty() && !has_room) return;
      stage_ = next.stage;
      tell(next);
      ++under_way_[next.peer];
      expected_.pop_front();
    }
  }
  /// A message that was expected has arrived.
  void arrived(int peer) {
    const auto entry = under_way_.find(peer);
    if (entry != under_way_.end() && --entry->second == 0) under_way_.erase(entry);
  }
  void clear() noexcept {
    expected_.clear();
    under_way_.clear();
  }

 private:
  static constexpr std::int64_t kLeastBytes = 1024;      // shorter ones fit into any buffer
  static constexpr std::int64_t kHarmlessBytes = 16384;  // all of a step together: so do they

  int rank_;
  int size_;
  int max_senders_;
  std::int64_t least_bytes_ = kLeastBytes;
  std::deque<Expected> expected_;
  std::int64_t num_stages_ = 0;
  std::int64_t stage_ = -1;       ///< of the last message that was admitted
  std::map<int, int> under_way_;  ///< messages of each peer that are admitted and have not arrived
};

}  // namespace gar
