// Plans, decision tables and proofs as documents.
#include <vector>

#include "documents/json.hpp"
#include "gar/documents.hpp"
#include "gar/plan_io.hpp"

namespace gar {
namespace {

using documents::Json;

Json candidates_json(const SwitchChoice& choice) {
  Json out = Json::array();
  for (const SwitchCandidate& candidate : choice.candidates) {
    Json one;
    one["algorithm"] = candidate.algorithm;
    one["factors"] = candidate.factors;
    if (candidate.is_uneven) one["uneven"] = true;
    one["seconds"] = candidate.terms.total();
    one["terms"] = documents::terms_json(candidate.terms);
    out.push_back(one);
  }
  return out;
}

Json explanation_json(const PlanRequest& request, const PlanAnswer& answer) {
  Json out;
  out["switches"] = Json::array();
  for (const SwitchChoice& choice : answer.switches) {
    Json one;
    one["name"] = choice.name;
    one["candidates"] = candidates_json(choice);
    one["rearrangement"] = Json::array();
    for (const Rearrangement& rearrangement : choice.rearrangements)
      one["rearrangement"].push_back(rearrangement.reason);
    out["switches"].push_back(one);
  }
  out["compared"] = Json::array();
  for (const std::vector<PlanCandidate>* list : {&answer.asked, &answer.considered}) {
    for (const PlanCandidate& candidate : *list) {
      out["compared"].push_back(
          {{"plan", candidate.algorithm}, {"chunks", candidate.num_chunks}, {"seconds", candidate.seconds()}});
    }
  }
  out["busiest"] = answer.plan.num_chunks > 1 ? answer.priced->busiest().name : "";
  if (request.policy == Policy::kRuntime) out["policy"] = choice_words(answer, request.topology);
  out["lower_bound"] = {{"alpha", answer.bound.alpha},
                        {"bandwidth", answer.bound.bandwidth},
                        {"calculation", answer.bound.calculation},
                        {"binding", answer.bound.binding()}};
  return out;
}

}  // namespace

void write_plan_document(const PlanRequest& request, const PlanAnswer& answer, const std::vector<StageCost>& stages,
                         PlanDetail detail, std::ostream& out) {
  Json switches = Json::array();
  for (const SwitchChoice& choice : answer.switches) switches.push_back(documents::switch_json(choice));
  Json list = Json::array();
  for (const StageCost& stage : stages) list.push_back(documents::stage_json(stage, request.size_floats));
  using documents::line_of;
  std::vector<PlanNote> notes{{"topology", line_of(request.topology.name())},
                              {"predicted_seconds", line_of(answer.seconds())},
                              {"terms", line_of(documents::terms_json(answer.terms))},
                              {"lower_bound_seconds", line_of(answer.bound.seconds())},
                              {"switches", line_of(switches)},
                              {"stages", line_of(list)}};
  if (detail == PlanDetail::kExplained) notes.push_back({"explain", line_of(explanation_json(request, answer))});
  write_plan(answer.plan, out, notes);
}

std::string plan_table_document(const Topology& topology, DataType dtype, const std::vector<DecisionRow>& rows) {
  Json document = documents::begin("gar.plan-table/1");
  document["topology"] = topology.name();
  document["num_ranks"] = topology.num_servers();
  document["dtype"] = to_string(dtype);
  document["rows"] = Json::array();
  for (const DecisionRow& row : rows) {
    Json one;
    one["from_count"] = row.first.count;
    one["to_count"] = row.last.count;
    one["algorithm"] = to_string(row.first.spec);
    one["switches"] = Json::array();
    for (const SwitchChoice& choice : row.first.switches) one["switches"].push_back(documents::choice_json(choice));
    one["chunks_from"] = row.first.num_chunks;
    one["chunks_to"] = row.last.num_chunks;
    one["seconds_from"] = row.first.terms.total();
    one["seconds_to"] = row.last.terms.total();
    document["rows"].push_back(one);
  }
  return documents::text_of(document);
}

std::string verify_document(const Plan& plan, const VerifyReport& report, const std::string& file) {
  const auto in_vectors = [&](std::int64_t units) {
    return static_cast<double>(units) / static_cast<double>(plan.num_units);
  };
  Json document = documents::begin("gar.verify/1");
  document["file"] = file;
  document["algorithm"] = plan.algorithm;
  document["num_ranks"] = plan.num_ranks;
  document["ok"] = report.ok;
  document["problem"] = report.ok ? Json(nullptr) : Json(report.problem);
  document["exact"] = report.is_exact;
  document["seed"] = report.is_exact ? Json(nullptr) : Json(to_text(report.seed));
  document["error_probability"] = report.error_probability;
  document["num_steps"] = report.num_steps;
  document["num_messages"] = report.num_messages;
  document["volume_vectors"] = in_vectors(report.volume_units);
  document["max_fan_in"] = report.max_fan_in;
  document["buffer_fraction"] = in_vectors(report.buffer_units);
  document["buffer_rank"] = report.buffer_rank;
  return documents::text_of(document);
}

}  // namespace gar
