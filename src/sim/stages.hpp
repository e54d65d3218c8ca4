// Which step belongs to which stage of a plan, for reports.
#pragma once

#include <cstdint>
#include <vector>

#include "gar/plan.hpp"
#include "gar/simulate.hpp"

namespace gar::sim {

/// The stages of a plan in the order of their step numbers.
class StageTable {
 public:
  explicit StageTable(const PlanIndex& index);
  [[nodiscard]] const std::vector<StageUse>& stages() const { return stages_; }
  [[nodiscard]] std::uint32_t of_step(std::int64_t number) const;

 private:
  std::vector<StageUse> stages_;
  std::vector<std::int64_t> first_;
};

}  // namespace gar::sim
