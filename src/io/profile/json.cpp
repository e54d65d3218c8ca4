// Profile to a file of schema "gar.profile/2" and back. See docs/formats-profile.md.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "gar/errors.hpp"
#include "gar/limits.hpp"
#include "gar/profile.hpp"
#include "gar/profile_io.hpp"
#include "io/profile/fields.hpp"
#include "io/text_file.hpp"

namespace gar {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMaxProfileBytes = std::int64_t{16} << 20;
constexpr std::string_view kEstimateWords = "an object with value, low and high";
constexpr Incast kIncasts[] = {Incast::kUnknown, Incast::kNone, Incast::kDrift, Incast::kPresent};

/// Fields of a level and of the whole profile that are estimates; those that are not optional are needed.
struct LevelField {
  const char* name;
  Estimate LevelProfile::*estimate;
  double most = kMaxParameter;
};
constexpr LevelField kLevelFields[] = {{"alpha", &LevelProfile::alpha},
                                       {"beta", &LevelProfile::beta},
                                       {"epsilon", &LevelProfile::epsilon},
                                       {"incast_threshold", &LevelProfile::incast_threshold, kMaxThreshold}};

struct ProfileField {
  const char* name;
  Estimate Profile::*estimate;
  bool is_optional = false;  ///< older files do not have it; it is written where it is known
};
constexpr ProfileField kProfileFields[] = {{"gamma", &Profile::gamma},
                                           {"delta", &Profile::delta},
                                           {"mu", &Profile::mu, true},
                                           {"two_beta_plus_gamma", &Profile::two_beta_plus_gamma}};

/// Fields of a score; -1 means that it says nothing.
struct ScoreField {
  const char* name;
  double ValidationScore::*value;
};
constexpr ScoreField kScoreFields[] = {
    {"median_error", &ValidationScore::median_error}, {"p95_error", &ValidationScore::p95_error},
    {"max_error", &ValidationScore::max_error},       {"median_regret", &ValidationScore::median_regret},
    {"p95_regret", &ValidationScore::p95_regret},     {"max_regret", &ValidationScore::max_regret}};

/// The names of a table of fields between others, for JsonPlace::expect_fields.
template <class Table>
std::vector<std::string_view> names_of(std::initializer_list<std::string_view> before, const Table& table,
                                       std::initializer_list<std::string_view> after = {}) {
  std::vector<std::string_view> out(before);
  for (const auto& field : table) out.emplace_back(field.name);
  out.insert(out.end(), after);
  return out;
}

Incast read_incast(const JsonPlace& place) {
  const std::string text = place.text();
  const auto* found =
      std::find_if(std::begin(kIncasts), std::end(kIncasts), [&](Incast incast) { return to_string(incast) == text; });
  if (found == std::end(kIncasts)) place.refuse("\"unknown\", \"none\", \"drift\" or \"present\"");
  return *found;
}

LevelProfile read_level(const JsonPlace& place) {
  place.expect_fields(
      names_of({"name"}, kLevelFields,
               {"incast", "most_senders", "max_senders", "free_epsilon", "free_incast_threshold", "free_incast"}));
  LevelProfile level;
  level.name = place.at("name", "the name of the nodes below these links, for example \"rack\"").text();
  for (const auto& [name, estimate, most] : kLevelFields)
    level.*estimate = read_estimate(place.at(name, kEstimateWords), most);
  level.incast = read_incast(place.at("incast", "\"unknown\", \"none\", \"drift\" or \"present\""));
  if (const auto most = place.find("most_senders")) level.most_senders = most->whole(0, kMaxServers);
  if (const auto most = place.find("max_senders")) level.max_senders = most->whole(0, kMaxServers);
  const auto free_epsilon = place.find("free_epsilon");
  const auto free_threshold = place.find("free_incast_threshold");
  const auto free_incast = place.find("free_incast");
  level.free_epsilon = free_epsilon ? read_estimate(*free_epsilon, kMaxParameter) : level.epsilon;
  level.free_incast_threshold = free_threshold ? read_estimate(*free_threshold, kMaxThreshold) : level.incast_threshold;
  level.free_incast = free_incast ? read_incast(*free_incast) : level.incast;
  return level;
}

SizeCorrection read_correction(const JsonPlace& place) {
  place.expect_fields({"from_bytes", "to_bytes", "factor"});
  SizeCorrection result;
  result.from_bytes = place.at("from_bytes", "a number of at least 0").number();
  result.to_bytes = place.at("to_bytes", "a number above from_bytes").number();
  if (!(result.to_bytes > result.from_bytes))
    place.fail(fmt::format("from_bytes is {} and to_bytes is {}; expected from_bytes below to_bytes", result.from_bytes,
                           result.to_bytes));
  result.factor = read_estimate(place.at("factor", kEstimateWords), kMaxFactor);
  if (result.factor.value < 1 / kMaxFactor)
    place.fail(fmt::format("the factor is {}; expected a number from {:g} to {:g}", result.factor.value, 1 / kMaxFactor,
                           kMaxFactor));
  return result;
}

std::vector<SizeCorrection> read_corrections(const JsonPlace& document) {
  std::vector<SizeCorrection> result;
  const auto list = document.find("corrections");
  if (!list) return result;
  for (const JsonPlace& item : list->items("a list of corrections per size class")) {
    result.push_back(read_correction(item));
    if (result.size() > 1 && result.back().from_bytes < result[result.size() - 2].to_bytes)
      item.fail("begins before the end of the one before it; expected size classes in ascending order");
  }
  return result;
}

std::vector<Residual> read_residuals(const JsonPlace& document) {
  std::vector<Residual> result;
  const auto list = document.find("residuals");
  if (!list) return result;
  for (const JsonPlace& item : list->items("a list of residuals")) {
    item.expect_fields({"what", "measured_s", "fitted_s", "weight"});
    Residual residual;
    residual.what = item.at("what", "a text").text();
    residual.measured_s = item.at("measured_s", "a number above 0, in seconds").number(kLeastSeconds, kMaxSeconds);
    residual.fitted_s = item.at("fitted_s", "a number of at least 0, in seconds").number();
    if (const auto weight = item.find("weight")) residual.weight = weight->number(0, 1);
    result.push_back(std::move(residual));
  }
  return result;
}

std::vector<ValidationScore> read_validation(const JsonPlace& document, const char* name) {
  std::vector<ValidationScore> result;
  const auto list = document.find(name);
  if (!list) return result;
  for (const JsonPlace& item : list->items("a list of scores")) {
    item.expect_fields(names_of({"name", "from_bytes", "to_bytes", "cells", "cases"}, kScoreFields));
    ValidationScore score;
    score.name = item.at("name", "a text, for example \"GenModel\"").text();
    if (const auto from = item.find("from_bytes")) score.from_bytes = from->number();
    if (const auto to = item.find("to_bytes")) score.to_bytes = to->number();
    if (const auto cells = item.find("cells")) score.num_cells = cells->whole(0, std::int64_t{1} << 53);
    if (const auto cases = item.find("cases")) score.num_cases = cases->whole(0, std::int64_t{1} << 53);
    for (const ScoreField& field : kScoreFields) {
      if (const auto found = item.find(field.name)) score.*field.value = found->number();
    }
    result.push_back(std::move(score));
  }
  return result;
}

std::vector<LevelProfile> read_levels(const JsonPlace& document, const Topology& topology) {
  const JsonPlace place = document.at("levels", "a list of levels, from the servers' links upwards");
  std::vector<LevelProfile> result;
  for (const JsonPlace& item : place.items("a list of levels, from the servers' links upwards"))
    result.push_back(read_level(item));
  const int height = topology.height(topology.root());
  if (std::cmp_not_equal(result.size(), height))
    place.fail(fmt::format("has {} levels; expected {}, the levels of links of the topology", result.size(), height));
  return result;
}

Json level_json(const LevelProfile& level) {
  const auto what = [&](const char* parameter) { return fmt::format("{} of level \"{}\"", parameter, level.name); };
  Json result;
  result["name"] = level.name;
  for (const auto& [name, estimate, most] : kLevelFields) result[name] = estimate_json(level.*estimate, what(name));
  result["incast"] = to_string(level.incast);
  result["most_senders"] = level.most_senders;
  if (level.max_senders > 0) result["max_senders"] = level.max_senders;
  // Without admission they are the same, and once is enough.
  if (level.free_epsilon != level.epsilon)
    result["free_epsilon"] = estimate_json(level.free_epsilon, what("free_epsilon"));
  if (level.free_incast_threshold != level.incast_threshold) {
    result["free_incast_threshold"] = estimate_json(level.free_incast_threshold, what("free_incast_threshold"));
  }
  if (level.free_incast != level.incast) result["free_incast"] = to_string(level.free_incast);
  return result;
}

Json residuals_json(const std::vector<Residual>& residuals) {
  Json result = Json::array();
  for (const Residual& residual : residuals) {
    Json item;
    item["what"] = residual.what;
    item["measured_s"] = number_json(residual.measured_s, residual.what);
    item["fitted_s"] = number_json(residual.fitted_s, residual.what);
    if (residual.weight != 1) item["weight"] = number_json(residual.weight, residual.what);
    result.push_back(std::move(item));
  }
  return result;
}

Json validation_json(const std::vector<ValidationScore>& scores) {
  Json result = Json::array();
  for (const ValidationScore& score : scores) {
    Json item;
    item["name"] = score.name;
    if (score.to_bytes > 0) {
      item["from_bytes"] = number_json(score.from_bytes, "from_bytes of a score");
      item["to_bytes"] = number_json(score.to_bytes, "to_bytes of a score");
    }
    item["cells"] = score.num_cells;
    item["cases"] = score.num_cases;
    for (const ScoreField& field : kScoreFields) {
      if (score.*field.value != -1) item[field.name] = number_json(score.*field.value, field.name);
    }
    result.push_back(std::move(item));
  }
  return result;
}

Json corrections_json(const std::vector<SizeCorrection>& corrections) {
  Json result = Json::array();
  for (const SizeCorrection& correction : corrections) {
    Json item;
    item["from_bytes"] = number_json(correction.from_bytes, "from_bytes of a correction");
    item["to_bytes"] = number_json(correction.to_bytes, "to_bytes of a correction");
    item["factor"] = estimate_json(correction.factor, "the factor of a correction");
    result.push_back(std::move(item));
  }
  return result;
}

}  // namespace

Profile parse_profile(std::string_view text, const std::string& source) {
  const nlohmann::json value = parse_json(text, source);
  const JsonPlace document(value, source);
  const std::string_view schema = check_schema(document, kProfileSchemas, "what gar fit -o writes");
  document.expect_fields(names_of(
      {"schema", "gar_version", "topology", "cores", "memory", "access", "levels"}, kProfileFields,
      {"overlap", "links", "corrections", "residuals", "validation", "validation_by_size", "notes", "provenance"}));
  MeasuredAt place = read_place(document, schema);
  Profile profile{.topology = read_embedded_topology(
                      document.at("topology", "a gar.topology/1 document (docs/formats-topology.md)")),
                  .levels = {},
                  .gamma = {},
                  .delta = {},
                  .two_beta_plus_gamma = {},
                  .cores = place.cores,
                  .links = {},
                  .corrections = read_corrections(document),
                  .residuals = read_residuals(document),
                  .validation = read_validation(document, "validation"),
                  .notes = {},
                  .provenance = std::move(place.provenance),
                  .is_memory = place.is_memory,
                  .access = place.access};
  for (const auto& [name, estimate, is_optional] : kProfileFields) {
    if (is_optional && !document.find(name)) continue;
    profile.*estimate = read_estimate(document.at(name, kEstimateWords), 3 * kMaxParameter);
  }
  profile.validation_by_size = read_validation(document, "validation_by_size");
  if (const auto overlap = document.find("overlap")) profile.overlap = read_estimate(*overlap, kMaxFactor);
  profile.levels = read_levels(document, profile.topology);
  profile.links = read_links(document, static_cast<int>(profile.levels.size()));
  if (const auto notes = document.find("notes")) profile.notes = read_texts(*notes);
  return profile;
}

Profile read_profile_file(const std::string& path) {
  return parse_profile(read_text_file(path, kMaxProfileBytes), path);
}

std::variant<Profile, Decisions> read_profile_or_decisions(const std::string& path) {
  const std::string text = read_text_file(path, kMaxProfileBytes);
  if (peek_schema(text).starts_with("gar.decisions/")) return parse_decisions(text, path);
  return parse_profile(text, path);
}

void write_profile(const Profile& profile, std::ostream& out) {
  Json document = begin_document(kProfileSchemas[0], profile.topology,
                                 {profile.cores, profile.is_memory, profile.access, profile.provenance});
  document["levels"] = Json::array();
  for (const LevelProfile& level : profile.levels) document["levels"].push_back(level_json(level));
  for (const auto& [name, estimate, is_optional] : kProfileFields) {
    const Estimate& one = profile.*estimate;
    if (!is_optional || one.is_identified || one.value > 0) document[name] = estimate_json(one, name);
  }
  if (profile.overlap.is_identified) document["overlap"] = estimate_json(profile.overlap, "overlap");
  if (!profile.links.empty()) document["links"] = links_json(profile.links);
  if (!profile.corrections.empty()) document["corrections"] = corrections_json(profile.corrections);
  if (!profile.validation.empty()) document["validation"] = validation_json(profile.validation);
  if (!profile.validation_by_size.empty()) document["validation_by_size"] = validation_json(profile.validation_by_size);
  if (!profile.notes.empty()) document["notes"] = profile.notes;
  if (!profile.residuals.empty()) document["residuals"] = residuals_json(profile.residuals);
  write_json(document, out);
}

}  // namespace gar
