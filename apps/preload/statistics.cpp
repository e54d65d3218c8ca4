#include "apps/preload/statistics.hpp"

#include <fmt/format.h>

#include <bit>
#include <vector>

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
  if (winner != nullptr && winner->seconds > 0 && first.seconds > 0 && decision.winner != first.name) {
    gain = fmt::format(", {:.2f} times as fast as {}", first.seconds / winner->seconds, first.name);
  }
  const double share = decision.seconds > 0 ? 100 * decision.extra_seconds / decision.seconds : 0;
  return fmt::format("measured: {} .. {}, {} ranks: {} {}{}; {}; looking has cost {:.1f}% of the time in {} calls",
                     in_bytes(static_cast<std::uint64_t>(decision.from_bytes)),
                     in_bytes(static_cast<std::uint64_t>(decision.to_bytes) + 1), num_ranks, decision.winner,
                     decision.is_settled ? "wins" : "leads", gain, words_of(decision), share, decision.num_calls);
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
  if (!rows_.empty()) {
    out += fmt::format("\n{:<26} {:>20} {:>6} {:>8} {:>11} {:>11}  {}", "function", "size", "ranks", "calls", "seconds",
                       "expected", "plan");
  }
  for (const auto& [key, row] : rows_) {
    const auto& [function, ranks, width, plan] = key;
    const std::string size = width <= 1 ? in_bytes(static_cast<std::uint64_t>(width))
                                        : fmt::format("{} .. {}", in_bytes(std::uint64_t{1} << (width - 1)),
                                                      in_bytes(std::uint64_t{1} << width));
    out += fmt::format("\n{:<26} {:>20} {:>6} {:>8} {:>11.4g} {:>11}  {}", function, size, ranks, row.num_calls,
                       row.seconds, row.has_expected ? fmt::format("{:.4g}", row.expected) : "-", plan);
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
