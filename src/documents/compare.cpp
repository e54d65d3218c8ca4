// Comparisons of predicted with simulated times as documents.
#include "gar/compare.hpp"

#include "documents/json.hpp"
#include "gar/documents.hpp"

namespace gar {
namespace {

using documents::Json;

Json plan_json(const ComparedPlan& plan, std::int64_t count) {
  Json out;
  out["algorithm"] = plan.algorithm;
  out["count"] = count;
  out["chunks"] = plan.num_chunks;
  out["predicted_seconds"] = plan.predicted.total();
  out["simulated_seconds"] = plan.simulated.seconds;
  out["difference"] = plan.difference();
  out["predicted_terms"] = documents::terms_json(plan.predicted);
  out["simulated_terms"] = documents::terms_json(plan.simulated.terms);
  if (plan.without) {
    const double without = plan.without->seconds;
    out["without_seconds"] = without;
    out["without_terms"] = documents::terms_json(plan.without->terms);
    out["slowdown"] = without > 0 ? Json(plan.simulated.seconds / without) : Json(nullptr);
  }
  out["why"] = plan.why;
  return out;
}

}  // namespace

std::string compare_document(const Comparison& comparison) {
  Json document = documents::begin_scene(comparison.scene, "gar.compare/1");
  document["collective"] = to_string(comparison.collective);
  document["complete"] = comparison.is_complete;
  document["results"] = Json::array();
  document["choices"] = Json::array();
  for (const ComparedSize& size : comparison.sizes) {
    for (const ComparedPlan& plan : size.plans) document["results"].push_back(plan_json(plan, size.size.count));
    Json choice;
    choice["count"] = size.size.count;
    choice["model_best"] = size.plans[size.model_best].algorithm;
    choice["simulated_best"] = size.plans.front().algorithm;
    choice["regret"] = size.regret();
    document["choices"].push_back(choice);
  }
  const ComparisonTotals totals = totals_of(comparison.sizes);
  document["mean_regret"] = totals.mean_regret;
  document["max_regret"] = totals.max_regret;
  document["mean_difference"] = totals.mean_error;
  return documents::text_of(document);
}

}  // namespace gar
