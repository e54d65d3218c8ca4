// When the stages of a plan began and ended, and how much each server calculated in them, for the report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gar/simulate.hpp"

namespace gar::sim {

class StageLog {
 public:
  StageLog(const std::vector<StageUse>& stages, std::uint32_t num_ranks);

  void note_start(std::uint32_t stage, double now) {
    if (has_started_[stage] != 0) return;
    has_started_[stage] = 1;
    stages_[stage].begin = now;
  }
  void note_end(std::uint32_t stage, double now) {
    if (now > stages_[stage].end) stages_[stage].end = now;
  }
  void add_calculation(std::uint32_t stage, std::uint32_t rank, double seconds) {
    if (!calculation_.empty()) calculation_[rank * stages_.size() + stage] += seconds;
  }
  /// Seconds by rank and stage; empty where that would be too much to keep.
  [[nodiscard]] const std::vector<double>& calculation() const { return calculation_; }
  /// Adds what has been calculated since `before` another `times` times.
  void repeat(double times, const std::vector<double>& before);
  /// All stages, with the most that any server calculated in each.
  [[nodiscard]] std::vector<StageUse> stages() const;
  [[nodiscard]] bool has_started(std::size_t stage) const { return has_started_[stage] != 0; }

 private:
  std::vector<StageUse> stages_;
  std::vector<char> has_started_;
  std::vector<double> calculation_;
};

}  // namespace gar::sim
