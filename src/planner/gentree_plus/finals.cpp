// Whole plans priced exactly.
#include "planner/gentree_plus/finals.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "planner/gentree_plus/search.hpp"

namespace gar::plus {

Finals::Finals(const Topology& topology, double size_floats, const ModelOptions& options)
    : topology_(topology), size_(size_floats), options_(options) {
  options_.overlap = true;
  limit_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(size_floats, 1e15)), 1, kMaxChunks);
  if (options.max_chunks > 0) limit_ = std::min(limit_, options.max_chunks);
}

void Finals::offer(Plan plan, std::vector<SwitchChoice> switches) {
  auto priced = std::make_shared<PricedPlan>(plan, topology_, options_);
  plan.num_chunks = priced->best_chunks(size_, limit_);
  priced->set_num_chunks(plan.num_chunks);
  const Terms terms = priced->cost(size_);
  best_.considered.push_back(
      {plan.algorithm == "gentree+" ? plan_words(switches) : plan.algorithm, plan.num_chunks, terms});
  if (terms.total() >= least_) return;
  least_ = terms.total();
  best_.plan = std::move(plan);
  best_.switches = std::move(switches);
  best_.priced = std::move(priced);
}

TreePlan Finals::take() {
  std::stable_sort(best_.considered.begin(), best_.considered.end(),
                   [](const PlanCandidate& a, const PlanCandidate& b) { return a.seconds() < b.seconds(); });
  return std::move(best_);
}

}  // namespace gar::plus
