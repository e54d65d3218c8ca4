// Fits, profiles and diagnoses as documents.
#include "gar/profile.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "documents/json.hpp"
#include "gar/documents.hpp"
#include "gar/explain_profile.hpp"
#include "gar/profile_io.hpp"

namespace gar {
namespace {

using documents::Json;
using documents::or_null;

/// The profile as its file says it.
Json file_json(const Profile& profile) {
  std::stringstream text;
  write_profile(profile, text);
  return Json::parse(text);
}

/// {"value", "low", "high", "identified"}; an interval without an end has null there.
Json estimate_json(const Estimate& estimate) {
  Json out;
  out["value"] = estimate.value;
  out["low"] = estimate.low;
  out["high"] = std::isinf(estimate.high) ? Json(nullptr) : Json(estimate.high);
  out["identified"] = estimate.is_identified;
  return out;
}

/// Says "identified" of every estimate, which a file says only where it is not so.
void complete_estimates(Json& value) {
  if (value.is_object() && value.contains("value") && value.contains("low") && !value.contains("identified"))
    value["identified"] = true;
  if (!value.is_structured()) return;
  for (Json& item : value) complete_estimates(item);
}

/// {"count", "median_error", "p95_error"}; the errors of nothing are null.
Json errors_json(const std::vector<Residual>& residuals) {
  const ResidualSummary summary = summarise(residuals);
  Json out;
  out["count"] = residuals.size();
  out["median_error"] = residuals.empty() ? Json(nullptr) : Json(summary.median_error);
  out["p95_error"] = residuals.empty() ? Json(nullptr) : Json(summary.p95_error);
  return out;
}

/// All of them together, the network and reductions by themselves, and what is furthest off.
Json residuals_json(const std::vector<Residual>& residuals) {
  const ResidualSummary summary = summarise(residuals);
  const ResidualParts parts = parts_of(residuals);
  Json out = errors_json(residuals);
  out["network"] = errors_json(parts.network);
  out["reductions"] = errors_json(parts.reductions);
  out["worst"] = Json::array();
  for (const Residual& residual : summary.worst) {
    Json row;
    row["what"] = residual.what;
    row["measured_s"] = residual.measured_s;
    row["fitted_s"] = residual.fitted_s;
    row["weight"] = residual.weight;
    out["worst"].push_back(std::move(row));
  }
  return out;
}

Json incast_json(const IncastPoint& point) {
  return {{"level", point.level},
          {"ranks", point.num_ranks},
          {"children", point.num_children},
          {"ranks_per_child", point.per_child},
          {"size_floats", point.size_floats},
          {"mesh_seconds", point.mesh_s},
          {"shift_seconds", or_null(point.shift_s)},
          {"admitted_seconds", or_null(point.admitted_s)},
          {"mesh_retransmits", or_null(point.mesh_retransmits)},
          {"shift_retransmits", or_null(point.shift_retransmits)},
          {"mesh_pause_frames", or_null(point.mesh_pauses)},
          {"shift_pause_frames", or_null(point.shift_pauses)}};
}

Json cell_json(const ValidationCell& cell) {
  Json out{{"ranks", cell.observation->servers.size()},      {"size_floats", cell.observation->size_floats},
           {"algorithm", algorithm_name(*cell.observation)}, {"seconds", cell.measured_s},
           {"predicted_seconds", or_null(cell.genmodel_s)},  {"abc_seconds", or_null(cell.abc_s)}};
  if (cell.paper_s >= 0) out["without_mu_seconds"] = cell.paper_s;
  return out;
}

}  // namespace

std::string fit_document(const FitReport& report) {
  Json document = documents::begin("gar.fit/1");
  document["profile"] = file_json(report.profile);
  document["incast_curve"] = Json::array();
  for (const IncastPoint& point : incast_curve(report.measurements)) {
    document["incast_curve"].push_back(incast_json(point));
  }
  document["validation_cells"] = Json::array();
  for (const ValidationCell& cell : validation_cells(report)) document["validation_cells"].push_back(cell_json(cell));
  document["residuals"] = residuals_json(report.profile.residuals);
  return documents::text_of(document);
}

std::string profile_document(const Profile& profile, const std::string& file) {
  Json document = documents::begin("gar.profile-show/1");
  document["file"] = file;
  document["topology"] = profile.topology.name();
  document["num_servers"] = profile.topology.num_servers();
  // The file itself, but for what is long.
  Json fields = file_json(profile);
  for (const char* field : {"schema", "gar_version", "topology", "residuals"}) fields.erase(field);
  complete_estimates(fields);
  document.update(fields);
  for (std::size_t h = 0; h < profile.levels.size(); ++h) {
    const LevelProfile& level = profile.levels[h];
    document["levels"][h]["bits_per_second"] = level.beta.value > 0 ? Json(32 / level.beta.value) : Json(nullptr);
    document["levels"][h]["incast_words"] = incast_words(level);
  }
  document["residuals"] = residuals_json(profile.residuals);
  return documents::text_of(document);
}

std::string profile_diff_document(const std::vector<ProfileChange>& changes, const std::string& before,
                                  const std::string& after) {
  Json document = documents::begin("gar.profile-diff/1");
  document["before"] = before;
  document["after"] = after;
  document["num_significant"] =
      std::count_if(changes.begin(), changes.end(), [](const ProfileChange& c) { return c.is_significant; });
  document["changes"] = Json::array();
  for (const ProfileChange& change : changes) {
    Json row;
    row["what"] = change.what;
    row["significant"] = change.is_significant;
    row["before"] = estimate_json(change.before);
    row["after"] = estimate_json(change.after);
    row["words"] = change.words;
    document["changes"].push_back(std::move(row));
  }
  return documents::text_of(document);
}

std::string diagnose_document(const DiagnoseAnswer& answer) {
  const Diagnosis& diagnosis = answer.diagnosis;
  Json document = documents::begin("gar.diagnose/1");
  document["profile"] = answer.profile_file;
  document["topology"] = nullptr;
  document["results"] = answer.results_file;
  document["format"] = answer.results.format;
  document["ranks"] = answer.num_ranks;
  document["tolerance"] = diagnosis.tolerance;
  document["rows"] = Json::array();
  for (std::size_t i = 0; i < answer.observations.size(); ++i) {
    const Residual& residual = diagnosis.rows[i];
    const ResultRow& row = answer.results.rows[i];
    document["rows"].push_back({{"bytes", row.bytes},
                                {"label", row.label},
                                {"algorithm", to_string(answer.observations[i].algorithm)},
                                {"is_assumed", row.algorithm.empty()},
                                {"measured_seconds", residual.measured_s},
                                {"expected_seconds", residual.fitted_s},
                                {"ratio", residual.measured_s / residual.fitted_s},
                                {"tolerance", diagnosis.tolerances[i]},
                                {"limit_seconds", nullptr},
                                {"verdict", to_string(verdict_of(diagnosis, i))}});
  }
  document["is_judged"] = diagnosis.is_judged;
  document["is_normal"] = diagnosis.is_normal;
  document["culprit"] = diagnosis.culprit;
  document["factor"] = diagnosis.factor;
  document["explained"] = diagnosis.explained;
  document["words"] = diagnosis.words;
  return documents::text_of(document);
}

std::string diagnose_limit_document(const DiagnoseLimitAnswer& answer) {
  const LimitDiagnosis& diagnosis = answer.diagnosis;
  Json document = documents::begin("gar.diagnose/1");
  document["profile"] = nullptr;
  document["topology"] = answer.topology;
  document["results"] = answer.results_file;
  document["format"] = answer.results.format;
  document["ranks"] = answer.num_ranks;
  document["tolerance"] = 1 / diagnosis.least_share - 1;
  document["rows"] = Json::array();
  for (std::size_t i = 0; i < diagnosis.rows.size(); ++i) {
    const LimitRow& row = diagnosis.rows[i];
    const ResultRow& result = answer.results.rows[i];
    document["rows"].push_back({{"bytes", row.bytes},
                                {"label", result.label},
                                {"algorithm", result.algorithm},
                                {"is_assumed", result.algorithm.empty()},
                                {"measured_seconds", row.measured_s},
                                {"expected_seconds", row.expected_s},
                                {"ratio", row.measured_s / row.expected_s},
                                {"tolerance", 1 / diagnosis.least_share - 1},
                                {"limit_seconds", row.limit_s},
                                {"verdict", to_string(row.verdict)}});
  }
  document["is_judged"] = diagnosis.is_judged;
  document["is_normal"] = diagnosis.is_normal;
  document["culprit"] = "";
  document["factor"] = 1;
  document["explained"] = 0;
  document["words"] = diagnosis.words;
  return documents::text_of(document);
}

}  // namespace gar
