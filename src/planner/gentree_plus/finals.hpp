// Whole plans priced exactly, of which GenTree+ takes the cheapest.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "gar/planner.hpp"

namespace gar::plus {

class Finals {
 public:
  Finals(const Topology& topology, double size_floats, const ModelOptions& options);

  /// Prices a plan in its best number of chunks, and keeps it if it is cheaper than all before.
  void offer(Plan plan, std::vector<SwitchChoice> switches);
  /// The same, but a plan that is not cheaper is not even listed among those that were compared.
  void offer_if_better(Plan plan, std::vector<SwitchChoice> switches);
  /// Seconds of a plan in its best number of chunks; it is not kept.
  [[nodiscard]] double seconds_of(Plan plan) const { return priced(std::move(plan), {}).terms.total(); }
  /// Does the cheapest plan so far take the vector in one piece, because cutting it would not pay?
  [[nodiscard]] bool is_short() const;
  /// Seconds of the cheapest plan so far.
  [[nodiscard]] double least() const { return least_; }
  /// The cheapest plan with its price and everything that it was compared with.
  TreePlan take();

 private:
  /// A plan and its price, in its best number of chunks.
  struct Offer {
    Plan plan;
    std::vector<SwitchChoice> switches;
    std::shared_ptr<PricedPlan> priced;
    Terms terms;
  };
  [[nodiscard]] Offer priced(Plan plan, std::vector<SwitchChoice> switches) const;
  void take(Offer offer);

  const Topology& topology_;
  double size_;
  ModelOptions options_;
  std::int64_t most_chunks_ = 1;  // that the size allows
  std::int64_t limit_ = 1;        // of the chunks
  double least_ = std::numeric_limits<double>::infinity();
  TreePlan best_;
};

}  // namespace gar::plus
