// What the documents have in common: the envelope, costs, and how they become text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gar/model.hpp"
#include "gar/plan.hpp"
#include "gar/planner.hpp"
#include "gar/scene.hpp"

namespace gar::documents {

/// Keeps the order in which fields are added.
using Json = nlohmann::ordered_json;

/// A document with "gar_version" and "schema" in it; `schema` is for example "gar.predict/1".
Json begin(std::string_view schema);
/// The text of a document, with a newline at its end.
std::string text_of(const Json& document);
/// The text of a value on one line.
std::string line_of(const Json& value);

/// The value, or null for the negative numbers that stand for "not known".
Json or_null(double value);
/// "genmodel", "paper", "abc".
std::string_view name_of(ModelKind kind);

/// {"alpha": ..., "beta": ..., "gamma": ..., "delta": ..., "epsilon": ...} in seconds, and "mu" unless it is 0.
Json terms_json(const Terms& terms);
/// A priced stage: half, label, seconds, terms, busiest link.
Json stage_json(const StageCost& stage, double size_floats);
/// What was decided at a switch, without what it costs.
Json choice_json(const SwitchChoice& choice);
/// The same with what it costs.
Json switch_json(const SwitchChoice& choice);
Json what_if_json(const WhatIf& what_if);
/// The fields that all documents about simulations begin with.
Json begin_scene(const Scene& scene, std::string_view schema);

}  // namespace gar::documents
