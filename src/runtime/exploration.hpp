// Exploring: AllReduces of a size class run in several ways, and the fastest stays (contest.hpp decides).
//
// All ranks know which turn is under way and how many of its calls are over, because all make the same calls in the
// same order, and operations of a communicator run one after the other. In the last call of a turn rank 0's word
// travels: kTurnBits more elements of the vector that is reduced anyway, of the same type, each 0 or 1 on rank 0 and
// the operator's neutral element elsewhere. A long vector would have to be copied for that; there the word is a vector
// of its own, right behind it, whose time is nothing beside that of the call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "gar/decisions.hpp"
#include "runtime/choice.hpp"
#include "runtime/contest.hpp"
#include "runtime/native_all_reduce.hpp"
#include "runtime/survival/survival.hpp"
#include "runtime/transport.hpp"

namespace gar {

/// Do communicators over MPI, and those of the preload library, explore where nobody says whether they shall?
inline constexpr bool kExploresOverMpi = true;

/// Vectors up to this many bytes carry rank 0's word themselves.
inline constexpr std::int64_t kCarryingBytes = 64 << 10;

/// Whether these options (with_environment) leave a choice, and it is to be measured. `is_default`: where they do not
/// say it.
bool is_exploring(const CommunicatorOptions& options, bool is_default);

/// For every size class (bit width of the bytes) what an earlier job found, in a form that can be sent as it is.
struct ToldWinners {
  static constexpr std::size_t kNumClasses = 56;
  static constexpr std::size_t kMostLetters = 32;
  std::array<std::array<char, kMostLetters>, kNumClasses> names{};  ///< ends with a 0; empty: nothing is known

  [[nodiscard]] std::string of(int size_class) const;
};
ToldWinners told_winners(const std::vector<Decision>& decisions);

/// What an engine explores with.
struct Exploration {
  bool is_on = false;
  std::unique_ptr<NativeAllReduce> native;  ///< null: there is none
  bool begins_natively = false;             ///< the native one leads until another is found to be faster
  bool is_patient = false;                  ///< it runs alone until looking pays; the same on all ranks
  DecisionPlace place;
  ToldWinners told;            ///< the same on all ranks
  std::string folder;          ///< where rank 0 keeps decisions; empty: nowhere
  std::vector<Decision> kept;  ///< on rank 0: what is there already
  std::string problem;         ///< on rank 0: why nothing is
};
/// On rank 0: reads what is kept about the place.
void load(Exploration& exploration, const CommunicatorOptions& options);
/// The place of communicators that stay on this host.
DecisionPlace place_on_this_host(const CommunicatorOptions& options, std::string_view transport, int num_ranks);

/// A way to run the calls of a size class.
struct ExploredCandidate {
  enum class Kind { kPlan, kNative };
  Kind kind = Kind::kPlan;
  std::string name;
  std::optional<ChosenPlan> plan;
  double predicted_seconds = -1;
};

/// A size class that takes part.
struct ExploredClass {
  int id = 0;  ///< different for every one of a communicator
  int size_class = 0;
  bool has_native = false;
  std::int64_t num_quiet = 0;  ///< calls for which the native candidate is the only one; 0: they are over
  std::vector<ExploredCandidate> candidates;  ///< the model's choice comes first
  Turn turn;
  std::int64_t num_done = 0;       ///< calls of the turn
  std::int64_t num_untimed = 0;    ///< of these: that rank 0 has not timed
  std::optional<Contest> contest;  ///< on rank 0
  std::optional<Decision> before;  ///< on rank 0: what an earlier job found

  [[nodiscard]] bool is_last_of_turn() const { return num_done + 1 == turn.num_calls; }
  /// Enough of a turn say whether the time has changed.
  [[nodiscard]] bool is_timed() const {
    constexpr std::int64_t kTimed = 16;
    return contest && turn.num_calls - num_done <= kTimed + 1;
  }
  void begin_turn(const Turn& next);
};

/// "cps 1.2e-05 s (the model's choice), native 9e-06 s": what was tried and what won, in words.
std::string words_of(const Decision& decision);
/// What rank 0 has found out about a class.
Decision decision_of(const ExploredClass& explored);

/// As make_communicator of runtime/transport.hpp. `short_network`: see ShortVectors.
Communicator make_communicator(std::unique_ptr<Transport> transport, const CommunicatorOptions& options,
                               const Topology& default_topology, Exploration exploration,
                               std::optional<Topology> short_network = {});
/// The same where the options may ask for `survival`, and the transport has one; null: they do not.
Communicator make_communicator(std::unique_ptr<Transport> transport, const CommunicatorOptions& options,
                               const Topology& default_topology, Exploration exploration,
                               std::optional<Topology> short_network, std::unique_ptr<Survival> survival);

/// Writes kTurnBits elements for rank 0's word.
void write_word(std::byte* at, DataType type, ReduceOp op, std::optional<unsigned> word);
/// Reads the word out of the combined elements.
unsigned read_word(const std::byte* at, DataType type);

}  // namespace gar
