// Predicted and simulated times side by side: the answer of `gar compare`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gar/scene.hpp"

namespace gar {

/// What is kept of a simulation.
struct ComparedRun {
  double seconds = 0;  ///< simulated time
  Terms terms;         ///< of the critical path; their sum is `seconds`
};

/// One algorithm at one size.
struct ComparedPlan {
  std::string algorithm;               ///< with factors: "hcps:8x3"
  std::int64_t num_chunks = 1;         ///< parts of the vector that follow each other
  Terms predicted;                     ///< by the model, for the network without the what-if conditions
  ComparedRun simulated;               ///< with the what-if conditions
  std::optional<ComparedRun> without;  ///< without the what-if conditions, when there are any
  std::string why;                     ///< where the difference comes from, in words
  /// simulated / predicted - 1; 0 when nothing is predicted.
  [[nodiscard]] double difference() const;
};

/// All algorithms at one size, best simulated first; at least one.
struct ComparedSize {
  VectorSize size;                  ///< of the vector
  std::vector<ComparedPlan> plans;  ///< fastest simulated time first
  std::size_t model_best = 0;       ///< index of the model's choice
  /// What following the model costs: time of its choice / time of the best, - 1.
  [[nodiscard]] double regret() const;
};

/// Algorithms compared at several sizes in one scene.
struct Comparison {
  Scene scene;                                     ///< what all sizes have in common
  std::vector<ComparedSize> sizes;                 ///< in the order in which they were asked for
  bool is_complete = true;                         ///< false: interrupted; sizes or algorithms are missing
  Collective collective = Collective::kAllReduce;  ///< what the algorithms compute
};

/// Over all sizes.
struct ComparisonTotals {
  std::size_t num_right = 0;  ///< sizes at which the model chose the best
  double mean_regret = 0;     ///< mean of ComparedSize::regret()
  double max_regret = 0;      ///< largest ComparedSize::regret()
  double mean_error = 0;      ///< of |simulated / predicted - 1|, without the what-if conditions
};
ComparisonTotals totals_of(const std::vector<ComparedSize>& sizes);  ///< all 0 when there are no sizes

}  // namespace gar
