// Members of a group that may lose some, in a simulated network: they run operations, and a seed decides in which order
// letters arrive, who dies when (with some of its letters on the way, which may be lost), who stops and goes on later,
// who is held for lost although it lives, who leaves, and where the network splits.
//
// An operation, in short: every member sends its part to all; who has all parts has the result, and says so to all; who
// has heard that from all gives the result to its caller. That is what engine_surviving.cpp makes of real operations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/survival/agreement.hpp"
#include "runtime/survival/letters.hpp"

namespace gar::test {

inline constexpr int kNumOperations = 4;

struct Packet {
  enum class Kind { kLetter, kEnd, kLeave, kPart, kHas, kFailed };
  Kind kind = Kind::kLetter;
  Letter letter{};
  std::uint64_t generation = 0;
  int operation = 0;
};

enum class Life { kRuns, kStopped, kDead, kFinished, kGaveUp };

struct Participant {
  Participant(int rank, int size, bool closing_is_death) : agreement(rank, size, closing_is_death) {}
  Agreement agreement;
  Life life = Life::kRuns;
  bool is_agreeing = false;
  int operation = 1;  ///< that is under way; earlier ones have returned
  bool is_done = false;
  std::uint64_t done_in = 0;  ///< generation
  std::set<int> parts;        ///< of the operation, in this generation
  std::set<int> has;
  std::set<int> left;                        ///< members that have finished
  std::map<int, std::vector<int>> returned;  ///< members, by operation
  std::map<std::uint64_t, std::vector<int>> generations;
};

struct Hazards {
  int size = 4;
  bool closing_is_death = false;
  double death = 0;  ///< chance of each fault in a step
  double stop = 0;
  double suspicion = 0;
  double split = 0;
  double rebuild_failure = 0;
  int most_deaths = 0;
};

class SimulatedGroup {
 public:
  SimulatedGroup(const Hazards& world, std::uint64_t seed) : world_(world), dice_(seed) {
    for (int rank = 0; rank < world.size; ++rank) nodes_.emplace_back(rank, world.size, world.closing_is_death);
    for (Participant& node : nodes_) node.generations[0] = node.agreement.members();
    links_.resize(nodes_.size() * nodes_.size());
  }

  /// What was wrong; empty: nothing.
  std::string run() {
    for (int rank = 0; rank < world_.size; ++rank) begin_operation(rank);
    constexpr int kMostSteps = 100'000;
    for (int step = 0; step < kMostSteps && problem_.empty(); ++step) {
      fault();
      if (!deliver_one() && !time_passes()) return problem_.empty() ? judge() : problem_;
    }
    return problem_.empty() ? "it does not end" : problem_;
  }

  [[nodiscard]] const std::vector<Participant>& nodes() const { return nodes_; }
  [[nodiscard]] int num_deaths() const { return num_deaths_; }

 private:
  // --- the network ---
  std::deque<Packet>& link(int from, int to) {
    return links_[static_cast<std::size_t>(from) * nodes_.size() + static_cast<std::size_t>(to)];
  }
  Participant& node(int rank) { return nodes_[static_cast<std::size_t>(rank)]; }
  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(dice_) < probability; }
  int draw(int below) { return std::uniform_int_distribution<int>(0, below - 1)(dice_); }
  bool is_cut(int a, int b) {
    return !side_.empty() && side_[static_cast<std::size_t>(a)] != side_[static_cast<std::size_t>(b)];
  }
  bool is_active(int rank) { return node(rank).life == Life::kRuns; }
  bool can_deliver(int from, int to) {
    if (link(from, to).empty() || !is_active(to) || is_cut(from, to)) return false;
    // What belongs to connections that this member has not made yet waits there.
    const Packet& packet = link(from, to).front();
    const bool is_data =
        packet.kind == Packet::Kind::kPart || packet.kind == Packet::Kind::kHas || packet.kind == Packet::Kind::kFailed;
    return !is_data || packet.generation <= node(to).agreement.generation();
  }

  bool deliver_one() {
    std::vector<std::pair<int, int>> ready;
    for (int from = 0; from < world_.size; ++from) {
      for (int to = 0; to < world_.size; ++to) {
        if (can_deliver(from, to)) ready.emplace_back(from, to);
      }
    }
    if (ready.empty()) return false;
    const auto [from, to] = ready[static_cast<std::size_t>(draw(static_cast<int>(ready.size())))];
    const Packet packet = link(from, to).front();
    link(from, to).pop_front();
    take(from, to, packet);
    return true;
  }

  void take(int from, int to, const Packet& packet) {
    Participant& at = node(to);
    const bool is_present = packet.generation == at.agreement.generation();
    switch (packet.kind) {
      case Packet::Kind::kLetter: {
        // As bytes, as they really travel.
        const std::optional<Letter> letter = read_letter(write_letter(packet.letter));
        if (!letter) problem_ = "a letter cannot be read";
        if (letter) at.agreement.receive(from, *letter);
        break;
      }
      case Packet::Kind::kEnd:
        at.agreement.lose(from, Loss::kClosed);
        if (!at.is_agreeing && at.agreement.is_member(from) && !at.left.contains(from)) fail(to);
        break;
      case Packet::Kind::kLeave:
        at.left.insert(from);
        at.agreement.lose(from, Loss::kLeft);
        break;
      case Packet::Kind::kPart:
        if (is_present && !at.is_agreeing && packet.operation == at.operation) at.parts.insert(from);
        if (is_present && !at.is_agreeing && packet.operation > at.operation) ahead_.push_back({from, to, packet});
        break;
      case Packet::Kind::kHas:
        if (is_present && !at.is_agreeing && packet.operation == at.operation) at.has.insert(from);
        if (is_present && !at.is_agreeing && packet.operation > at.operation) ahead_.push_back({from, to, packet});
        break;
      case Packet::Kind::kFailed:
        if (is_present && !at.is_agreeing) fail(to);
        break;
    }
    settle(to);
  }

  void tell_members(int from, Packet packet) {
    packet.generation = node(from).agreement.generation();
    for (const int member : node(from).agreement.members()) {
      if (member != from) link(from, member).push_back(packet);
    }
  }

  // --- a member ---
  void begin_operation(int rank) {
    Participant& at = node(rank);
    at.is_done = false;
    at.parts = {rank};
    at.has.clear();
    tell_members(rank, {.kind = Packet::Kind::kPart, .operation = at.operation});
    for (const Ahead& one : std::exchange(ahead_, {})) {
      if (one.to == rank) {
        link(one.from, one.to).push_front(one.packet);
      } else {
        ahead_.push_back(one);
      }
    }
  }

  /// What follows from what has come.
  void settle(int rank) {
    Participant& at = node(rank);
    for (Agreement::Addressed& one : at.agreement.take_letters()) {
      link(rank, one.to).push_back({.kind = Packet::Kind::kLetter, .letter = one.letter});
    }
    using State = Agreement::State;
    if (at.agreement.state() == State::kExcluded || at.agreement.state() == State::kHopeless) {
      // Who has left has returned from all operations.
      const bool is_confirmed = at.agreement.state() == State::kHopeless && at.is_done && !at.left.empty();
      if (is_confirmed && at.operation == kNumOperations) at.returned[at.operation++] = at.generations[at.done_in];
      end(rank, at.operation > kNumOperations ? Life::kFinished : Life::kGaveUp);
      return;
    }
    if (at.is_agreeing && at.agreement.state() == State::kApart) recovered(rank);
    if (at.life != Life::kRuns || at.is_agreeing) return;
    const std::vector<int>& members = at.agreement.members();
    if (!at.is_done && at.parts.size() == members.size()) {
      at.is_done = true;
      at.done_in = at.agreement.generation();
      at.has.insert(rank);
      tell_members(rank, {.kind = Packet::Kind::kHas, .operation = at.operation});
    }
    if (at.is_done && at.has.size() == members.size()) give(rank);
  }

  void give(int rank) {
    Participant& at = node(rank);
    at.returned[at.operation] = at.generations[at.done_in];
    if (++at.operation > kNumOperations) {
      for (const int member : at.agreement.members()) {
        if (member != rank) link(rank, member).push_back({.kind = Packet::Kind::kLeave});
      }
      end(rank, Life::kFinished);
      return;
    }
    begin_operation(rank);
    settle(rank);
  }

  void fail(int rank) {
    Participant& at = node(rank);
    if (at.is_agreeing || at.life != Life::kRuns) return;
    at.is_agreeing = true;
    tell_members(rank, {.kind = Packet::Kind::kFailed});
    at.agreement.begin(static_cast<std::uint64_t>(at.is_done ? at.operation : at.operation - 1), std::to_string(rank));
    settle(rank);
  }

  void recovered(int rank) {
    Participant& at = node(rank);
    const std::uint64_t generation = at.agreement.generation();
    at.is_agreeing = false;
    at.generations[generation] = at.agreement.members();
    if (at.agreement.outcome().addresses.size() != at.agreement.members().size()) problem_ = "addresses are missing";
    const bool stands = at.is_done && at.agreement.outcome().num_standing >= static_cast<std::uint64_t>(at.operation);
    if (stands) {
      give(rank);
    } else {
      if (at.agreement.outcome().num_standing + 1 < static_cast<std::uint64_t>(at.operation)) {
        problem_ = "an operation is to run again that has returned";
      }
      begin_operation(rank);
    }
    if (at.life == Life::kRuns && chance(world_.rebuild_failure)) fail(rank);
    if (at.life == Life::kRuns) settle(rank);
  }

  void end(int rank, Life how) {
    node(rank).life = how;
    for (int other = 0; other < world_.size; ++other) {
      if (other != rank) link(rank, other).push_back({.kind = Packet::Kind::kEnd});
    }
  }

  // --- what goes wrong ---
  void fault() {
    const int rank = draw(world_.size);
    if (chance(world_.death) && num_deaths_ < world_.most_deaths) kill(rank);
    if (chance(world_.stop)) {
      Participant& at = node(draw(world_.size));
      if (at.life == Life::kRuns) {
        at.life = Life::kStopped;
      } else if (at.life == Life::kStopped) {
        at.life = Life::kRuns;
      }
    }
    if (chance(world_.suspicion) && is_active(rank)) suspect(rank, draw(world_.size));
    if (chance(world_.split)) {
      side_.resize(nodes_.size());
      for (int& side : side_) side = draw(2);
    }
  }

  void kill(int rank) {
    if (node(rank).life != Life::kRuns && node(rank).life != Life::kStopped) return;
    ++num_deaths_;
    node(rank).life = Life::kDead;
    for (int other = 0; other < world_.size; ++other) {
      if (other == rank) continue;
      // Some of what it has sent still arrives.
      std::deque<Packet>& way = link(rank, other);
      way.resize(static_cast<std::size_t>(draw(static_cast<int>(way.size()) + 1)));
      way.push_back({.kind = Packet::Kind::kEnd});
    }
  }

  void suspect(int rank, int other) {
    if (other == rank || !node(rank).agreement.is_member(other)) return;
    if (!node(rank).is_agreeing) fail(rank);
    if (node(rank).life != Life::kRuns) return;
    node(rank).agreement.lose(other, Loss::kSilent);
    settle(rank);
  }

  /// Nothing moves any more: time limits pass. False: nobody waits for anybody.
  bool time_passes() {
    bool has_moved = false;
    for (int rank = 0; rank < world_.size; ++rank) {
      if (!is_active(rank)) continue;
      has_moved = true;
      if (!node(rank).is_agreeing) {
        fail(rank);
        continue;
      }
      const std::vector<int> accused = node(rank).agreement.accused();
      for (const int other : std::vector<int>(node(rank).agreement.members())) {
        if (!is_active(rank) || !node(rank).is_agreeing || node(rank).agreement.is_lost(other) || other == rank)
          continue;
        const bool is_accused = std::find(accused.begin(), accused.end(), other) != accused.end();
        const bool is_silent = !is_active(other) || is_cut(rank, other) || !node(other).is_agreeing ||
                               node(other).agreement.generation() != node(rank).agreement.generation();
        if (is_silent || is_accused) suspect(rank, other);
      }
    }
    if (has_moved) return ++num_limits_ < 1000 || !(problem_ = "members wait for each other for ever").empty();
    // Who was stopped goes on in the end.
    for (Participant& at : nodes_) {
      if (at.life != Life::kStopped) continue;
      at.life = Life::kRuns;
      has_moved = true;
    }
    return has_moved;
  }

  // --- the verdict ---
  std::string judge() const {
    std::map<int, std::pair<int, std::vector<int>>> between;
    std::map<std::uint64_t, std::vector<int>> generations;
    std::ostringstream out;
    for (int rank = 0; rank < world_.size; ++rank) {
      const Participant& at = nodes_[static_cast<std::size_t>(rank)];
      // Where the end of a link proves a death the dead may have seen something else, but nobody who lives has.
      if (world_.closing_is_death && at.life != Life::kFinished) continue;
      for (const auto& [generation, members] : at.generations) {
        const auto& known = generations.try_emplace(generation, members).first->second;
        if (known != members) out << "two generations " << generation << "; ";
      }
      for (const auto& [operation, members] : at.returned) {
        const auto& known = between.try_emplace(operation, rank, members).first->second;
        if (known.second != members) {
          out << "operation " << operation << " on rank " << rank << " between others than on rank " << known.first
              << "; ";
        }
        if (std::find(members.begin(), members.end(), rank) == members.end()) out << "a result without its own part; ";
      }
      if (at.life == Life::kFinished && at.returned.size() != kNumOperations) out << "operations are missing; ";
    }
    return out.str();
  }

  struct Ahead {
    int from;
    int to;
    Packet packet;
  };
  Hazards world_;
  std::mt19937_64 dice_;
  std::vector<Participant> nodes_;
  std::vector<std::deque<Packet>> links_;
  std::vector<Ahead> ahead_;
  std::vector<int> side_;  ///< of a split; empty: none
  int num_deaths_ = 0;
  int num_limits_ = 0;
  std::string problem_;
};

}  // namespace gar::test
