#include "apps/preload/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "gar/environment.hpp"
#include "gar/stats.hpp"
#include "runtime/exploration.hpp"

namespace gar::preload {

namespace {

std::string in_bytes(std::uint64_t bytes) {
  if (bytes >= 1U << 30U) return fmt::format("{} GiB", bytes >> 30U);
  if (bytes >= 1U << 20U) return fmt::format("{} MiB", bytes >> 20U);
  if (bytes >= 1U << 10U) return fmt::format("{} KiB", bytes >> 10U);
  return fmt::format("{} B", bytes);
}

std::string in_words(PassReason reason) {
  switch (reason) {
    case PassReason::kSmall:
      return std::string("shorter than GAR_MIN_BYTES");
    case PassReason::kOperator:
      return "an operator of the program's own, or MINLOC, MAXLOC";
    case PassReason::kType:
      return "a type, or an operator for it, that gar does not combine";
    case PassReason::kDeviation:
      return "a type and operator that the MPI library combines in a way of its own";
    case PassReason::kArguments:
      return "nothing to do, or arguments that MPI shall judge";
    case PassReason::kInter:
      return "an intercommunicator";
    case PassReason::kAlone:
      return "a communicator of one rank";
    case PassReason::kNotReady:
      return "a communicator that is not set up yet";
    case PassReason::kRefused:
      return "a communicator that could not be set up";
    case PassReason::kThreads:
      return "non-blocking, and MPI does not allow several threads";
    case PassReason::kForeign:
      return "a communicator with ranks of another job";
    case PassReason::kMany:
      return "too many communicators are taken over already";
    case PassReason::kSpinning:
      return "non-blocking, and MPI_Wait of MPICH keeps the core that our thread needs";
  }
  return {};
}

/// "measured: 1 KiB .. 2 KiB, 4 ranks: native wins, 1.3 times as fast as cps; ..."
std::string decision_words(const Decision& decision, int num_ranks) {
  const DecisionCandidate* winner = decision.find(decision.winner);
  const DecisionCandidate& first = decision.candidates.front();
  std::string gain;
  const bool is_faster = winner != nullptr && winner->seconds > 0 && winner->seconds <= first.seconds;
  if (is_faster && decision.winner != first.name) {
    gain = fmt::format(", {:.2f} times as fast as {}", first.seconds / winner->seconds, first.name);
  }
  const double share = decision.seconds > 0 ? 100 * decision.extra_seconds / decision.seconds : 0;
  return fmt::format("measured: {} .. {}, {} ranks: {} {}{}; {}; looking has cost {:.1f}% of the time in {} calls",
                     in_bytes(static_cast<std::uint64_t>(decision.from_bytes)),
                     in_bytes(static_cast<std::uint64_t>(decision.to_bytes) + 1), num_ranks, decision.winner,
                     decision.is_settled ? "wins" : "leads", gain, words_of(decision), share, decision.num_calls);
}

/// "4 KiB .. 8 KiB"
std::string size_class(int width) {
  if (width <= 1) return in_bytes(static_cast<std::uint64_t>(width));
  return fmt::format("{} .. {}", in_bytes(std::uint64_t{1} << (width - 1)), in_bytes(std::uint64_t{1} << width));
}

/// "12.3 us"
std::string in_time(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

}  // namespace

void Statistics::add(const Operation& operation, int num_ranks, const PlanReport& report, double seconds) {
  const std::int64_t bytes = vector_bytes(operation.call, num_ranks);
  const std::lock_guard lock(mutex_);
  Row& row = rows_[{std::string(name_of(operation)), num_ranks, std::bit_width(static_cast<std::uint64_t>(bytes)),
                    fmt::format("{} over {}", report.algorithm, report.transport)}];
  ++row.num_calls;
  row.bytes += static_cast<double>(bytes);
  row.seconds += seconds;
  row.expected += report.predicted_seconds;
  row.has_expected = row.has_expected && report.predicted_seconds >= 0;
}

void Statistics::add_set_up(double seconds) {
  const std::lock_guard lock(mutex_);
  ++set_up_.num_calls;
  set_up_.seconds += seconds;
}

void Statistics::add_passed(std::string_view function, PassReason reason, double seconds) {
  const std::lock_guard lock(mutex_);
  Row& row = passed_[{std::string(function), reason}];
  ++row.num_calls;
  row.seconds += seconds;
}

void Statistics::add_decisions(const Decisions& decisions) {
  const std::lock_guard lock(mutex_);
  decisions_.push_back(decisions);
}

void Statistics::count_taken(double seconds) {
  num_taken_.fetch_add(1, std::memory_order_relaxed);
  taken_nanoseconds_.fetch_add(static_cast<std::int64_t>(seconds * 1e9), std::memory_order_relaxed);
}

void Statistics::add_turns(const Operation& operation, int num_ranks, const Turns& turns) {
  const std::int64_t bytes = vector_bytes(operation.call, num_ranks);
  const std::lock_guard lock(mutex_);
  Pairs& pairs =
      turns_[{std::string(name_of(operation)), num_ranks, std::bit_width(static_cast<std::uint64_t>(bytes))}];
  if (!std::exchange(pairs.has_first, true)) return;
  ++pairs.num_calls;
  pairs.sum.ours += turns.ours;
  pairs.sum.theirs += turns.theirs;
  if (pairs.ours.size() == kMostSamples) return;
  pairs.ours.push_back(static_cast<float>(turns.ours));
  pairs.theirs.push_back(static_cast<float>(turns.theirs));
}

std::string Statistics::turns_table(std::string_view library) const {
  const std::lock_guard lock(mutex_);
  std::string out;
  Turns sum;
  Turns usual;  // calls times their median
  std::int64_t num_calls = 0;
  for (const auto& [key, pairs] : turns_) {
    if (pairs.num_calls == 0) continue;
    const auto& [function, ranks, width] = key;
    if (out.empty()) {
      out = fmt::format(
          "the same calls here and in {}, in turns (medians):\n{:<24} {:>5} {:>10} {:>5} {:>8} {:>8} {:>6}\n", library,
          "function", "ranks", "size", "calls", "gar", "MPI", "speed");
    }
    const double ours = median({pairs.ours.begin(), pairs.ours.end()});
    const double theirs = median({pairs.theirs.begin(), pairs.theirs.end()});
    out += fmt::format("{:<24} {:>5} {:>10} {:>5} {:>8} {:>8} {:>5.2f}x\n", function, ranks,
                       "< " + in_bytes(std::uint64_t{1} << std::max(width, 1)), pairs.num_calls, in_time(ours),
                       in_time(theirs), theirs / ours);
    sum.ours += pairs.sum.ours;
    sum.theirs += pairs.sum.theirs;
    usual.ours += static_cast<double>(pairs.num_calls) * ours;
    usual.theirs += static_cast<double>(pairs.num_calls) * theirs;
    num_calls += pairs.num_calls;
  }
  if (num_calls == 0)
    return "warning: nothing was compared with " + std::string(library) + ": no size was called twice";
  out += fmt::format("all {} calls: {} here, {} with {}: {:.2f} times as fast", num_calls, in_time(usual.ours),
                     in_time(usual.theirs), library, usual.theirs / usual.ours);
  // Some calls, in which the machine did something else, can make the sums say another thing.
  constexpr double kMuch = 1.2;
  const double by_sums = sum.theirs / sum.ours * usual.ours / usual.theirs;
  if (by_sums < kMuch && by_sums > 1 / kMuch) return out;
  return out + fmt::format("\n(by the medians; the sums are {} and {}, which a few slow calls decide)",
                           in_time(sum.ours), in_time(sum.theirs));
}

std::string Statistics::closing_line(std::string_view library, bool has_compared) const {
  const std::int64_t num_taken = num_taken_;
  const std::int64_t num_calls = num_taken + num_passed_;
  if (num_calls == 0) {
    return "warning: no call was taken over: rank 0 has called neither MPI_Allreduce nor its relatives";
  }
  if (num_taken == 0) {
    return fmt::format("warning: no call was taken over; {} {} left to {} (why: gar mpirun --debug)", num_calls,
                       num_calls == 1 ? "was" : "were", library);
  }
  return fmt::format("{} of {} calls taken over, {} on rank 0 (more: gar mpirun --debug{})", num_taken, num_calls,
                     in_time(static_cast<double>(taken_nanoseconds_) * 1e-9), has_compared ? "" : " or --compare");
}

std::string Statistics::table(std::string_view library, int world_size) const {
  const std::lock_guard lock(mutex_);
  Row taken;
  Row passed;
  for (const auto& [key, row] : rows_) {
    taken.num_calls += row.num_calls;
    taken.seconds += row.seconds;
  }
  for (const auto& [key, row] : passed_) {
    passed.num_calls += row.num_calls;
    passed.seconds += row.seconds;
  }
  std::string out = fmt::format("rank 0 of {}: {} calls taken over, {:.4g} s; {} left to {}, {:.4g} s", world_size,
                                taken.num_calls, taken.seconds, passed.num_calls, library, passed.seconds);
  out += fmt::format("\n{} communicators set up, {:.4g} s", set_up_.num_calls, set_up_.seconds);
  std::size_t widest = std::string_view("function").size();
  for (const auto& [key, row] : rows_) widest = std::max(widest, std::get<0>(key).size());
  if (!rows_.empty()) {
    out += fmt::format("\n{:<{}} {:>18} {:>5} {:>6} {:>9} {:>9}  {}", "function", widest, "size", "ranks", "calls",
                       "seconds", "expected", "plan");
  }
  for (const auto& [key, row] : rows_) {
    const auto& [function, ranks, width, plan] = key;
    const std::string size = size_class(width);
    out += fmt::format("\n{:<{}} {:>18} {:>5} {:>6} {:>9.4g} {:>9}  {}", function, widest, size, ranks, row.num_calls,
                       row.seconds, row.has_expected ? fmt::format("{:.4g}", row.expected) : "-", plan);
  }
  if (!rows_.empty() && environment::text(environment::kTopology).empty()) {
    out += "\nexpected: by parameters measured in MPI_Init, rough; gar mpirun --compare measures the MPI library";
  }
  for (const Decisions& decisions : decisions_) {
    for (const Decision& decision : decisions.decisions)
      out += "\n" + decision_words(decision, decisions.place.num_ranks);
  }
  for (const auto& [key, row] : passed_) {
    out += fmt::format("\nleft to {}: {} x {}, {:.4g} s: {}", library, row.num_calls, key.first, row.seconds,
                       in_words(key.second));
  }
  return out;
}

}  // namespace gar::preload
