#include "runtime/survival/survival.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "gar/format.hpp"
#include "runtime/survival/peer_lost.hpp"

namespace gar {

namespace {

constexpr int kSliceMs = 20;
constexpr int kFarewellMs = 1000;
constexpr int kMostFruitless = 3;
constexpr std::int64_t kLongestGraceNs = 1'000'000'000;

std::shared_ptr<const Members> members_of(const Agreement& agreement) {
  return std::make_shared<const Members>(Members{agreement.members(), agreement.generation()});
}

}  // namespace

Survival::Survival(const Setup& setup, std::vector<File> links, std::unique_ptr<Rebuilder> rebuilder,
                   std::unique_ptr<Grower> grower)
    : setup_(setup),
      links_(std::move(links)),
      rebuilder_(std::move(rebuilder)),
      grower_(std::move(grower)),
      agreement_(setup.rank, setup.members, setup.generation, setup.closing_is_death),
      members_(members_of(agreement_)) {}

Survival::~Survival() {
  // A child that was forked has a copy of this object; the rank is still its parent.
  if (getpid() != process_ || has_failed_) return;
  try {
    for (const int member : agreement_.members()) {
      if (member == setup_.rank) continue;
      links_.send(
          member,
          {.kind = LetterKind::kLeave, .generation = agreement_.generation(), .report = {.num_done = num_returned_}});
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory: the end of the links says as much
  }
  links_.flush(kFarewellMs);
}

std::vector<int> Survival::first_ranks(const std::vector<int>& ranks) const {
  std::vector<int> out;
  for (const int rank : ranks) out.push_back(agreement_.members().at(static_cast<std::size_t>(rank)));
  return out;
}

Survival::Recovered Survival::recover(const std::vector<int>& silent, const Progress& progress) {
  Recovered out;
  std::uint64_t num_done = progress.num_done;
  const std::vector<int> before = agreement_.members();
  std::vector<int> lost = first_ranks(silent);
  while (true) {
    const std::size_t size = agreement_.members().size();
    if (!agree(lost, num_done)) {
      const std::string why = hopeless_words();
      has_failed_ = true;
      links_.close_all();
      if (num_done < progress.num_begun || num_confirmed_ < num_done) throw TransportError(why);
      out.num_standing = num_done;
      return out;
    }
    // What another one has not got runs again: its result is about to be overwritten.
    num_done = std::min(num_done, agreement_.outcome().num_standing);
    num_fruitless_ = agreement_.members().size() < size ? 0 : num_fruitless_ + 1;
    if (num_fruitless_ > kMostFruitless) {
      throw TransportError(fmt::format(
          "all {} ranks are there, but {} times in a row an operation has failed between them; expected that every "
          "rank "
          "makes the same calls in the same order, and a longer timeout_s (GAR_TIMEOUT) than ranks are busy otherwise",
          size, num_fruitless_));
    }
    const std::vector<int>& members = agreement_.members();
    const auto self = std::find(members.begin(), members.end(), setup_.rank);
    try {
      out.transport = rebuilder_->rebuild({.rank = static_cast<int>(self - members.begin()),
                                           .members = members,
                                           .addresses = agreement_.outcome().addresses,
                                           .generation = agreement_.generation(),
                                           .look = [this] { look(); }});
      break;
    } catch (const PeerLost& again) {
      lost = first_ranks(again.silent());
    } catch (const TransportError&) {
      lost.clear();
    }
  }
  members_ = members_of(agreement_);
  for (std::size_t rank = 0; rank < before.size(); ++rank) {
    if (agreement_.is_member(before[rank])) out.kept.push_back(static_cast<int>(rank));
  }
  out.num_standing = num_done;
  return out;
}

// --- agreeing --------------------------------------------------------------------------------------------------------

bool Survival::agree(const std::vector<int>& silent, std::uint64_t num_done) {
  const std::uint64_t generation = agreement_.generation();
  began_ns_ = steady_ns();
  shown_ns_ = 0;
  accused_since_.clear();
  take_events(0);  // who has died, or left, is known before anything is said
  for (const int member : silent) agreement_.lose(member, Loss::kSilent);
  agreement_.begin(num_done, rebuilder_->prepare());
  while (true) {
    post_letters();
    if (!defect_.empty()) end(defect_);
    if (agreement_.state() == Agreement::State::kExcluded) {
      end(fmt::format("rank {} was silent for too long, or could not be reached: ranks {} have gone on without it",
                      setup_.rank, fmt::join(agreement_.members(), ", ")));
    }
    if (agreement_.generation() != generation) return true;
    if (agreement_.state() == Agreement::State::kHopeless) return false;
    take_events(kSliceMs);
    watch(steady_ns());
  }
}

void Survival::post_letters() {
  for (const Agreement::Addressed& one : agreement_.take_letters()) links_.send(one.to, one.letter);
}

void Survival::take_events(int milliseconds) {
  for (const ControlLinks::Event& event : links_.wait(milliseconds)) {
    take_event(event);
    // In order: what follows from a letter leaves before what follows from the next one.
    post_letters();
  }
}

void Survival::take_event(const ControlLinks::Event& event) {
  if (event.is_end) {
    agreement_.lose(event.from, Loss::kClosed);
    return;
  }
  const Letter& letter = event.letter;
  switch (letter.kind) {
    case LetterKind::kLeave:
      num_confirmed_ = std::max(num_confirmed_, letter.report.num_done);
      agreement_.lose(event.from, Loss::kLeft);
      return;
    case LetterKind::kDefect:
      if (defect_.empty() && agreement_.is_member(event.from)) {
        defect_ = fmt::format("rank {} gave up: {}", event.from, escaped(letter.text));
      }
      return;
    case LetterKind::kWelcome:
      is_welcome_ = is_welcome_ || letter.generation == setup_.generation;
      return;
    case LetterKind::kOff:
      if (letter.ballot <= off_) return;
      off_ = letter.ballot;
      off_reason_ = fmt::format("rank {}: {}", event.from, escaped(letter.text));
      return;
    default:
      agreement_.receive(event.from, letter);
  }
}

/// While it is being agreed: who has been silent for too long now?
void Survival::watch(std::int64_t now) {
  show_life(now);
  for (const int member : std::vector<int>(agreement_.members())) {
    if (member == setup_.rank || agreement_.is_lost(member)) continue;
    if (now - std::max(began_ns_, links_.heard_ns(member)) > limit_ns()) agreement_.lose(member, Loss::kSilent);
  }
  // Another one has waited for it long enough; if it is alive it reports at once.
  const std::int64_t grace = std::min(limit_ns() / 4, kLongestGraceNs);
  for (const int member : agreement_.accused()) {
    const std::int64_t since = accused_since_.try_emplace(member, now).first->second;
    if (now - since > grace) agreement_.lose(member, Loss::kSilent);
  }
}

void Survival::show_life(std::int64_t now) {
  if (now - shown_ns_ < limit_ns() / 8) return;
  shown_ns_ = now;
  for (const int member : agreement_.members()) {
    if (member == setup_.rank || !links_.is_open(member)) continue;
    links_.send(member, {.kind = LetterKind::kLife, .generation = agreement_.generation()});
  }
}

/// While the survivors connect.
void Survival::look() {
  take_events(0);
  for (const int member : agreement_.members()) {
    if (agreement_.is_lost(member)) {
      throw PeerLost(fmt::format("rank {} was lost while the others met again", member));
    }
  }
  if (agreement_.is_called() || agreement_.state() != Agreement::State::kApart || !defect_.empty()) {
    throw PeerLost("the ranks begin to meet anew");
  }
}

// --- growing ---------------------------------------------------------------------------------------------------------

void Survival::look_growing(std::uint64_t generation) {
  look();
  // What all have told each other may stand, though one of them has died since.
  if (agreement_.generation() != generation) throw PeerLost("a rank was lost before all could connect");
  if (off_ == num_growths_) throw PeerLost(off_reason_);
}

void Survival::call_off(const std::string& reason) noexcept {
  try {
    for (const int member : agreement_.members()) {
      if (member == setup_.rank) continue;
      links_.send(
          member,
          {.kind = LetterKind::kOff, .generation = agreement_.generation(), .ballot = num_growths_, .text = reason});
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory: the others find out by themselves, later
  }
}

void Survival::welcome() {
  is_welcome_ = true;
  for (const int member : agreement_.members()) {
    if (member != setup_.rank) links_.send(member, {.kind = LetterKind::kWelcome, .generation = setup_.generation});
  }
}

void Survival::await_welcome(int first_newcomer, std::int64_t limit_ns) {
  while (!is_welcome_) {
    const std::vector<int>& members = agreement_.members();
    const bool is_alone = std::all_of(members.begin(), members.end(), [&](int member) {
      return member >= first_newcomer || agreement_.is_lost(member);
    });
    std::string why;
    if (!defect_.empty()) why = defect_;
    if (is_alone) why = "all members have gone";
    if (steady_ns() > limit_ns) why = "they have said nothing within the limit";
    if (!why.empty()) {
      has_failed_ = true;
      links_.close_all();
      throw TransportError("the members have not taken this process in: " + why);
    }
    take_events(kSliceMs);
  }
  // Who is told by a member that dies at once tells the other newcomers before it does anything.
  welcome();
}

// --- the end ---------------------------------------------------------------------------------------------------------

std::string Survival::hopeless_words() const {
  std::vector<int> left;
  for (const int member : agreement_.members()) {
    if (member == setup_.rank || !agreement_.is_lost(member)) left.push_back(member);
  }
  const std::size_t all = agreement_.members().size();
  return fmt::format(
      "rank {} can reach {} of the {} ranks of generation {} (rank{} {}), which is no majority; the smaller part of a "
      "network that has split does not go on",
      setup_.rank, left.size() == 1 ? "itself alone" : fmt::format("{}", left.size()), all, agreement_.generation(),
      left.size() == 1 ? "" : "s", fmt::join(left, ", "));
}

void Survival::end(const std::string& reason) {
  if (defect_ == reason) give_up(reason);
  has_failed_ = true;
  links_.close_all();
  throw TransportError(reason);
}

void Survival::give_up(const std::string& reason) noexcept {
  if (std::exchange(has_failed_, true)) return;
  try {
    for (const int member : agreement_.members()) {
      if (member == setup_.rank) continue;
      links_.send(member, {.kind = LetterKind::kDefect, .generation = agreement_.generation(), .text = reason});
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory: the end of the links says as much
  }
  links_.flush(kFarewellMs);
  links_.close_all();
}

}  // namespace gar
