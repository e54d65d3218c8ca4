// How good are predictions and choices on measurements that were not fitted?
//
// Regret is what counts in the end: the time of the algorithm that a model picks, over that of the fastest one that was
// measured, less 1. (alpha,beta,gamma) gets its own fit of the same measurements; lending it GenModel's parameters
// would make it look worse than it is.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "fit/estimate.hpp"
#include "fit/regression.hpp"
#include "gar/errors.hpp"
#include "gar/fit.hpp"

namespace gar {

namespace {

struct Cell {
  const Observation* observation = nullptr;
  double measured = 0;
  double predicted = 0;
};

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

/// A number of ranks and a size: the situation in which somebody chooses.
using CaseKey = std::pair<std::vector<std::int64_t>, double>;

void set_errors(const std::vector<Cell>& cells, ValidationScore& score) {
  std::vector<double> errors;
  for (const Cell& cell : cells) errors.push_back(std::abs(cell.predicted / cell.measured - 1));
  score.num_cells = static_cast<std::int64_t>(errors.size());
  if (errors.empty()) return;
  score.median_error = quantile(errors, 0.5);
  score.p95_error = quantile(errors, 0.95);
  score.max_error = quantile(errors, 1);
}

void set_regrets(const std::vector<double>& regrets, ValidationScore& score) {
  score.num_cases = static_cast<std::int64_t>(regrets.size());
  if (regrets.empty()) return;
  score.median_regret = quantile(regrets, 0.5);
  score.p95_regret = quantile(regrets, 0.95);
  score.max_regret = quantile(regrets, 1);
}

/// Of each case the fastest algorithm that was measured; a case with one alone is no choice.
std::map<CaseKey, double> fastest_of(const std::vector<Cell>& cells) {
  std::map<CaseKey, std::pair<int, double>> all;
  for (const Cell& cell : cells) {
    auto& [count, least] = all.try_emplace({cell.observation->servers, cell.observation->size_floats}, 0,
                                           std::numeric_limits<double>::infinity())
                               .first->second;
    ++count;
    least = std::min(least, cell.measured);
  }
  std::map<CaseKey, double> out;
  for (const auto& [key, value] : all) {
    if (value.first > 1) out[key] = value.second;
  }
  return out;
}

ValidationScore score_of(const std::string& name, const std::vector<Cell>& cells) {
  ValidationScore out;
  out.name = name;
  set_errors(cells, out);
  std::vector<double> regrets;
  for (const auto& [key, least] : fastest_of(cells)) {
    const Cell* choice = nullptr;
    for (const Cell& cell : cells) {
      if (cell.observation->servers != key.first || cell.observation->size_floats != key.second) continue;
      if (choice == nullptr || cell.predicted < choice->predicted) choice = &cell;
    }
    regrets.push_back(choice->measured / least - 1);
  }
  set_regrets(regrets, out);
  return out;
}

std::optional<Parameters> fit_abc(const Profile& profile, const std::vector<Observation>& observations) {
  std::vector<const Observation*> fitted;
  for (const Observation& one : observations) {
    if (one.is_fitted && !one.is_native && !one.seconds.empty() &&
        one.max_senders == (profile.levels.empty() ? 0 : profile.levels.front().max_senders))
      fitted.push_back(&one);
  }
  if (static_cast<int>(fitted.size()) < 6) return std::nullopt;
  Problem problem(fitted, place_of(profile));
  EstimateOptions options;
  options.num_bootstrap = 0;
  options.has_memory_and_incast = false;
  return estimate(problem, options).solution.parameters;
}

}  // namespace

std::vector<ValidationScore> validate(const Profile& profile, const std::vector<Observation>& observations) {
  std::vector<Cell> genmodel;
  std::vector<Cell> abc;
  std::vector<Cell> native;
  const std::optional<Parameters> abc_parameters = fit_abc(profile, observations);
  for (const Observation& one : observations) {
    if (one.is_fitted || one.kind != ObservationKind::kCollective || one.collective != Collective::kAllReduce) continue;
    if (one.seconds.empty()) continue;
    const double measured = median_seconds(one);
    if (one.is_native) {
      native.push_back({&one, measured, 0});
      continue;
    }
    const double predicted = predict_seconds(one, profile);
    genmodel.push_back({&one, measured, corrected(profile, predicted, 4 * one.size_floats)});
    abc.push_back({&one, measured,
                   abc_parameters ? seconds_of(features_of(one, place_of(profile)), *abc_parameters)
                                  : predict_seconds(one, profile, ModelKind::kAbc)});
  }
  if (genmodel.empty())
    throw InvalidArgument("there is no AllReduce that was held out, hence nothing to validate with");
  std::vector<ValidationScore> out{score_of("GenModel", genmodel), score_of("(alpha,beta,gamma)", abc)};
  if (native.empty()) return out;
  ValidationScore library;
  library.name = profile.provenance.mpi.empty() ? "the library's default" : profile.provenance.mpi + "'s default";
  const std::map<CaseKey, double> fastest = fastest_of(genmodel);
  std::vector<double> regrets;
  for (const Cell& cell : native) {
    const auto known = fastest.find({cell.observation->servers, cell.observation->size_floats});
    if (known != fastest.end()) regrets.push_back(std::max(cell.measured / known->second - 1, 0.0));
  }
  set_regrets(regrets, library);
  library.num_cells = static_cast<std::int64_t>(native.size());
  out.push_back(library);
  return out;
}

}  // namespace gar
