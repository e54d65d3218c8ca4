// Differences and regrets of a comparison.
#include "gar/compare.hpp"

#include <algorithm>
#include <cmath>

namespace gar {
namespace {

double relative(double value, double reference) { return reference > 0 ? value / reference - 1 : 0; }

}  // namespace

double ComparedPlan::difference() const { return relative(simulated.seconds, predicted.total()); }

double ComparedSize::regret() const {
  return relative(plans[model_best].simulated.seconds, plans.front().simulated.seconds);
}

ComparisonTotals totals_of(const std::vector<ComparedSize>& sizes) {
  ComparisonTotals out;
  std::size_t num_plans = 0;
  for (const ComparedSize& size : sizes) {
    if (size.regret() <= 0) ++out.num_right;
    out.mean_regret += size.regret() / static_cast<double>(sizes.size());
    out.max_regret = std::max(out.max_regret, size.regret());
    for (const ComparedPlan& plan : size.plans) {
      const double seconds = plan.without ? plan.without->seconds : plan.simulated.seconds;
      out.mean_error += std::abs(relative(seconds, plan.predicted.total()));
      ++num_plans;
    }
  }
  if (num_plans > 0) out.mean_error /= static_cast<double>(num_plans);
  return out;
}

}  // namespace gar
