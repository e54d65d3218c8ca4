// What algorithms cost: at one size with words, over sizes, and over sizes and numbers of servers.
#include "gar/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "ask/question.hpp"
#include "documents/json.hpp"
#include "gar/documents.hpp"
#include "gar/errors.hpp"
#include "gar/explain.hpp"
#include "gar/explain_topology.hpp"
#include "gar/planner.hpp"

namespace gar::ask {
namespace {

using documents::Json;

/// One algorithm at one size, in short.
Json point_json(const std::string& algorithm, std::int64_t num_chunks, const Terms& terms) {
  return {{"algorithm", algorithm},
          {"chunks", num_chunks},
          {"seconds", terms.total()},
          {"terms", documents::terms_json(terms)}};
}

/// What a page says about an answer, so that it says the same as `gar predict`.
Json words_json(const Topology& topology, const PredictAnswer& answer) {
  const PredictRow& winner = answer.results.front();
  const double best = winner.best_seconds();
  Json out;
  out["best"] = is_tree_planner(winner.spec) ? winner.words : "";
  out["seconds"] = format_seconds(best);
  out["best_seconds"] = best;
  out["bound_seconds"] = format_seconds(answer.bound.seconds());
  out["bound"] = answer.bound.binding();
  out["times_bound"] = answer.bound.seconds() > 0 ? Json(best / answer.bound.seconds()) : Json(nullptr);
  const PredictRow* second = rival_of(answer.results);
  out["why"] =
      second != nullptr && best > 0 ? Json(winner_words(contestant_of(winner), contestant_of(*second))) : Json(nullptr);
  out["runner_up"] = second != nullptr ? Json(second->algorithm()) : Json(nullptr);
  const bool has_flips = !answer.flat_best.empty();
  out["by_size"] = has_flips ? Json(size_words(answer.size_flips, answer.flat_best)) : Json(nullptr);
  out["by_servers"] = has_flips ? Json(rank_words(topology, answer)) : Json(nullptr);
  out["parameters"] = parameter_words(topology);
  out["rows"] = Json::array();  // as they are compared: in chunks where that is faster
  for (const PredictRow& row : answer.results) {
    out["rows"].push_back(point_json(row.algorithm(), row.best_chunks(), row.best_terms()));
  }
  return out;
}

/// Prices algorithms at several sizes of one network.
class Curve {
 public:
  Curve(const Topology& topology, const std::vector<AlgorithmSpec>& algorithms, const ModelOptions& model)
      : topology_(topology), model_(model) {
    std::vector<AlgorithmSpec> flat;
    for (const AlgorithmSpec& spec : algorithms) (is_tree_planner(spec) ? trees_ : flat).push_back(spec);
    if (!flat.empty()) flat_.emplace(topology, flat, model);
  }

  /// The asked algorithm ("hcps") with what it came to ("hcps:8x3"), best first.
  [[nodiscard]] Json at(const VectorSize& size) {
    std::vector<std::pair<double, Json>> rows;
    if (flat_) {
      for (const Prediction& p : flat_->at(size.floats())) {
        rows.emplace_back(p.seconds(), point_json(p.algorithm(), 1, p.terms));
        rows.back().second["asked"] = p.spec.name;
      }
    }
    for (const AlgorithmSpec& spec : trees_) {
      const PlanAnswer planned =
          plan({.topology = topology_, .size_floats = size.floats(), .algorithms = {spec}, .model = model_});
      rows.emplace_back(planned.seconds(), point_json(to_string(spec), planned.plan.num_chunks, planned.terms));
      rows.back().second["asked"] = spec.name;
      rows.back().second["plan"] = plan_words(planned.switches);
    }
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    Json out = Json::array();
    for (auto& [seconds, row] : rows) out.push_back(std::move(row));
    return out;
  }

 private:
  const Topology& topology_;
  ModelOptions model_;
  std::vector<AlgorithmSpec> trees_;
  std::optional<Predictor> flat_;
};

Json size_json(const VectorSize& size) { return {{"count", size.count}, {"bytes", size.bytes}}; }

/// What an MPI library takes when nobody has told it otherwise. Both rules are those of its documentation and look at
/// the size alone, as long as the operation commutes and there are more elements than ranks.
std::string library_default(std::string_view library, std::int64_t bytes) {
  constexpr std::int64_t kOpenMpiShort = 10'000;
  constexpr std::int64_t kMpichShort = 2048;
  if (library == "openmpi") return bytes < kOpenMpiShort ? "recursive-doubling" : "ring";
  if (library == "mpich") return bytes <= kMpichShort ? "recursive-doubling" : "rhd";
  throw UsageError(fmt::format("library '{}': expected openmpi or mpich", escaped(library)));
}

}  // namespace

std::string ask_predict(const Question& question) {
  const VectorSize size = question.size();
  const Network network = question.network();
  const ModelOptions model = question.model();
  const PredictAnswer found =
      predict({network.topology, size.floats(), question.algorithms("all"), model, !question.flag("quick")});
  std::optional<SizeCorrection> correction;
  if (network.profile && model.kind == ModelKind::kGenModel) {
    const SizeCorrection* known = correction_of(*network.profile, static_cast<double>(size.bytes));
    if (known != nullptr) correction = *known;
  }
  std::string out = predict_document(network.topology, size, model, found, correction);
  if (!question.flag("words")) return out;
  Json document = Json::parse(out);
  document["words"] = words_json(network.topology, found);
  return documents::text_of(document);
}

std::string ask_curve(const Question& question) {
  const std::vector<VectorSize> sizes = question.sizes();
  const Network network = question.network();
  const ModelOptions model = question.model();
  Curve curve(network.topology, question.algorithms("all"), model);
  Json document = documents::begin("gar.curve/1");
  document["topology"] = network.topology.name();
  document["num_ranks"] = network.topology.num_servers();
  document["rows"] = Json::array();
  for (const VectorSize& size : sizes) {
    Json row = size_json(size);
    const LowerBound bound = lower_bound(network.topology, size.floats(), model.collective, model.kind);
    row["lower_bound_seconds"] = bound.seconds();
    row["results"] = curve.at(size);
    document["rows"].push_back(std::move(row));
  }
  return documents::text_of(document);
}

std::string ask_heat(const Question& question) {
  constexpr std::int64_t kMostServers = 1 << 20;
  const std::vector<VectorSize> sizes = question.sizes();
  const Network network = question.network();
  const std::string library = question.needed_text("library", "openmpi or mpich");
  const std::vector<AlgorithmSpec> algorithms = question.algorithms("all");
  const std::int64_t per_switch = question.whole("servers_per_switch", 0, 0, kMostServers);
  std::optional<Topology> varied;
  if (per_switch > 0) {
    varied = with_servers_per_switch(network.topology, per_switch);
    if (!varied)
      throw InvalidArgument("servers_per_switch: the lowest switches of this network differ, so they cannot be varied");
  }
  const Topology& topology = varied ? *varied : network.topology;
  Json document = documents::begin("gar.heat/1");
  document["num_ranks"] = topology.num_servers();
  document["servers_per_switch"] = servers_per_switch(topology);
  document["library"] = library;
  document["rows"] = Json::array();
  std::vector<AlgorithmSpec> defaults;
  for (const VectorSize& size : sizes) {
    const AlgorithmSpec spec = parse_algorithm(library_default(library, size.bytes));
    if (std::none_of(defaults.begin(), defaults.end(), [&](const AlgorithmSpec& d) { return d.name == spec.name; }))
      defaults.push_back(spec);
  }
  Curve curve(topology, algorithms, question.model());
  Predictor theirs(topology, defaults, question.model());
  for (const VectorSize& size : sizes) {
    Json row = size_json(size);
    const Json best = curve.at(size).front();
    const std::string name = library_default(library, size.bytes);
    const std::vector<Prediction> prices = theirs.at(size.floats());
    const auto found =
        std::find_if(prices.begin(), prices.end(), [&](const Prediction& p) { return p.spec.name == name; });
    row["best"] = best["algorithm"];
    row["best_seconds"] = best["seconds"];
    row["default"] = name;
    row["default_seconds"] = found->seconds();
    const double seconds = best["seconds"].get<double>();
    row["regret"] = seconds > 0 ? Json(std::max(0.0, found->seconds() / seconds - 1)) : Json(nullptr);
    document["rows"].push_back(std::move(row));
  }
  return documents::text_of(document);
}

}  // namespace gar::ask
