// What the preload library did, for the table at the end (GAR_DEBUG=INFO).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

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
  /// function, ranks, bit width of the bytes, plan and transport
  using Key = std::tuple<std::string, int, int, std::string>;

  mutable std::mutex mutex_;
  std::map<Key, Row> rows_;
  std::map<std::pair<std::string, PassReason>, Row> passed_;
  Row set_up_;
  std::vector<Decisions> decisions_;
};

}  // namespace gar::preload
