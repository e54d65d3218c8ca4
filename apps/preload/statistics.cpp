#include "apps/preload/statistics.hpp"

#include <fmt/format.h>

#include <bit>
#include <vector>

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
  for (const auto& [key, row] : passed_) {
    out += fmt::format("\nleft to {}: {} x {}, {:.4g} s: {}", library, row.num_calls, key.first, row.seconds,
                       in_words(key.second));
  }
  return out;
}

}  // namespace gar::preload
