// How good are predictions and choices on measurements that were not fitted?
//
// Regret is what counts in the end: the time of the algorithm that a model picks, over that of the fastest one that was
// measured, less 1. (alpha,beta,gamma) gets its own fit of the same measurements; lending it GenModel's parameters
// would make it look worse than it is. So does GenModel without mu, which stands next to GenModel where there is a mu.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "fit/estimate.hpp"
#include "fit/selection.hpp"
#include "gar/errors.hpp"
#include "gar/fit.hpp"
#include "gar/stats.hpp"

namespace gar {

namespace {

/// A number of ranks and a size: the situation in which somebody chooses.
using CaseKey = std::pair<std::vector<std::int64_t>, double>;

CaseKey key_of(const ValidationCell& cell) { return {cell.observation->servers, cell.observation->size_floats}; }

void set_regrets(std::vector<double> regrets, ValidationScore& score) {
  score.num_cases = static_cast<std::int64_t>(regrets.size());
  if (regrets.empty()) return;
  std::sort(regrets.begin(), regrets.end());
  score.median_regret = quantile(regrets, 0.5);
  score.p95_regret = quantile(regrets, 0.95);
  score.max_regret = quantile(regrets, 1);
}

/// Of each case the fastest that was measured; a case with one algorithm alone is no choice.
std::map<CaseKey, double> fastest_of(const std::vector<ValidationCell>& cells) {
  std::map<CaseKey, std::pair<int, double>> all;
  for (const ValidationCell& cell : cells) {
    auto& [count, least] = all.try_emplace(key_of(cell), 0, std::numeric_limits<double>::infinity()).first->second;
    if (!cell.observation->is_native) ++count;
    least = std::min(least, cell.measured_s);
  }
  std::map<CaseKey, double> out;
  for (const auto& [key, value] : all) {
    if (value.first > 1) out[key] = value.second;
  }
  return out;
}

template <class Predicted>
ValidationScore score_of(const std::string& name, const std::vector<ValidationCell>& cells,
                         const std::map<CaseKey, double>& fastest, Predicted predicted) {
  ValidationScore out;
  out.name = name;
  std::vector<double> errors;
  std::map<CaseKey, const ValidationCell*> choices;
  for (const ValidationCell& cell : cells) {
    if (cell.observation->is_native) continue;
    errors.push_back(std::abs(predicted(cell) / cell.measured_s - 1));
    const ValidationCell*& choice = choices[key_of(cell)];
    if (choice == nullptr || predicted(cell) < predicted(*choice)) choice = &cell;
  }
  out.num_cells = static_cast<std::int64_t>(errors.size());
  if (errors.empty()) return out;
  std::sort(errors.begin(), errors.end());
  out.median_error = quantile(errors, 0.5);
  out.p95_error = quantile(errors, 0.95);
  out.max_error = quantile(errors, 1);
  std::vector<double> regrets;
  for (const auto& [key, least] : fastest) regrets.push_back(choices.at(key)->measured_s / least - 1);
  set_regrets(std::move(regrets), out);
  return out;
}

std::optional<Parameters> fit_abc(const Profile& profile, const std::vector<Observation>& observations) {
  const std::vector<const Observation*> fitted = select(observations, place_of(profile)).admitted;
  if (static_cast<int>(fitted.size()) < 6) return std::nullopt;
  Problem problem(fitted, place_of(profile));
  EstimateOptions options;
  options.num_bootstrap = 0;
  options.kind = ModelKind::kAbc;
  return estimate(problem, options).solution.parameters;
}

/// The same measurements without mu.
std::optional<Profile> fit_paper(const Profile& profile, const std::vector<Observation>& observations) {
  const bool has_fitted =
      std::any_of(observations.begin(), observations.end(), [](const Observation& one) { return one.is_fitted; });
  if (profile.mu.value <= 0 || !has_fitted) return std::nullopt;
  const Measurements measured{.topology = profile.topology,
                              .cores = profile.cores,
                              .observations = observations,
                              .links = profile.links,
                              .provenance = {},
                              .is_memory = profile.is_memory,
                              .access = profile.access};
  return fit(measured, {.num_bootstrap = 0, .fit_mu = false});
}

constexpr double kFirstClass = 8;   // bytes
constexpr double kClassFactor = 8;  // from class to class

/// The shortest vector of a size's class.
double class_begin(double bytes) {
  double out = kFirstClass;
  while (out > bytes) out /= kClassFactor;
  while (out * kClassFactor <= bytes) out *= kClassFactor;
  return out;
}

std::string library_name(const Profile& profile) {
  return profile.provenance.mpi.empty() ? "the library's default" : profile.provenance.mpi + "'s default";
}

std::vector<ValidationScore> scores_of(const std::vector<ValidationCell>& cells, const std::string& library_name) {
  const std::map<CaseKey, double> fastest = fastest_of(cells);
  const auto genmodel = score_of("GenModel", cells, fastest, [](const ValidationCell& c) { return c.genmodel_s; });
  if (genmodel.num_cells == 0)
    throw InvalidArgument("there is no AllReduce that was held out, hence nothing to validate with");
  std::vector<ValidationScore> out{genmodel};
  const bool has_paper = std::any_of(cells.begin(), cells.end(), [](const auto& c) { return c.paper_s >= 0; });
  if (has_paper) {
    out.push_back(score_of("GenModel without mu", cells, fastest, [](const ValidationCell& c) { return c.paper_s; }));
  }
  out.push_back(score_of("(alpha,beta,gamma)", cells, fastest, [](const ValidationCell& c) { return c.abc_s; }));
  ValidationScore library;
  library.name = library_name;
  std::vector<double> regrets;
  for (const ValidationCell& cell : cells) {
    if (!cell.observation->is_native) continue;
    ++library.num_cells;
    const auto known = fastest.find(key_of(cell));
    if (known != fastest.end()) regrets.push_back(cell.measured_s / known->second - 1);
  }
  if (library.num_cells == 0) return out;
  set_regrets(regrets, library);
  out.push_back(library);
  return out;
}

}  // namespace

std::vector<ValidationCell> validation_cells(const Profile& profile, const std::vector<Observation>& observations) {
  const std::optional<Parameters> abc = fit_abc(profile, observations);
  const Parameters genmodel = parameters_of(profile);
  const Parameters without = known_to(ModelKind::kAbc, genmodel);
  const std::optional<Profile> paper = fit_paper(profile, observations);
  const Place place = place_of(profile);
  std::vector<ValidationCell> out;
  for (const Observation& one : observations) {
    if (one.is_fitted || one.kind != ObservationKind::kCollective || one.collective != Collective::kAllReduce) continue;
    if (one.seconds.empty()) continue;
    ValidationCell cell{&one, median_seconds(one)};
    if (!one.is_native) {
      const Features features = features_of(one, place);
      cell.genmodel_s = corrected(profile, seconds_of(features, genmodel), 4 * one.size_floats);
      cell.abc_s = seconds_of(features, abc ? *abc : without);
      if (paper) cell.paper_s = corrected(*paper, seconds_of(features, parameters_of(*paper)), 4 * one.size_floats);
    }
    out.push_back(cell);
  }
  return out;
}

std::vector<ValidationScore> validate(const Profile& profile, const std::vector<Observation>& observations) {
  return scores_of(validation_cells(profile, observations), library_name(profile));
}

std::vector<ValidationScore> validate_by_size(const Profile& profile, const std::vector<Observation>& observations) {
  std::map<double, std::vector<ValidationCell>> classes;
  for (const ValidationCell& cell : validation_cells(profile, observations)) {
    classes[class_begin(4 * cell.observation->size_floats)].push_back(cell);
  }
  std::vector<ValidationScore> out;
  for (const auto& [from, cells] : classes) {
    const bool has_ours = std::any_of(cells.begin(), cells.end(), [](const auto& c) { return c.genmodel_s >= 0; });
    if (!has_ours) continue;
    for (ValidationScore& score : scores_of(cells, library_name(profile))) {
      score.from_bytes = from;
      score.to_bytes = from * kClassFactor;
      out.push_back(std::move(score));
    }
  }
  return out;
}

}  // namespace gar
