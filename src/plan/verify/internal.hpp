// What the parts of the verifier share: the programs of all ranks as rounds of receives, and the elementary blocks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "gar/plan.hpp"
#include "gar/verify.hpp"

namespace gar::verify_detail {

/// Collects 64-bit keys, then numbers the distinct ones in ascending order. Open addressing: a look-up touches one
/// cache line as a rule.
class FlatIndex {
 public:
  FlatIndex();
  void insert(std::int64_t key) {
    for (std::size_t i = slot_of(key);; i = (i + 1) & mask_) {
      if (slots_[i].index == kEmpty) return insert_at(i, key);
      if (slots_[i].key == key) return;
    }
  }
  /// Ends the collection; afterwards `index_of` and `keys` may be used.
  void finish();
  /// Precondition: the key was inserted.
  [[nodiscard]] std::uint32_t index_of(std::int64_t key) const {
    std::size_t i = slot_of(key);
    while (slots_[i].key != key || slots_[i].index == kEmpty) i = (i + 1) & mask_;
    return slots_[i].index;
  }
  [[nodiscard]] const std::vector<std::int64_t>& keys() const { return keys_; }

 private:
  static constexpr std::uint32_t kEmpty = 0xffffffff;
  static constexpr std::size_t kMostKeys = 0x7fffffff;
  struct Slot {
    std::int64_t key = 0;
    std::uint32_t index = kEmpty;
  };
  [[nodiscard]] std::size_t slot_of(std::int64_t key) const {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15ULL) >> shift_);
  }
  void insert_at(std::size_t slot, std::int64_t key);
  void rebuild(int bits);

  std::vector<Slot> slots_;
  std::vector<std::int64_t> keys_;
  std::size_t mask_ = 0;
  int shift_ = 0;
};

/// The programs of all ranks, however the plan stores them, and the order of their steps. A round is one step number
/// of the whole plan: all receives with that number. The mirrored half is never stored: its receives are the sends of
/// the ReduceScatter.
class Programs {
 public:
  /// Throws PlanError when the plan is malformed.
  explicit Programs(const Plan& plan);

  [[nodiscard]] const Plan& plan() const { return *plan_; }
  [[nodiscard]] std::int64_t num_ranks() const { return plan_->num_ranks; }
  /// The stored half of a rank's program; valid until the next call.
  [[nodiscard]] const RankProgram& stored(std::int64_t rank) {
    if (!index_) return plan_->programs.empty() ? buffer_ : plan_->programs[static_cast<std::size_t>(rank)];
    index_->scatter_program(rank, buffer_);
    return buffer_;
  }
  /// The receives of the stored steps take part (everything but an AllGather made of sub-plans).
  [[nodiscard]] bool runs_stored() const { return runs_stored_; }
  /// The mirror image of a stored step takes part; exchanges have none.
  [[nodiscard]] bool has_mirror(std::int64_t number) const { return runs_mirror_ && number < num_mirrored_steps_; }
  /// Number of steps of the whole plan (one more than the largest step number).
  [[nodiscard]] std::int64_t num_steps() const { return num_steps_; }
  [[nodiscard]] std::size_t num_rounds() const { return num_rounds_; }
  [[nodiscard]] std::size_t round_of_stored(std::int64_t number) const {
    return index_ ? static_cast<std::size_t>(number) : numbers_.index_of(number);
  }
  [[nodiscard]] std::size_t round_of_mirror(std::int64_t number) const {
    return static_cast<std::size_t>(num_steps_ - 1 - number);
  }
  /// "step 7" or "step 7 (AllGather)".
  [[nodiscard]] std::string round_name(std::size_t round) const;
  /// Steps with this number may occur in `stored`.
  [[nodiscard]] bool is_step_number(std::int64_t number) const {
    return number >= 0 && number < (index_ ? num_stored_steps_ : num_steps_);
  }

 private:
  const Plan* plan_;
  std::optional<PlanIndex> index_;  // none for explicit plans
  RankProgram buffer_;
  FlatIndex numbers_;  // explicit plans: the step numbers that occur
  bool runs_stored_ = true;
  bool runs_mirror_ = false;
  std::int64_t num_steps_ = 0;
  std::int64_t num_stored_steps_ = 0;
  std::int64_t num_mirrored_steps_ = 0;
  std::size_t num_rounds_ = 0;
};

/// Elementary blocks: no message begins or ends inside one. Block i is the units [keys()[i], keys()[i + 1]).
using Blocks = FlatIndex;

/// What the first pass over all programs leaves for the second.
struct Inspection {
  Blocks blocks;
  std::vector<std::int64_t> receives_of_round;
  bool coefficients_are_small = true;  ///< no value can hold a contribution 2^60 times
};

/// A cell of the final state that is not what it must be.
struct WrongCell {
  std::int64_t rank = 0;
  Interval interval;  ///< neighbouring blocks that are wrong in the same way
};

/// The secret of one run, spread out of its seed.
class Keys {
 public:
  explicit Keys(const ProofSeed& seed) {
    std::uint64_t state = mix_in(mix(seed.high), seed.low);
    for (std::uint64_t& word : words_) {
      state = mix_in(mix_in(state, seed.low), seed.high);
      word = state;
    }
  }
  [[nodiscard]] std::uint64_t word(std::size_t i) const { return words_[i]; }
  /// A number that nobody can tell from a random one without the seed; `what` tells its uses apart, from 0 to 3.
  [[nodiscard]] std::uint64_t number(std::size_t what, std::uint64_t x) const {
    return mix(mix(mix(x ^ words_[2 * what]) + words_[2 * what + 1]) ^ words_[2 * what]);
  }

 private:
  std::array<std::uint64_t, 16> words_{};
};

/// How a run is done.
struct Proof {
  Keys keys;
  int num_elements = 1;
  bool is_exact = false;
};

/// Runs the plan on fingerprints, or on sets. Empty when every rank ends as it must.
std::optional<WrongCell> run_on_contributions(Programs& programs, const Inspection& inspection, const Proof& proof);
/// Compares all sends with all receives, one by one, with memory for some millions of them.
bool all_matched(Programs& programs, std::int64_t num_messages);

/// Words for a wrong final state.
std::string explain_wrong_cell(Programs& programs, const WrongCell& wrong, const Keys& keys);
/// Words for the first message without a partner. Precondition: there is one.
std::string explain_unmatched(Programs& programs, const Keys& keys);

/// Arithmetic modulo the prime 2^61 - 1 on values that are only partly reduced (at most 2^61 + 2).
inline constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
inline std::uint64_t add_mod(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return (sum & kPrime) + (sum >> 61);
}
inline std::uint64_t canonical(std::uint64_t a) { return a >= kPrime ? a - kPrime : a; }
/// Addition that stops at 2^62; exact below.
inline constexpr std::uint64_t kManyTimes = std::uint64_t{1} << 62;
inline std::uint64_t add_saturating(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return sum < kManyTimes ? sum : kManyTimes;
}

/// The fingerprint of a rank's contribution; element 0 or 1 of it.
inline std::uint64_t contribution(const Keys& keys, std::int64_t rank, std::size_t element = 0) {
  return keys.number(element, static_cast<std::uint64_t>(rank)) % kPrime;
}

/// Order-free fingerprint of a set of messages: two sums of hashes, whose keys have nothing in common.
class MessageSet {
 public:
  explicit MessageSet(const Keys& keys) : keys_(&keys) {}
  /// Hashes of a step number, made once for all of its messages.
  struct StepKey {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
  };
  static StepKey step_key(const Keys& keys, std::int64_t step) {
    return {keys.number(2, static_cast<std::uint64_t>(step)), keys.number(3, static_cast<std::uint64_t>(step))};
  }
  void add(const StepKey& step, std::int64_t from, std::int64_t to, std::int64_t begin, std::int64_t end) {
    const std::uint64_t ranks = static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint64_t>(to);
    const auto b = static_cast<std::uint64_t>(begin);
    const auto e = static_cast<std::uint64_t>(end);
    const auto hash = [&](std::size_t key, std::uint64_t of_step) {
      const std::uint64_t units = fold(b ^ keys_->word(key), e ^ keys_->word(key + 1));
      return fold((ranks ^ of_step) + keys_->word(key + 2), units ^ keys_->word(key + 3));
    };
    first_ += hash(8, step.first);
    second_ += hash(12, step.second);
  }
  bool operator==(const MessageSet& other) const { return first_ == other.first_ && second_ == other.second_; }

 private:
  __extension__ using U128 = unsigned __int128;
  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    const U128 product = static_cast<U128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  const Keys* keys_;
  std::uint64_t first_ = 0;
  std::uint64_t second_ = 0;
};

/// Unit range of the block that a rank must end (ReduceScatter) or starts (AllGather) with.
inline Interval block_of_rank(const Plan& plan, std::int64_t rank) {
  const std::int64_t size = plan.num_units / plan.num_ranks;
  return {rank * size, (rank + 1) * size};
}

}  // namespace gar::verify_detail
