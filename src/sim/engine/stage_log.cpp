#include "sim/engine/stage_log.hpp"

#include <algorithm>

namespace gar::sim {

namespace {

constexpr double kMaxCalculations = 2e7;  // numbers to keep

}  // namespace

StageLog::StageLog(const std::vector<StageUse>& stages, std::uint32_t num_ranks)
    : stages_(stages), has_started_(stages.size(), 0) {
  if (static_cast<double>(num_ranks) * static_cast<double>(stages_.size()) <= kMaxCalculations) {
    calculation_.resize(num_ranks * stages_.size());
  }
}

void StageLog::repeat(double times, const std::vector<double>& before) {
  for (std::size_t i = 0; i < calculation_.size(); ++i) calculation_[i] += times * (calculation_[i] - before[i]);
}

std::vector<StageUse> StageLog::stages() const {
  std::vector<StageUse> out = stages_;
  for (std::size_t i = 0; i < calculation_.size(); ++i) {
    StageUse& stage = out[i % out.size()];
    stage.calculation_seconds = std::max(stage.calculation_seconds, calculation_[i]);
  }
  return out;
}

}  // namespace gar::sim
