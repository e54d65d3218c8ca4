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
  double seconds = 0;
  Terms terms;
};

/// One algorithm at one size.
struct ComparedPlan {
  std::string algorithm;
  std::int64_t num_chunks = 1;
  Terms predicted;
  ComparedRun simulated;
  std::optional<ComparedRun> without;  ///< without the what-if conditions, when there are any
  std::string why;                     ///< where the difference comes from, in words
  /// simulated / predicted - 1; 0 when nothing is predicted.
  [[nodiscard]] double difference() const;
};

/// All algorithms at one size, best simulated first; at least one.
struct ComparedSize {
  VectorSize size;
  std::vector<ComparedPlan> plans;
  std::size_t model_best = 0;  ///< index of the model's choice
  /// What following the model costs: time of its choice / time of the best, - 1.
  [[nodiscard]] double regret() const;
};

struct Comparison {
  Scene scene;
  std::vector<ComparedSize> sizes;
  bool is_complete = true;
};

/// Over all sizes.
struct ComparisonTotals {
  std::size_t num_right = 0;  ///< sizes at which the model chose the best
  double mean_regret = 0;
  double max_regret = 0;
  double mean_error = 0;  ///< of |simulated / predicted - 1|, without the what-if conditions
};
ComparisonTotals totals_of(const std::vector<ComparedSize>& sizes);

}  // namespace gar
