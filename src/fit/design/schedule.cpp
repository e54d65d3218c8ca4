// How `gar fit` spends its time, and the lengths that go with it.
#include <algorithm>
#include <cmath>
#include <set>

#include "gar/fit_design.hpp"
#include "gar/stats.hpp"

namespace gar {
namespace {

constexpr double kLargestShare = 1.0 / 100;  ///< of the budget, for one repetition of the largest length
constexpr double kMuchMore = 4;              ///< lengths that could be afforded, over the largest
constexpr double kLengthRatio = 4;           ///< between neighbouring lengths where time is no limit
constexpr double kFittedShare = 0.5;         ///< of the budget, before held-out cases get their turn
constexpr double kGoodEnough = 0.02;         ///< relative uncertainty
constexpr double kTooFew = 0.1;              ///< uncertainty that is assumed below three repetitions
constexpr std::size_t kMaxRepetitions = 30;
constexpr int kFirstRepetitions = 2;
constexpr int kMoreRepetitions = 3;

bool is_measured(const FitGroup& group) { return !group.cells.front().seconds.empty(); }

/// Of one more visit.
double visit_seconds(const FitGroup& group) {
  double sum = 0;
  for (const Observation& cell : group.cells) sum += median_seconds(cell);
  return sum * (kMoreRepetitions + 1);
}

double uncertainty_of(const FitGroup& group) {
  double most = 0;
  for (const Observation& cell : group.cells) most = std::max(most, uncertainty(cell));
  return most;
}

std::optional<FitVisit> least_certain(const std::vector<FitGroup>& groups, double seconds_left) {
  std::optional<FitVisit> out;
  double worst = kGoodEnough;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!is_measured(groups[i]) || groups[i].cells.front().seconds.size() >= kMaxRepetitions) continue;
    if (visit_seconds(groups[i]) > seconds_left) continue;
    const double own = uncertainty_of(groups[i]);
    if (own > worst) {
      worst = own;
      out = FitVisit{i, kMoreRepetitions};
    }
  }
  return out;
}

}  // namespace

double two_digits(double value) {
  if (value <= 1) return 1;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return unit < 1 ? std::round(value) : std::round(value / unit) * unit;
}

std::vector<double> choose_sizes(const Probe& probe, double budget_s, double most_floats) {
  constexpr double kLeastFloats = 1000;
  const double beta = std::max(probe.seconds_per_float, 1e-13);
  const double affordable = (kLargestShare * budget_s - probe.latency_s) / beta;
  const double large = std::clamp(affordable, kLeastFloats, std::max(most_floats, kLeastFloats));
  const double latent = 2 * probe.latency_s / beta;
  // Where time is no limit, more lengths: caches and protocols make steps that three of them would miss.
  const bool is_fast = affordable > kMuchMore * large;
  const double small = std::clamp(latent, is_fast ? kLeastFloats : large / 50, large / 10);
  const int count =
      is_fast ? std::max(3, 1 + static_cast<int>(std::ceil(std::log(large / small) / std::log(kLengthRatio)))) : 3;
  std::set<double> out;
  for (int i = 0; i < count; ++i) {
    out.insert(two_digits(small * std::pow(large / small, static_cast<double>(i) / (count - 1))));
  }
  return {out.begin(), out.end()};
}

double uncertainty(const Observation& observation) {
  std::vector<double> sorted = observation.seconds;
  if (sorted.empty()) return 1;
  std::sort(sorted.begin(), sorted.end());
  // Half the distance of the quartiles: the median distance from the median, but not fooled by times that jump between
  // two values.
  const double middle = quantile(sorted, 0.5);
  const double half = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 2;
  const double spread = middle > 0 ? half / middle / std::sqrt(static_cast<double>(sorted.size())) : 0;
  return sorted.size() < 3 ? std::max(spread, kTooFew) : spread;
}

bool has_essentials(const std::vector<FitGroup>& groups) {
  return std::all_of(groups.begin(), groups.end(),
                     [](const FitGroup& group) { return !group.is_essential || is_measured(group); });
}

std::optional<FitVisit> next_visit(const std::vector<FitGroup>& groups, double budget_s, double elapsed_s) {
  if (elapsed_s >= budget_s) return std::nullopt;
  std::optional<FitVisit> fitted;
  std::optional<FitVisit> held_out;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (is_measured(groups[i])) continue;
    std::optional<FitVisit>& first = is_held_out(groups[i]) ? held_out : fitted;
    if (!first) first = FitVisit{i, kFirstRepetitions};
  }
  if (fitted && (groups[fitted->group].is_essential || elapsed_s < kFittedShare * budget_s)) return fitted;
  if (held_out) return held_out;
  if (fitted) return fitted;
  return least_certain(groups, budget_s - elapsed_s);
}

}  // namespace gar
