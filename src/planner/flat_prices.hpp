// Prices of flat plans that several parts of one answer ask for: what gentree+ is compared with is listed beside it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "gar/planner.hpp"
#include "gar/predict.hpp"

namespace gar {

/// Of one network, one model and one collective; the plan of an algorithm is the same every time.
class FlatPrices {
 public:
  /// The price of that plan, which is that of the algorithm for the collective of the options.
  std::shared_ptr<const PricedPlan> of(const AlgorithmSpec& spec, const Plan& plan, const Topology& topology,
                                       const ModelOptions& options) {
    std::shared_ptr<const PricedPlan>& known = known_[{to_string(spec), options.overlap}];
    if (!known) known = std::make_shared<const PricedPlan>(plan, topology, options);
    return known;
  }
  /// The same where it is known already, or null.
  [[nodiscard]] std::shared_ptr<const PricedPlan> find(const AlgorithmSpec& spec, const ModelOptions& options) const {
    const auto it = known_.find({to_string(spec), options.overlap});
    return it == known_.end() ? nullptr : it->second;
  }

 private:
  std::map<std::pair<std::string, bool>, std::shared_ptr<const PricedPlan>> known_;
};

/// As plan(), with prices that are known, and room for more.
PlanAnswer plan(const PlanRequest& request, const std::shared_ptr<FlatPrices>& prices);
/// As gentree_plus().
TreePlan gentree_plus(const Topology& topology, double size_floats, const ModelOptions& options,
                      const std::shared_ptr<FlatPrices>& prices);

}  // namespace gar
