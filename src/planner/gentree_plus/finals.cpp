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
  most_chunks_ = most_chunks(topology, size_floats, options);
  limit_ = options.max_chunks > 0 ? std::min(most_chunks_, options.max_chunks) : most_chunks_;
}

Finals::Offer Finals::priced(Plan plan, std::vector<SwitchChoice> switches) const {
  if (plan.collective != options_.collective) plan = as_collective(plan, options_.collective);
  Offer out{std::move(plan), std::move(switches), nullptr, {}};
  out.priced = std::make_shared<PricedPlan>(out.plan, topology_, options_);
  out.plan.num_chunks = out.priced->best_chunks(size_, limit_);
  out.priced->set_num_chunks(out.plan.num_chunks);
  out.terms = out.priced->cost(size_);
  return out;
}

void Finals::take(Offer offer) {
  best_.considered.push_back({offer.plan.algorithm == "gentree+" ? plan_words(offer.switches) : offer.plan.algorithm,
                              offer.plan.num_chunks, offer.terms});
  if (offer.terms.total() >= least_) return;
  least_ = offer.terms.total();
  best_.plan = std::move(offer.plan);
  best_.switches = std::move(offer.switches);
  best_.priced = std::move(offer.priced);
}

void Finals::offer(Plan plan, std::vector<SwitchChoice> switches) {
  take(priced(std::move(plan), std::move(switches)));
}

void Finals::offer_if_better(Plan plan, std::vector<SwitchChoice> switches) {
  Offer offer = priced(std::move(plan), std::move(switches));
  if (offer.terms.total() < least_) take(std::move(offer));
}

bool Finals::is_short() const { return best_.priced != nullptr && best_.priced->best_chunks(size_, most_chunks_) == 1; }

TreePlan Finals::take() {
  std::stable_sort(best_.considered.begin(), best_.considered.end(),
                   [](const PlanCandidate& a, const PlanCandidate& b) { return a.seconds() < b.seconds(); });
  return std::move(best_);
}

}  // namespace gar::plus
