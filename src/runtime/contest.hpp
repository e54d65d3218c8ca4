// Which of several ways to run an operation is the fastest, found out on the operations of a program itself.
//
// Candidates take turns. A turn is a number of calls, one after the other, with the same candidate. Its first call is
// not counted, because it may wait for ranks that are still busy with the call before, and makes connections; nor is
// its last one, which carries rank 0's word: rank 0 alone measures and decides, and says in a few bits which turn
// follows (encode), so that all ranks do the same without knowing each other's times. What is here is arithmetic: no
// clock, no transport.
//
// One candidate is the incumbent: first the model's choice, or what an earlier job found. It runs whenever no other
// candidate does. The others are looked at:
//   - twice each, three calls long, whatever comes of it: nothing is known of them before, and one look alone may have
//     met a moment in which the machine did something else;
//   - then again, as long as the ledger can pay for it and they might win. The ledger has earned `share` of all time
//     that was spent in calls of this class, and a millisecond, and pays what a look takes longer than the incumbent
//     would have. Those that seem to be faster than the incumbent come first, before those of which nothing is known.
// A candidate is worth the lower quartile of its last calls: what disturbs a call makes it longer, never shorter. It
// becomes the incumbent when that is less than the incumbent's by `margin`, and when there are enough calls. When all
// have been looked at often enough, the contest is settled, and the incumbent runs in ever longer turns. It is opened
// again when the incumbent's calls take clearly another time than they did, twice in a row.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gar {

/// What all ranks do next: `num_calls` calls with one candidate.
struct Turn {
  int candidate = 0;
  std::int64_t num_calls = 1;  ///< 1, 3, 4, 8, 16, ...
  bool is_settled = false;     ///< nothing is left to find out
  bool operator==(const Turn&) const = default;
};

inline constexpr int kMostCandidates = 8;
inline constexpr int kTurnBits = 8;  ///< candidate: 3, length: 4, settled: 1
unsigned encode(const Turn& turn);
/// Any number is a turn, so that a damaged one does no harm; the candidate may be out of range.
Turn decode(unsigned bits);

struct ContestOptions {
  double share = 0.02;   ///< of the time in calls that looking may cost
  double margin = 0.03;  ///< by which a candidate must be faster to become the incumbent
};

class Contest {
 public:
  /// What is known of a candidate.
  struct Standing {
    double seconds = -1;         ///< of a call; -1: not tried
    std::int64_t num_calls = 0;  ///< counted, since the contest was opened
    std::int64_t num_looks = 0;  ///< turns, since the contest was opened
    std::int64_t num_known = 0;  ///< calls that `seconds` rests on, also those from before the contest was opened again
  };

  /// `incumbent` runs first. `expected_s`: what an earlier job measured for each candidate, with which the contest
  /// counts as settled until the incumbent turns out to take another time; empty: nothing is known.
  Contest(int num_candidates, int incumbent, std::vector<double> expected_s, const ContestOptions& options);

  /// A call of the present turn, other than the last, has taken this long on rank 0.
  void add(double seconds);
  /// This many calls of the incumbent have run untimed.
  void add_untimed(std::int64_t num_calls);
  /// The last call of the present turn begins, and carries the answer: the next turn.
  Turn next();
  /// That call is over.
  void add_carrier(double seconds);

  [[nodiscard]] const Turn& turn() const { return turn_; }
  [[nodiscard]] int incumbent() const { return incumbent_; }
  [[nodiscard]] bool is_settled() const { return is_settled_; }
  [[nodiscard]] Standing standing(int candidate) const;
  [[nodiscard]] std::int64_t num_calls() const { return num_calls_; }
  [[nodiscard]] double seconds() const { return seconds_; }              ///< in all calls
  [[nodiscard]] double extra_seconds() const { return extra_seconds_; }  ///< that looks have taken longer
  [[nodiscard]] int num_reopened() const { return num_reopened_; }

 private:
  struct Entry {
    std::vector<double> samples;  ///< the last ones
    std::int64_t num_counted = 0;
    std::int64_t num_looks = 0;
    std::int64_t num_free = 0;   ///< looks that cost nothing
    double guess = -1;           ///< where there are no samples: what was known before; -1: nothing
    std::int64_t num_guess = 0;  ///< calls of this contest that the guess rests on
  };

  [[nodiscard]] double worth(const Entry& entry) const;
  [[nodiscard]] bool is_done(int candidate) const;
  /// Is it so slow that nothing is worth another look?
  [[nodiscard]] bool is_dismissed(int candidate) const;
  [[nodiscard]] bool is_free(int candidate) const;
  [[nodiscard]] bool can_pay(int candidate, std::int64_t num_calls) const;
  [[nodiscard]] std::int64_t look_length(int candidate) const;
  [[nodiscard]] double urgency_of(int candidate) const;
  [[nodiscard]] std::optional<int> next_look() const;
  struct Look {
    bool is_look = false;
    bool is_free = false;
    double usual = -1;  ///< what the incumbent would have taken
  };
  void pay(double seconds, const Look& look);
  void close_turn();
  void elect();
  void watch_drift();
  void reopen(double ratio);
  Turn run_incumbent();

  ContestOptions options_;
  std::vector<Entry> entries_;
  int incumbent_ = 0;
  Turn turn_;
  std::vector<double> turn_samples_;  ///< of the present turn
  std::int64_t turn_calls_ = 0;
  bool was_look_ = false;      ///< the turn before
  double usual_before_ = -1;   ///< the incumbent's time then
  std::int64_t patience_ = 0;  ///< calls of the incumbent's next turn
  bool is_settled_ = false;
  double settled_s_ = -1;  ///< the incumbent's time when the contest was settled
  int num_strange_ = 0;    ///< turns in a row with another time
  std::int64_t num_calls_ = 0;
  double seconds_ = 0;
  double extra_seconds_ = 0;
  double paid_seconds_ = 0;  ///< of these: not in free looks
  bool is_free_ = false;     ///< the present turn is such a look
  bool was_free_ = false;    ///< the turn before
  int num_reopened_ = 0;
};

}  // namespace gar
