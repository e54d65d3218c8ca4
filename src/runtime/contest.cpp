#include "runtime/contest.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace gar {

namespace {

constexpr std::size_t kKept = 24;       // samples of a candidate: what is older does not count
constexpr std::int64_t kFirstLook = 3;  // calls of a turn with a candidate of which nothing is known
constexpr std::int64_t kShortLook = 3;  // with a candidate that is slow
constexpr std::int64_t kFreeLooks = 2;
constexpr std::int64_t kToSecondLook = 64;  // calls before the second of them
constexpr std::int64_t kLook = 8;           // with a candidate that might win
constexpr std::int64_t kBetween = 8;        // calls of the incumbent between two looks, at least
constexpr std::int64_t kHurry = 4;          // the same while another candidate seems to be faster
constexpr std::int64_t kLongest = 1024;     // calls of a turn
constexpr int kLengthCodes = 16;
// What a class may pay in any case. Calls of microseconds are so easily disturbed that few of them say nothing, and so
// short that many of them cost nothing.
constexpr double kAllowanceS = 1e-3;
constexpr double kSlow = 1.25;        // times the incumbent: needs few looks
constexpr double kHopeless = 2;       // times the incumbent: needs hardly any
constexpr double kAbsurd = 4;         // times the incumbent: where more cannot be paid for, two looks are enough
constexpr std::int64_t kEnough = 12;  // counted calls of a candidate that might win
constexpr std::int64_t kEnoughOfSlow = 8;
constexpr std::int64_t kEnoughOfHopeless = 6;
constexpr std::int64_t kEnoughOfAbsurd = 2;
constexpr std::int64_t kToElect = 6;  // counted calls before a candidate becomes the incumbent
constexpr double kDrift = 1.3;        // ratio of times that is not the same any more
constexpr int kStrangeTurns = 2;
constexpr std::size_t kToJudge = 6;  // samples of a turn that says something about drift

/// The lower quartile; of few values the least.
double lower_quartile(std::vector<double> values) {
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

}  // namespace

unsigned encode(const Turn& turn) {
  const auto length =
      turn.num_calls == 3 ? 1U : static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(turn.num_calls)) - 1);
  return static_cast<unsigned>(turn.candidate) | length << 3U | (turn.is_settled ? 1U : 0U) << 7U;
}

Turn decode(unsigned bits) {
  Turn out;
  out.candidate = static_cast<int>(bits % kMostCandidates);
  const unsigned length = (bits >> 3U) % kLengthCodes;
  out.num_calls = length == 1 ? 3 : std::int64_t{1} << length;
  out.is_settled = (bits >> 7U) % 2 != 0;
  return out;
}

Contest::Contest(int num_candidates, int incumbent, std::vector<double> expected_s, const ContestOptions& options)
    : options_(options),
      entries_(static_cast<std::size_t>(num_candidates)),
      incumbent_(incumbent),
      patience_(kBetween) {
  turn_.candidate = incumbent;
  for (std::size_t i = 0; i < std::min(entries_.size(), expected_s.size()); ++i) entries_[i].guess = expected_s[i];
  const double known = entries_[static_cast<std::size_t>(incumbent)].guess;
  is_settled_ = known > 0 || num_candidates == 1;
  settled_s_ = known;
  turn_.is_settled = is_settled_;
}

double Contest::worth(const Entry& entry) const {
  return entry.samples.empty() ? entry.guess : lower_quartile(entry.samples);
}

Contest::Standing Contest::standing(int candidate) const {
  const Entry& entry = entries_[static_cast<std::size_t>(candidate)];
  return {worth(entry), entry.num_counted, entry.num_looks,
          entry.num_counted > 0 ? entry.num_counted : entry.num_guess};
}

void Contest::pay(double seconds, const Look& look) {
  ++num_calls_;
  seconds_ += seconds;
  if (!look.is_look || look.usual <= 0) return;
  const double extra = std::max(0.0, seconds - look.usual);
  extra_seconds_ += extra;
  if (!look.is_free) paid_seconds_ += extra;
}

void Contest::add(double seconds) {
  pay(seconds, {turn_.candidate != incumbent_, is_free_, worth(entries_[static_cast<std::size_t>(incumbent_)])});
  if (turn_calls_++ > 0) turn_samples_.push_back(seconds);
}

void Contest::add_untimed(std::int64_t num_calls) {
  num_calls_ += num_calls;
  seconds_ += static_cast<double>(num_calls) * std::max(0.0, worth(entries_[static_cast<std::size_t>(incumbent_)]));
}

void Contest::add_carrier(double seconds) { pay(seconds, {was_look_, was_free_, usual_before_}); }

void Contest::close_turn() {
  was_look_ = turn_.candidate != incumbent_;
  was_free_ = is_free_;
  usual_before_ = worth(entries_[static_cast<std::size_t>(incumbent_)]);
  Entry& entry = entries_[static_cast<std::size_t>(turn_.candidate)];
  entry.samples.insert(entry.samples.end(), turn_samples_.begin(), turn_samples_.end());
  if (entry.samples.size() > kKept) {
    entry.samples.erase(entry.samples.begin(), entry.samples.end() - static_cast<std::ptrdiff_t>(kKept));
  }
  entry.num_counted += static_cast<std::int64_t>(turn_samples_.size());
  if (!turn_samples_.empty()) ++entry.num_looks;
}

bool Contest::is_done(int candidate) const {
  const Entry& entry = entries_[static_cast<std::size_t>(candidate)];
  if (entry.samples.empty()) return false;
  const double usual = worth(entries_[static_cast<std::size_t>(incumbent_)]);
  const double ratio = worth(entry) / usual;
  return entry.num_counted >= (ratio > kHopeless ? kEnoughOfHopeless : ratio > kSlow ? kEnoughOfSlow : kEnough);
}

bool Contest::is_dismissed(int candidate) const {
  const Entry& entry = entries_[static_cast<std::size_t>(candidate)];
  const double usual = worth(entries_[static_cast<std::size_t>(incumbent_)]);
  return entry.num_counted >= kEnoughOfAbsurd && worth(entry) > kAbsurd * usual &&
         !can_pay(candidate, look_length(candidate));
}

std::int64_t Contest::look_length(int candidate) const {
  const Entry& entry = entries_[static_cast<std::size_t>(candidate)];
  const double known = worth(entry);
  if (entry.samples.empty()) return kFirstLook;
  return known > kSlow * worth(entries_[static_cast<std::size_t>(incumbent_)]) ? kShortLook : kLook;
}

bool Contest::is_free(int candidate) const {
  const Entry& entry = entries_[static_cast<std::size_t>(candidate)];
  return entry.num_free < kFreeLooks && (worth(entry) < 0 || num_calls_ >= kToSecondLook);
}

bool Contest::can_pay(int candidate, std::int64_t num_calls) const {
  if (num_calls <= kFirstLook && is_free(candidate)) return true;
  const double known = worth(entries_[static_cast<std::size_t>(candidate)]);
  const double usual = worth(entries_[static_cast<std::size_t>(incumbent_)]);
  const double price = static_cast<double>(num_calls) * std::max(0.0, known - usual);
  return paid_seconds_ + price <= options_.share * seconds_ + kAllowanceS;
}

/// The least comes first: those that seem to be faster than the incumbent, then those of which nothing is known.
double Contest::urgency_of(int candidate) const {
  const double usual = (1 - options_.margin) * worth(entries_[static_cast<std::size_t>(incumbent_)]);
  const double known = worth(entries_[static_cast<std::size_t>(candidate)]);
  return known < 0 ? usual : known;
}

std::optional<int> Contest::next_look() const {
  std::optional<int> best;
  for (int i = 0; i < static_cast<int>(entries_.size()); ++i) {
    if (i == incumbent_ || is_done(i) || !can_pay(i, look_length(i))) continue;
    if (!best || urgency_of(i) < urgency_of(*best)) best = i;
  }
  return best;
}

void Contest::elect() {
  const double usual = worth(entries_[static_cast<std::size_t>(incumbent_)]);
  int best = incumbent_;
  for (int i = 0; i < static_cast<int>(entries_.size()); ++i) {
    const Entry& entry = entries_[static_cast<std::size_t>(i)];
    if (entry.num_counted < kToElect || worth(entry) >= (1 - options_.margin) * usual) continue;
    if (best == incumbent_ || worth(entry) < worth(entries_[static_cast<std::size_t>(best)])) best = i;
  }
  incumbent_ = best;
}

void Contest::reopen(double ratio) {
  for (Entry& entry : entries_) {
    const double known = worth(entry);
    Entry again;
    again.num_free = entry.num_free;
    if (known > 0) {
      again.guess = known * ratio;
      again.num_guess = entry.num_counted > 0 ? entry.num_counted : entry.num_guess;
    }
    entry = std::move(again);
  }
  is_settled_ = false;
  patience_ = kBetween;
  num_strange_ = 0;
  ++num_reopened_;
}

void Contest::watch_drift() {
  if (turn_samples_.size() < kToJudge || settled_s_ <= 0) return;
  const double ratio = lower_quartile(turn_samples_) / settled_s_;
  num_strange_ = ratio > kDrift || ratio < 1 / kDrift ? num_strange_ + 1 : 0;
  if (num_strange_ >= kStrangeTurns && entries_.size() > 1) reopen(ratio);
}

Turn Contest::run_incumbent() {
  if (!is_settled_ && patience_ == kBetween) {
    const double usual = (1 - options_.margin) * worth(entries_[static_cast<std::size_t>(incumbent_)]);
    const bool has_rival = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return !entry.samples.empty() && worth(entry) < usual;
    });
    if (has_rival) return {incumbent_, kHurry, false};
  }
  const Turn out{incumbent_, patience_, is_settled_};
  patience_ = std::min(2 * patience_, kLongest);
  return out;
}

Turn Contest::next() {
  const bool was_incumbent = turn_.candidate == incumbent_;
  close_turn();
  if (is_settled_) {
    watch_drift();
  } else {
    elect();
    bool is_over = worth(entries_[static_cast<std::size_t>(incumbent_)]) > 0;
    for (int i = 0; i < static_cast<int>(entries_.size()); ++i) is_over = is_over && (is_done(i) || is_dismissed(i));
    if (is_over) {
      is_settled_ = true;
      settled_s_ = worth(entries_[static_cast<std::size_t>(incumbent_)]);
      patience_ = kBetween;
    }
  }
  const bool knows_incumbent = !entries_[static_cast<std::size_t>(incumbent_)].samples.empty();
  Turn next{};
  if (const auto look = next_look(); !is_settled_ && was_incumbent && knows_incumbent && look) {
    next = {*look, look_length(*look), false};
    is_free_ = next.num_calls <= kFirstLook && is_free(*look);
    if (is_free_) ++entries_[static_cast<std::size_t>(*look)].num_free;
    patience_ = kBetween;
  } else {
    is_free_ = false;
    next = run_incumbent();
  }
  turn_ = next;
  turn_samples_.clear();
  turn_calls_ = 0;
  return turn_;
}

}  // namespace gar
