// Which members of a group go on when some are lost: one decision on all of them, also when further members are lost
// while they decide.
//
// Problem: members of a generation fail, stop, or are cut off; each of the others has its own opinion about who. They
// must come to one successor of the generation, and to one answer to the question which operations stand.
//
// Idea: consensus with a coordinator that rotates (Chandra and Toueg), in the terms of Paxos (Lamport). A member that
// enters sends a report to the coordinator of its ballot, and with it the promise to accept nothing of an earlier one.
// The coordinator waits for the reports of all that it does not hold for lost, and proposes those who have reported as
// the next generation; or what an earlier ballot may have decided. What a quorum has accepted is decided; who learns a
// decision tells all members before it acts. A member that holds the coordinator for lost goes to the next ballot.
//
// A quorum is more than half of the members, or half of them with the lowest rank. Any two have a member in common, so
// there is one decision, whatever members believe about each other: of a network that has split one part goes on at
// most. Members that have left on purpose have promised and accepted nothing and do not count. Where a closed link
// proves a death (on one host), all who are left are a quorum, too: see `closing_is_death`.
//
// Operations: a member reports how many operations it has the results of. An operation's result is given to the caller
// only when all members have it, so an operation that has returned anywhere is among those that all have reported: the
// least number that was reported stands, and what is above it has returned nowhere and runs again.
//
// This is a state machine without clocks and sockets: messages and losses go in, letters come out. Whoever drives it
// delivers letters in order, each link by itself. tests/unit/runtime/agreement_test.cpp does so in every order.
//
// Cost without further losses: a report, a proposal, an acceptance and a decision for each member, then the decision
// from everyone to everyone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gar {

/// The next generation.
struct Outcome {
  std::vector<int> members;            ///< ascending
  std::uint64_t num_standing = 0;      ///< operations that all of them have the results of
  std::vector<std::string> addresses;  ///< where each of the members is found; any bytes
  bool operator==(const Outcome&) const = default;
};

/// What a member brings to an agreement.
struct MemberReport {
  std::uint64_t num_done = 0;  ///< operations whose results it has, unharmed
  std::string address{};       ///< where the others find it afterwards; any bytes
  std::vector<int> gone{};     ///< members whose links to it have ended
  std::vector<int> silent{};   ///< others that it holds for lost
  std::int64_t accepted = -1;  ///< ballot in which it has accepted `outcome`; -1: none
  Outcome outcome{};
};

enum class LetterKind : std::uint8_t {
  kReport = 1,  ///< to the coordinator of a ballot: a report, and a promise
  kBallot,      ///< the sender is in this ballot
  kProposal,    ///< of a coordinator
  kAcceptance,  ///< of its proposal
  kDecision,    ///< to all
  kLife,        ///< nothing new
  kDefect,      ///< the sender ends with an error that concerns all, which it tells
  kLeave,       ///< the sender has ended on purpose
  kWelcome,     ///< of a grown group: it has been decided that it goes on (growth.hpp)
  kOff,         ///< the growth with the number `ballot` is called off by the sender
  kKinds = kOff
};

/// What members send each other.
struct Letter {
  LetterKind kind = LetterKind::kLife;
  std::uint64_t generation = 0;
  std::int64_t ballot = 0;
  MemberReport report{};
  Outcome outcome{};
  std::string text{};
};

/// Why a member is lost.
enum class Loss {
  kSilent,  ///< for too long; or it cannot be reached
  kClosed,  ///< its link has ended
  kLeft,    ///< it has said so
};

class Agreement {
 public:
  enum class State {
    kApart,     ///< nothing is being agreed on
    kAgreeing,  ///< from begin() until it is decided
    kExcluded,  ///< the others go on without this member
    kHopeless,  ///< those who are left are no quorum
  };
  struct Addressed {
    int to = 0;
    Letter letter;
  };

  /// Generation 0 with the members 0 to size - 1. `closing_is_death`: a link ends when its process does, and for no
  /// other reason.
  Agreement(int self, int size, bool closing_is_death);
  /// A later one, with these members, ascending.
  Agreement(int self, std::vector<int> members, std::uint64_t generation, bool closing_is_death);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  [[nodiscard]] const std::vector<int>& members() const { return members_; }
  /// What has led to this generation.
  [[nodiscard]] const Outcome& outcome() const { return outcome_; }

  /// This member takes part from now on; nothing of what it reports changes until it is decided.
  void begin(std::uint64_t num_done, std::string address);
  void receive(int from, const Letter& letter);
  void lose(int member, Loss how);
  /// What is to be sent.
  [[nodiscard]] std::vector<Addressed> take_letters();

  [[nodiscard]] bool is_member(int rank) const;
  [[nodiscard]] bool is_lost(int rank) const { return silent_.contains(rank) || is_gone(rank); }
  /// Has somebody begun to agree on the next generation, while this member has not?
  [[nodiscard]] bool is_called() const { return state_ == State::kApart && !early_.empty(); }
  /// Members that a reporter holds for lost, and that this coordinator is still waiting for.
  [[nodiscard]] std::vector<int> accused() const;

 private:
  [[nodiscard]] bool is_gone(int rank) const { return closed_.contains(rank) || left_.contains(rank); }
  [[nodiscard]] int coordinator(std::int64_t ballot) const;
  [[nodiscard]] bool coordinates() const { return coordinator(ballot_) == self_; }
  [[nodiscard]] bool is_quorum(const std::set<int>& ranks) const;
  [[nodiscard]] MemberReport own_report() const;
  [[nodiscard]] Outcome successor() const;
  void handle(int from, const Letter& letter);
  void go_to(std::int64_t ballot);
  void check();
  void propose();
  void accept(int from, const Letter& letter);
  void adopt(const Outcome& outcome);
  void send(int to, Letter letter);
  void tell_all(const Letter& letter);

  int self_;
  bool closing_is_death_;
  State state_ = State::kApart;
  std::uint64_t generation_ = 0;
  std::vector<int> members_;
  Outcome outcome_;
  std::set<int> silent_;  ///< of this generation
  std::set<int> closed_;
  std::set<int> left_;
  std::vector<Addressed> letters_;
  std::vector<std::pair<int, Letter>> early_;  ///< for when this member begins

  std::uint64_t num_done_ = 0;
  std::string address_;
  std::int64_t ballot_ = 0;
  std::int64_t accepted_ = -1;
  Outcome accepted_outcome_;
  std::map<int, MemberReport> reports_;  ///< of the ballot, on its coordinator
  std::optional<Outcome> proposal_;
  std::set<int> acceptors_;
};

}  // namespace gar
