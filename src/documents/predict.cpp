// Predictions as documents.
#include <cmath>

#include "documents/json.hpp"
#include "gar/algorithms.hpp"
#include "gar/documents.hpp"
#include "gar/limits.hpp"

namespace gar {
namespace {

using documents::Json;

Json flip_json(const std::optional<Flip>& flip, const char* unit, double scale) {
  if (!flip) return nullptr;
  Json out;
  out[unit] = to_whole(flip->at * scale);
  out["algorithm"] = flip->algorithm;
  return out;
}

Json flips_json(const Flips& flips, const char* unit, double scale) {
  Json out;
  out["below"] = flip_json(flips.below, unit, scale);
  out["above"] = flip_json(flips.above, unit, scale);
  return out;
}

Json rank_flips_json(const Flips& flips) {
  Json out = flips_json(flips, "ranks", 1);
  out["best"] = flips.around;
  out["exceptions"] = Json::array();
  for (const Flip& flip : flips.exceptions) out["exceptions"].push_back(flip_json(flip, "ranks", 1));
  return out;
}

Json row_json(const PredictRow& row, const std::optional<SizeCorrection>& correction) {
  Json out;
  out["algorithm"] = row.algorithm();
  out["seconds"] = row.seconds();
  if (correction) {
    out["correction"] = correction->factor.value;
    out["corrected_seconds"] = row.seconds() * correction->factor.value;
  }
  out["terms"] = documents::terms_json(row.terms);
  out["whole_seconds"] = row.whole.total();
  out["chunks"] = row.is_chunked ? Json(row.num_chunks) : Json(nullptr);
  out["chunked_seconds"] = row.is_chunked ? Json(row.chunked.total()) : Json(nullptr);
  if (is_tree_planner(row.spec)) out["plan"] = row.words;
  if (row.num_considered > 1) {
    out["considered"] = row.num_considered;
    out["complete"] = row.is_complete;
  }
  return out;
}

}  // namespace

std::string predict_document(const Topology& topology, const VectorSize& size, const ModelOptions& options,
                             const PredictAnswer& answer, const std::optional<SizeCorrection>& correction) {
  Json document = documents::begin("gar.predict/1");
  document["topology"] = topology.name();
  document["num_ranks"] = topology.num_servers();
  document["count"] = size.count;
  document["dtype"] = to_string(size.dtype);
  document["model"] = documents::name_of(options.kind);
  document["collective"] = to_string(options.collective);
  document["results"] = Json::array();
  for (const PredictRow& row : answer.results) document["results"].push_back(row_json(row, correction));
  document["best"] = answer.results.front().algorithm();
  const bool has_other = answer.results.size() > 1;
  document["runner_up"] = has_other ? Json(answer.results[1].algorithm()) : Json(nullptr);
  const double best = answer.results.front().best_seconds();
  document["margin"] = has_other && best > 0 ? Json(answer.results[1].best_seconds() / best - 1) : Json(nullptr);
  document["lower_bound_seconds"] = answer.bound.seconds();
  document["lower_bound_sequential_seconds"] = answer.bound.sequential_seconds();
  const double elements_per_float = 4.0 / static_cast<double>(size_of(size.dtype));
  Json& flips = document["flips"];
  flips["among"] = "flat algorithms";
  flips["best"] = answer.flat_best.empty() ? Json(nullptr) : Json(answer.flat_best);
  flips["count"] = flips_json(answer.size_flips, "count", elements_per_float);
  flips["ranks"] = answer.rank_flips ? rank_flips_json(*answer.rank_flips) : Json(nullptr);
  return documents::text_of(document);
}

}  // namespace gar
