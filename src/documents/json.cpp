// What the documents have in common.
#include "documents/json.hpp"

#include "gar/limits.hpp"
#include "gar/version.hpp"

namespace gar::documents {

Json begin(std::string_view schema) {
  Json document;
  document["gar_version"] = version();
  document["schema"] = schema;
  return document;
}

namespace {

/// JSON has no word for them, and nothing that is told should have them.
void check_numbers(const Json& value, const std::string& path) {
  if (value.is_number_float()) require_finite(value.get<double>(), path);
  if (!value.is_structured()) return;
  for (const auto& [key, item] : value.items()) check_numbers(item, path.empty() ? key : path + "." + key);
}

}  // namespace

// Names may come from files in any encoding.
std::string text_of(const Json& document) {
  check_numbers(document, "");
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string line_of(const Json& value) {
  check_numbers(value, "");
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json or_null(double value) { return value < 0 ? Json(nullptr) : Json(value); }

std::string_view name_of(ModelKind kind) {
  return kind == ModelKind::kAbc ? "abc" : kind == ModelKind::kPaper ? "paper" : "genmodel";
}

Json terms_json(const Terms& terms) {
  Json out;
  for (const TermInfo& term : kTerms) {
    if (!term.is_optional || terms.*term.seconds != 0) out[std::string(term.name)] = terms.*term.seconds;
  }
  return out;
}

Json stage_json(const StageCost& stage, double size_floats) {
  const Terms terms = stage.at(size_floats);
  Json out;
  out["half"] =
      stage.is_exchange ? "exchange" : to_string(stage.is_gather ? Collective::kAllGather : Collective::kReduceScatter);
  out["what"] = stage.label;
  out["steps"] = stage.num_steps;
  out["seconds"] = terms.total();
  out["terms"] = terms_json(terms);
  out["fan_in"] = stage.fan_in;
  out["busiest_link"] = stage.link;
  out["senders"] = stage.senders;
  out["incast_threshold"] = stage.incast_threshold;
  out["volume_fraction"] = stage.volume;
  return out;
}

Json choice_json(const SwitchChoice& choice) {
  Json out;
  out["name"] = choice.name;
  out["count"] = choice.count;
  out["algorithm"] = choice.algorithm;
  out["factors"] = choice.factors;
  if (choice.is_uneven) out["uneven"] = true;
  out["rearranged"] = choice.is_rearranged;
  return out;
}

Json switch_json(const SwitchChoice& choice) {
  Json out = choice_json(choice);
  out["seconds"] = choice.seconds();
  out["terms"] = terms_json(choice.terms);
  for (const ChildShare& child : choice.shares) {
    out["shares"].push_back({{"child", child.name}, {"share", child.share}});
  }
  return out;
}

Json what_if_json(const WhatIf& what_if) {
  Json out = Json::array();
  for (const Condition& condition : what_if.conditions) {
    Json one;
    one["kind"] = to_string(condition.kind);
    one["name"] = condition.name;
    if (condition.kind != Condition::Kind::kSlow) {
      one["link"] = condition.up && condition.down ? "uplink" : condition.up ? "up" : "down";
    }
    if (condition.kind != Condition::Kind::kFail) one["value"] = condition.value;
    out.push_back(one);
  }
  if (what_if.jitter > 0) out.push_back({{"kind", "jitter"}, {"value", what_if.jitter}, {"seed", what_if.seed}});
  return out;
}

Json begin_scene(const Scene& scene, std::string_view schema) {
  Json document = begin(schema);
  document["topology"] = scene.topology.name();
  document["num_ranks"] = scene.topology.num_servers();
  document["dtype"] = to_string(scene.size.dtype);
  document["model"] = name_of(scene.model.kind);
  document["barrier"] = scene.barrier;
  document["tolerance"] = scene.tolerance;
  document["what_if"] = what_if_json(scene.what_if);
  return document;
}

}  // namespace gar::documents
