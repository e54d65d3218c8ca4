#include "runtime/survival/agreement.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace gar {

namespace {

/// Where every coordinator is held for lost by somebody, ballots could follow each other for ever.
constexpr std::int64_t kMostRoundsOfAll = 64;

bool holds(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

std::vector<int> first(int size) {
  std::vector<int> out(static_cast<std::size_t>(size));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

/// Could a coordinator of these members have proposed it?
bool is_successor(const Outcome& outcome, const std::vector<int>& members) {
  const std::vector<int>& chosen = outcome.members;
  return !chosen.empty() && chosen.size() == outcome.addresses.size() &&
         std::adjacent_find(chosen.begin(), chosen.end(), std::greater_equal<>()) == chosen.end() &&
         std::includes(members.begin(), members.end(), chosen.begin(), chosen.end());
}

}  // namespace

Agreement::Agreement(int self, int size, bool closing_is_death) : Agreement(self, first(size), 0, closing_is_death) {}

Agreement::Agreement(int self, std::vector<int> members, std::uint64_t generation, bool closing_is_death)
    : self_(self), closing_is_death_(closing_is_death), generation_(generation), members_(std::move(members)) {
  outcome_.members = members_;
}

bool Agreement::is_member(int rank) const { return std::binary_search(members_.begin(), members_.end(), rank); }

int Agreement::coordinator(std::int64_t ballot) const {
  return members_[static_cast<std::size_t>(ballot) % members_.size()];
}

/// Ranks that have left on purpose had no part in anything, so they do not count.
bool Agreement::is_quorum(const std::set<int>& ranks) const {
  std::size_t num_counted = 0;
  std::size_t num_there = 0;
  bool has_lowest = false;
  bool has_all_living = true;
  for (const int member : members_) {
    if (left_.contains(member)) continue;
    const bool is_there = ranks.contains(member);
    if (num_counted == 0) has_lowest = is_there;
    ++num_counted;
    num_there += is_there ? 1 : 0;
    if (!is_there && !closed_.contains(member)) has_all_living = false;
  }
  if (closing_is_death_ && has_all_living && num_there > 0) return true;
  return 2 * num_there > num_counted || (2 * num_there == num_counted && has_lowest);
}

MemberReport Agreement::own_report() const {
  MemberReport out;
  out.num_done = num_done_;
  out.address = address_;
  for (const int member : members_) {
    if (is_gone(member)) {
      out.gone.push_back(member);
    } else if (is_lost(member)) {
      out.silent.push_back(member);
    }
  }
  out.accepted = accepted_;
  out.outcome = accepted_outcome_;
  return out;
}

void Agreement::begin(std::uint64_t num_done, std::string address) {
  if (state_ != State::kApart) return;
  state_ = State::kAgreeing;
  num_done_ = num_done;
  address_ = std::move(address);
  go_to(0);
  for (const auto& [from, letter] : std::exchange(early_, {})) receive(from, letter);
}

void Agreement::receive(int from, const Letter& letter) {
  if (state_ == State::kExcluded || letter.generation != generation_ || !is_member(from) || left_.contains(from)) {
    return;
  }
  if (letter.kind == LetterKind::kDecision) {
    if (is_successor(letter.outcome, members_)) adopt(letter.outcome);
  } else if (state_ == State::kApart) {
    const bool is_news = letter.kind >= LetterKind::kReport && letter.kind <= LetterKind::kAcceptance;
    if (is_news) early_.emplace_back(from, letter);
  } else {
    handle(from, letter);
  }
}

void Agreement::handle(int from, const Letter& letter) {
  if (letter.ballot < 0) return;
  if (letter.ballot < ballot_) {
    // It does not know yet that there is another ballot.
    if (letter.kind != LetterKind::kAcceptance) send(from, {.kind = LetterKind::kBallot, .ballot = ballot_});
    return;
  }
  if (letter.kind == LetterKind::kProposal) {
    accept(from, letter);
    return;
  }
  if (letter.kind == LetterKind::kAcceptance) {
    if (letter.ballot != ballot_ || !proposal_) return;
    acceptors_.insert(from);
    check();
    return;
  }
  if (letter.ballot > ballot_) go_to(letter.ballot);
  if (letter.kind != LetterKind::kReport || letter.ballot != ballot_ || !coordinates() || proposal_) return;
  reports_[from] = letter.report;
  check();
}

void Agreement::go_to(std::int64_t ballot) {
  while (is_lost(coordinator(ballot))) ++ballot;
  if (ballot > kMostRoundsOfAll * static_cast<std::int64_t>(members_.size())) {
    state_ = State::kHopeless;
    return;
  }
  ballot_ = ballot;
  reports_.clear();
  proposal_.reset();
  acceptors_.clear();
  for (const int member : members_) {
    if (member != self_ && !is_lost(member)) send(member, {.kind = LetterKind::kBallot, .ballot = ballot_});
  }
  if (coordinates()) {
    reports_[self_] = own_report();
  } else {
    send(coordinator(ballot_), {.kind = LetterKind::kReport, .ballot = ballot_, .report = own_report()});
  }
  check();
}

void Agreement::lose(int member, Loss how) {
  if (!is_member(member) || member == self_) return;
  if (how == Loss::kSilent) silent_.insert(member);
  if (how == Loss::kLeft) left_.insert(member);
  if (how == Loss::kClosed && !left_.contains(member)) closed_.insert(member);
  if (state_ != State::kAgreeing) return;
  if (is_lost(coordinator(ballot_))) {
    go_to(ballot_ + 1);
  } else {
    check();
  }
}

/// What can happen now that something is known that was not.
void Agreement::check() {
  if (state_ != State::kAgreeing) return;
  std::set<int> remaining;
  bool has_all = true;
  for (const int member : members_) {
    if (member != self_ && is_lost(member)) continue;
    remaining.insert(member);
    has_all = has_all && reports_.contains(member);
  }
  if (!is_quorum(remaining)) {
    state_ = State::kHopeless;
    return;
  }
  if (!coordinates()) return;
  if (!proposal_ && has_all) propose();
  if (proposal_ && is_quorum(acceptors_)) {
    const Outcome decided = *proposal_;
    adopt(decided);
  }
}

std::vector<int> Agreement::accused() const {
  std::vector<int> out;
  if (state_ != State::kAgreeing || !coordinates() || proposal_) return out;
  for (const int member : members_) {
    if (is_lost(member) || reports_.contains(member)) continue;
    const bool is_accused = std::any_of(reports_.begin(), reports_.end(), [&](const auto& report) {
      return holds(report.second.gone, member) || holds(report.second.silent, member);
    });
    if (is_accused) out.push_back(member);
  }
  return out;
}

/// Those who have reported, without members whose end another one has seen: they died after their report. And without
/// those of which one holds the other for lost, who could not work together: who has most such quarrels goes first, the
/// highest rank among equals.
Outcome Agreement::successor() const {
  std::set<int> chosen;
  std::set<int> ended;
  for (const auto& [member, report] : reports_) {
    if (member == self_ || !is_lost(member)) chosen.insert(member);
    for (const int other : report.gone) {
      const auto known = reports_.find(other);
      if (known == reports_.end() || !holds(known->second.gone, member)) ended.insert(other);
    }
  }
  if (!std::includes(ended.begin(), ended.end(), chosen.begin(), chosen.end())) {
    for (const int member : ended) chosen.erase(member);
  }
  while (true) {
    std::map<int, int> quarrels;
    for (const int member : chosen) {
      for (const std::vector<int>* others : {&reports_.at(member).gone, &reports_.at(member).silent}) {
        for (const int other : *others) {
          if (!chosen.contains(other)) continue;
          ++quarrels[member];
          ++quarrels[other];
        }
      }
    }
    if (quarrels.empty()) break;
    const auto worst = std::max_element(quarrels.begin(), quarrels.end(), [](const auto& x, const auto& y) {
      return std::pair(x.second, x.first) < std::pair(y.second, y.first);
    });
    chosen.erase(worst->first);
  }
  Outcome out;
  out.members.assign(chosen.begin(), chosen.end());
  out.num_standing = reports_.at(*chosen.begin()).num_done;
  for (const int member : chosen) {
    out.num_standing = std::min(out.num_standing, reports_.at(member).num_done);
    out.addresses.push_back(reports_.at(member).address);
  }
  return out;
}

void Agreement::propose() {
  const MemberReport* latest = nullptr;
  for (const auto& [member, report] : reports_) {
    const bool has_accepted = report.accepted >= 0 && is_successor(report.outcome, members_);
    if (has_accepted && (latest == nullptr || report.accepted > latest->accepted)) latest = &report;
  }
  proposal_ = latest != nullptr ? latest->outcome : successor();
  accepted_ = ballot_;
  accepted_outcome_ = *proposal_;
  acceptors_ = {self_};
  for (const int member : members_) {
    if (member == self_ || is_lost(member)) continue;
    send(member, {.kind = LetterKind::kProposal, .ballot = ballot_, .outcome = *proposal_});
  }
}

void Agreement::accept(int from, const Letter& letter) {
  if (coordinator(letter.ballot) != from || !is_successor(letter.outcome, members_)) return;
  if (letter.ballot > ballot_) {
    ballot_ = letter.ballot;
    reports_.clear();
    proposal_.reset();
    acceptors_.clear();
  }
  accepted_ = letter.ballot;
  accepted_outcome_ = letter.outcome;
  send(from, {.kind = LetterKind::kAcceptance, .ballot = letter.ballot});
  // A coordinator that is held for lost will perhaps not hear it.
  if (is_lost(from)) go_to(ballot_ + 1);
}

void Agreement::adopt(const Outcome& outcome) {
  const Outcome decided = outcome;
  tell_all({.kind = LetterKind::kDecision, .ballot = ballot_, .outcome = decided});
  const bool is_in = std::binary_search(decided.members.begin(), decided.members.end(), self_);
  state_ = is_in ? State::kApart : State::kExcluded;
  ++generation_;
  members_ = decided.members;
  outcome_ = decided;
  silent_.clear();
  early_.clear();
  ballot_ = 0;
  accepted_ = -1;
  accepted_outcome_ = {};
  reports_.clear();
  proposal_.reset();
  acceptors_.clear();
}

void Agreement::send(int to, Letter letter) {
  letter.generation = generation_;
  letters_.push_back({to, std::move(letter)});
}

/// Also those who are silent: they may hear it later.
void Agreement::tell_all(const Letter& letter) {
  for (const int member : members_) {
    if (member != self_ && !is_gone(member)) send(member, letter);
  }
}

std::vector<Agreement::Addressed> Agreement::take_letters() { return std::exchange(letters_, {}); }

}  // namespace gar
