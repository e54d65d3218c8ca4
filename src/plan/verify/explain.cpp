// Finds the words for a plan that is wrong; runs only when verify.cpp has found that something is.
//
// A wrong cell. Only the receives that cover one unit matter, and they are few. Which contribution is wrong is found by
// halving: let only the ranks of a range contribute, and see whether the cell differs from what it should then be;
// O(log N) runs over these receives and O(N) memory, with no sets of ranks. A contribution that is counted too often is
// followed backwards from the wrong cell to the step that added it up.
//
// An unmatched message. Per step, then per sender in the first step that differs, the same hashes as in verify.cpp
// point at one sender; its sends and the receives that name it are sorted and compared.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "gar/verify.hpp"
#include "plan/verify/internal.hpp"

namespace gar::verify_detail {
namespace {

/// One receive of the unit that is looked at.
struct Event {
  std::size_t round;
  std::int32_t rank;
  std::int32_t peer;
  bool accumulate;
};

/// What the ranks hold of one unit, with and without multiplicities that vanish modulo the prime.
struct Value {
  std::uint64_t fingerprint = 0;
  std::uint64_t count = 0;
  bool operator==(const Value&) const = default;
};
Value operator+(Value a, Value b) {
  return {canonical(add_mod(a.fingerprint, b.fingerprint)), add_saturating(a.count, b.count)};
}

/// The story of one unit of the vector.
class UnitStory {
 public:
  UnitStory(Programs& programs, std::int64_t unit, const Keys& keys) : programs_(programs), unit_(unit), keys_(keys) {
    for (std::int64_t rank = 0; rank < programs.num_ranks(); ++rank) {
      for (const Step& step : programs.stored(rank).steps) {
        if (programs.runs_stored()) collect(programs.round_of_stored(step.number), rank, step.recvs, false);
        if (programs.has_mirror(step.number)) collect(programs.round_of_mirror(step.number), rank, step.sends, true);
      }
    }
    std::stable_sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return std::pair(a.round, a.rank) < std::pair(b.round, b.rank);
    });
  }

  [[nodiscard]] const std::vector<Event>& events() const { return events_; }

  /// Runs the events while only the ranks [first, last) contribute. `before_event(i, state)` sees the state before the
  /// round of event i.
  template <class BeforeEvent>
  [[nodiscard]] std::vector<Value> run(std::int64_t first, std::int64_t last, const BeforeEvent& before_event) const {
    std::vector<Value> state(static_cast<std::size_t>(programs_.num_ranks()));
    for (std::int64_t r = first; r < last; ++r) state[static_cast<std::size_t>(r)] = {contribution(keys_, r), 1};
    std::vector<std::pair<std::int32_t, Value>> fresh;
    for (std::size_t i = 0; i < events_.size();) {
      const std::size_t round = events_[i].round;
      fresh.clear();
      for (; i < events_.size() && events_[i].round == round; ++i) {
        const Event& e = events_[i];
        before_event(i, state);
        if (fresh.empty() || fresh.back().first != e.rank)
          fresh.emplace_back(e.rank, e.accumulate ? state[static_cast<std::size_t>(e.rank)] : Value{});
        fresh.back().second = fresh.back().second + state[static_cast<std::size_t>(e.peer)];
      }
      for (const auto& [rank, value] : fresh) state[static_cast<std::size_t>(rank)] = value;
    }
    return state;
  }
  [[nodiscard]] Value final_value(std::int64_t rank, std::int64_t first, std::int64_t last) const {
    return run(first, last, [](std::size_t, const std::vector<Value>&) {})[static_cast<std::size_t>(rank)];
  }

 private:
  void collect(std::size_t round, std::int64_t rank, const std::vector<Message>& receives, bool is_mirror) {
    for (const Message& m : receives)
      if (m.begin <= unit_ && unit_ < m.end)
        events_.push_back({round, static_cast<std::int32_t>(rank), m.peer, m.accumulate && !is_mirror});
  }

  Programs& programs_;
  std::int64_t unit_;
  const Keys& keys_;
  std::vector<Event> events_;
};

/// The rank whose block a unit belongs to in an AllGather.
std::int64_t owner_of(const Plan& plan, std::int64_t unit) { return unit / (plan.num_units / plan.num_ranks); }

/// What a correct plan makes of the contributions of the ranks [first, last).
Value wanted_of(const Plan& plan, std::int64_t unit, const Keys& keys, std::int64_t first, std::int64_t last) {
  Value sum;
  if (plan.collective == Collective::kAllGather) {
    const std::int64_t owner = owner_of(plan, unit);
    return owner >= first && owner < last ? Value{contribution(keys, owner), 1} : sum;
  }
  for (std::int64_t r = first; r < last; ++r) sum = sum + Value{contribution(keys, r), 1};
  return sum;
}

/// The first rank whose contribution to the cell is not what it must be (almost surely: halves could cancel).
std::int64_t find_culprit(const UnitStory& story, const Plan& plan, const Keys& keys, std::int64_t rank,
                          std::int64_t unit) {
  std::int64_t first = 0;
  std::int64_t last = plan.num_ranks;
  while (last - first > 1) {
    const std::int64_t middle = first + (last - first) / 2;
    if (story.final_value(rank, first, middle) != wanted_of(plan, unit, keys, first, middle)) {
      last = middle;
    } else {
      first = middle;
    }
  }
  return first;
}

/// Where the contribution was added up: "rank 4 adds it up in step 3 from its own value and rank 1".
std::string where_added(const UnitStory& story, const Programs& programs, std::int64_t rank, std::int64_t culprit) {
  const auto& events = story.events();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> operands(events.size());  // counts: own, received
  static_cast<void>(story.run(culprit, culprit + 1, [&](std::size_t i, const std::vector<Value>& state) {
    operands[i] = {events[i].accumulate ? state[static_cast<std::size_t>(events[i].rank)].count : 0,
                   state[static_cast<std::size_t>(events[i].peer)].count};
  }));
  auto at = static_cast<std::int32_t>(rank);
  for (std::size_t end = events.size(); end > 0;) {
    std::size_t begin = end - 1;
    while (begin > 0 && events[begin - 1].round == events[end - 1].round &&
           events[begin - 1].rank == events[end - 1].rank)
      --begin;
    if (events[begin].rank != at) {
      end = begin;
      continue;
    }
    std::vector<std::string> sources;
    std::int32_t origin = -1;  // an operand that already has it more than once
    if (operands[begin].first > 0) sources.emplace_back("its own value");
    if (operands[begin].first > 1) origin = at;
    for (std::size_t i = begin; i < end; ++i) {
      const bool again = i > begin && events[i].peer == events[i - 1].peer;
      if (operands[i].second > 0) sources.push_back(fmt::format("rank {}{}", events[i].peer, again ? " again" : ""));
      if (operands[i].second > 1 && origin < 0) origin = events[i].peer;
    }
    if (origin < 0)
      return fmt::format("rank {} adds it up in {} from {}", at, programs.round_name(events[begin].round),
                         fmt::join(sources, " and "));
    at = origin;
    end = begin;
    while (end > 0 && events[end - 1].round == events[begin].round) --end;  // what the origin held before this round
  }
  return fmt::format("rank {} starts with it", at);
}

/// " after step 7 (AllGather)", the last step in which the rank receives the unit.
std::string last_change(const UnitStory& story, const Programs& programs, std::int64_t rank) {
  const auto& events = story.events();
  const auto last = std::find_if(events.rbegin(), events.rend(), [&](const Event& e) { return e.rank == rank; });
  if (last == events.rend()) return fmt::format("; rank {} never receives anything there", rank);
  return fmt::format(" after {}", programs.round_name(last->round));
}

}  // namespace

std::string explain_wrong_cell(Programs& programs, const WrongCell& wrong, const Keys& keys) {
  const Plan& plan = programs.plan();
  const std::int64_t unit = wrong.interval.begin;
  const UnitStory story(programs, unit, keys);
  const std::int64_t culprit = find_culprit(story, plan, keys, wrong.rank, unit);
  const std::uint64_t count = story.final_value(wrong.rank, culprit, culprit + 1).count;
  const std::string cell = fmt::format("rank {}, {}", wrong.rank, describe(plan, wrong.interval));
  if (count == 0)
    return fmt::format("{}: contribution of rank {} missing{}", cell, culprit,
                       last_change(story, programs, wrong.rank));
  if (plan.collective == Collective::kAllGather && culprit != owner_of(plan, unit))
    return fmt::format("{}: must be the block of rank {}, but what rank {} has there was mixed in{}", cell,
                       owner_of(plan, unit), culprit, last_change(story, programs, wrong.rank));
  const std::string times = count == 2            ? "twice"
                            : count == kManyTimes ? "over and over"
                                                  : fmt::format("{} times", count);
  return fmt::format("{}: contribution of rank {} counted {}; {}", cell, culprit, times,
                     where_added(story, programs, wrong.rank, culprit));
}

namespace {

/// The other side of a message: same pair of ranks, other direction of view.
struct Exchange {
  std::int32_t to;
  std::int64_t begin;
  std::int64_t end;
  bool operator==(const Exchange&) const = default;
  auto operator<=>(const Exchange&) const = default;
};

/// The first step number whose sends and receives differ.
std::int64_t first_unmatched_step(Programs& programs, const Keys& keys) {
  FlatIndex numbers;
  for (std::int64_t rank = 0; rank < programs.num_ranks(); ++rank)
    for (const Step& step : programs.stored(rank).steps) numbers.insert(step.number);
  numbers.finish();
  std::vector<std::pair<MessageSet, MessageSet>> sets(numbers.keys().size(), {MessageSet(keys), MessageSet(keys)});
  for (std::int64_t rank = 0; rank < programs.num_ranks(); ++rank) {
    for (const Step& step : programs.stored(rank).steps) {
      auto& [sent, received] = sets[numbers.index_of(step.number)];
      for (const Message& m : step.sends) sent.add({}, rank, m.peer, m.begin, m.end);
      for (const Message& m : step.recvs) received.add({}, m.peer, rank, m.begin, m.end);
    }
  }
  const auto bad = std::find_if(sets.begin(), sets.end(), [](const auto& s) { return s.first != s.second; });
  return numbers.keys()[static_cast<std::size_t>(bad - sets.begin())];
}

const Step* step_with_number(const RankProgram& program, std::int64_t number) {
  for (const Step& step : program.steps)
    if (step.number == number) return &step;
  return nullptr;
}

/// The first sender whose messages in the step differ from what others expect of it.
std::int64_t first_unmatched_sender(Programs& programs, std::int64_t number, const Keys& keys) {
  std::vector<std::pair<MessageSet, MessageSet>> sets(static_cast<std::size_t>(programs.num_ranks()),
                                                      {MessageSet(keys), MessageSet(keys)});
  for (std::int64_t rank = 0; rank < programs.num_ranks(); ++rank) {
    const Step* step = step_with_number(programs.stored(rank), number);
    if (step == nullptr) continue;
    for (const Message& m : step->sends)
      sets[static_cast<std::size_t>(rank)].first.add({}, rank, m.peer, m.begin, m.end);
    for (const Message& m : step->recvs)
      sets[static_cast<std::size_t>(m.peer)].second.add({}, m.peer, rank, m.begin, m.end);
  }
  const auto bad = std::find_if(sets.begin(), sets.end(), [](const auto& s) { return s.first != s.second; });
  return bad - sets.begin();
}

/// What the other side has for the same pair of ranks: "only elements [0,50) in that step"; at most three intervals.
std::string other_side(const Plan& plan, const std::vector<Exchange>& messages, const Exchange& alone) {
  const auto same = std::count(messages.begin(), messages.end(), alone);
  if (same > 0) return fmt::format("only {} in that step", same == 1 ? "once" : fmt::format("{} times", same));
  std::vector<std::string> words;
  for (const Exchange& m : messages)
    if (m.to == alone.to) words.push_back(describe(plan, {m.begin, m.end}));
  if (words.empty()) return "nothing in that step";
  if (words.size() > 3) {
    words.resize(3);
    words.emplace_back("more");
  }
  return fmt::format("only {} in that step", fmt::join(words, " and "));
}

/// "", or "2 times " when the message occurs that often.
std::string how_often(const std::vector<Exchange>& messages, const Exchange& m) {
  const auto times = std::count(messages.begin(), messages.end(), m);
  return times > 1 ? fmt::format("{} times ", times) : "";
}

}  // namespace

std::string explain_unmatched(Programs& programs, const Keys& keys) {
  const Plan& plan = programs.plan();
  const std::int64_t number = first_unmatched_step(programs, keys);
  const std::int64_t sender = first_unmatched_sender(programs, number, keys);
  std::vector<Exchange> sent;
  std::vector<Exchange> expected;
  for (std::int64_t rank = 0; rank < programs.num_ranks(); ++rank) {
    const Step* step = step_with_number(programs.stored(rank), number);
    if (step == nullptr) continue;
    for (const Message& m : step->recvs)
      if (m.peer == sender) expected.push_back({static_cast<std::int32_t>(rank), m.begin, m.end});
    if (rank == sender)
      for (const Message& m : step->sends) sent.push_back({m.peer, m.begin, m.end});
  }
  std::sort(sent.begin(), sent.end());
  std::sort(expected.begin(), expected.end());
  std::vector<Exchange> alone;
  std::set_difference(expected.begin(), expected.end(), sent.begin(), sent.end(), std::back_inserter(alone));
  if (!alone.empty()) {
    const Exchange& m = alone[0];
    return fmt::format("step {}: rank {} waits {}for {} from rank {}, which sends it {}", number, m.to,
                       how_often(expected, m), describe(plan, {m.begin, m.end}), sender, other_side(plan, sent, m));
  }
  std::set_difference(sent.begin(), sent.end(), expected.begin(), expected.end(), std::back_inserter(alone));
  if (alone.empty()) return fmt::format("step {}: the sends of rank {} do not match their receives", number, sender);
  const Exchange& m = alone[0];
  return fmt::format("step {}: rank {} sends {}{} to rank {}, which expects {}", number, sender, how_often(sent, m),
                     describe(plan, {m.begin, m.end}), m.to, other_side(plan, expected, m));
}

}  // namespace gar::verify_detail
