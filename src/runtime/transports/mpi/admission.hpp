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

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace gar {

class MpiAdmission {
 public:
  /// `max_senders` 0: every rank may send at any time.
  MpiAdmission(MPI_Comm comm, int rank, int size, int max_senders)
      : comm_(comm), rank_(rank), size_(size), max_senders_(max_senders) {}

  /// An operation begins in whose plan a rank gets that many messages in a step, at most. The same on all ranks.
  void begin(std::int64_t fan_in) {
    least_bytes_ =
        max_senders_ == 1 ? kLeastBytes : std::max(kLeastBytes, kHarmlessBytes / std::max<std::int64_t>(fan_in, 1) + 1);
  }
  /// Do messages of this many bytes have to be admitted? Sender and receiver get the same answer.
  [[nodiscard]] bool concerns(std::int64_t bytes) const { return max_senders_ > 0 && bytes >= least_bytes_; }

  // Receiver.
  struct Expected {
    int peer = 0;
    int tag = 0;  ///< of the admission
    std::int64_t stage = 0;
  };
  /// The messages of a step, after those of all steps before.
  void expect(std::vector<Expected> messages);
  /// Admits the ranks that may send now.
  void admit();
  /// A message that was expected has arrived.
  void arrived(int peer);

  // Sender.
  /// Asks for the admission of message `id` (any number); admitted() names it when it has arrived.
  void await(int peer, int tag, std::int64_t id);
  /// The numbers of messages that have been admitted since the last call.
  const std::vector<std::int64_t>& admitted();
  [[nodiscard]] bool is_waiting() const { return !awaited_.empty(); }
  [[nodiscard]] std::vector<int> awaited_peers() const;

  /// Takes back what was not admitted.
  void cancel() noexcept;

 private:
  static constexpr std::int64_t kLeastBytes = 1024;      // shorter ones fit into any buffer
  static constexpr std::int64_t kHarmlessBytes = 16384;  // all of a step together: so do they
  struct Awaited {
    int peer = 0;
    std::int64_t id = 0;
  };

  MPI_Comm comm_;
  int rank_;
  int size_;
  int max_senders_;
  std::int64_t least_bytes_ = kLeastBytes;
  std::deque<Expected> expected_;
  std::int64_t num_stages_ = 0;
  std::int64_t stage_ = -1;       ///< of the last message that was admitted
  std::map<int, int> under_way_;  ///< messages of each peer that are admitted and have not arrived
  std::vector<MPI_Request> requests_;
  std::vector<Awaited> awaited_;  ///< as requests_
  std::vector<int> done_;
  std::vector<std::int64_t> admitted_;
};

}  // namespace gar
