// Whole plans priced exactly, of which GenTree+ takes the cheapest.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "gar/planner.hpp"

namespace gar::plus {

class Finals {
 public:
  Finals(const Topology& topology, double size_floats, const ModelOptions& options);

  /// Prices a plan in its best number of chunks, and keeps it if it is cheaper than all before.
  void offer(Plan plan, std::vector<SwitchChoice> switches);
  /// Seconds of the cheapest plan so far.
  [[nodiscard]] double least() const { return least_; }
  /// The cheapest plan with its price and everything that it was compared with.
  TreePlan take();

 private:
  const Topology& topology_;
  double size_;
  ModelOptions options_;
  std::int64_t limit_ = 1;  // of the chunks
  double least_ = std::numeric_limits<double>::infinity();
  TreePlan best_;
};

}  // namespace gar::plus
