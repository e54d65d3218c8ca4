// What the preload library did, for the table at the end (GAR_DEBUG=INFO).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "apps/preload/check.hpp"
#include "apps/preload/operation.hpp"
#include "gar/communicator.hpp"

namespace gar::preload {

/// Why a call was left to the MPI library.
enum class PassReason {
  kSmall,
  kOperator,
  kType,
  kDeviation,
  kArguments,
  kInter,
  kAlone,
  kNotReady,
  kRefused,
  kThreads,
  kForeign,
  kMany,
  kSpinning,
};

class Statistics {
 public:
  void add(const Operation& operation, int num_ranks, const PlanReport& report, double seconds);
  /// A communicator of the program was set up.
  void add_set_up(double seconds);
  /// What was measured on a communicator.
  void add_decisions(const Decisions& decisions);
  void add_passed(std::string_view function, PassReason reason, double seconds);
  /// For the closing line, when there is no table: cheap.
  void count_taken(double seconds);
  void count_passed() { num_passed_.fetch_add(1, std::memory_order_relaxed); }
  /// A call that was made in turns. The first of each size is not counted: its buffers and plans are new.
  void add_turns(const Operation& operation, int num_ranks, const Turns& turns);
  /// Lines without an end of line: both times for each size, and all together.
  [[nodiscard]] std::string turns_table(std::string_view library) const;
  /// "60 of 80 calls taken over, ...", or a warning that there were none.
  [[nodiscard]] std::string closing_line(std::string_view library, bool has_compared) const;
  /// Lines without an end of line; `library` is the name of the MPI library.
  [[nodiscard]] std::string table(std::string_view library, int world_size) const;

 private:
  struct Row {
    std::int64_t num_calls = 0;
    double bytes = 0;
    double seconds = 0;
    double expected = 0;
    bool has_expected = true;
  };
  /// Of calls that were made in turns.
  struct Pairs {
    bool has_first = false;
    std::int64_t num_calls = 0;
    Turns sum;
    std::vector<float> ours;  ///< seconds of the first kMostSamples
    std::vector<float> theirs;
  };
  static constexpr std::size_t kMostSamples = 4096;
  /// function, ranks, bit width of the bytes, plan and transport
  using Key = std::tuple<std::string, int, int, std::string>;

  mutable std::mutex mutex_;
  std::map<Key, Row> rows_;
  std::map<std::pair<std::string, PassReason>, Row> passed_;
  std::map<std::tuple<std::string, int, int>, Pairs> turns_;  ///< function, ranks, bit width of the bytes
  std::atomic<std::int64_t> num_taken_{0};
  std::atomic<std::int64_t> taken_nanoseconds_{0};
  std::atomic<std::int64_t> num_passed_{0};
  Row set_up_;
  std::vector<Decisions> decisions_;
};

}  // namespace gar::preload
