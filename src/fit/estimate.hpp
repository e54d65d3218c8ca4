// Parameters with intervals from one set of observations.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "fit/problem.hpp"

namespace gar {

/// What one regression found.
struct Fitted {
  Solution solution;
  std::vector<Parameters> resampled;  ///< bootstrap
  std::vector<Incast> incast;         ///< per level
  std::vector<double> most_senders;   ///< per level
  std::vector<bool> has_threshold;    ///< per level: a hinge, and not a straight line
  bool is_mu_measured = false;        ///< what handling a message costs was seen, or seen to be nothing
  Mask is_identified;
  bool is_sum_identified = true;  ///< 2 beta + gamma of level 0
  std::vector<std::string> notes;
};

struct EstimateOptions {
  int num_bootstrap = 200;
  std::uint64_t seed = 1;
  ModelKind kind = ModelKind::kGenModel;  ///< what is left out: mu, or all but alpha, beta and gamma
  std::vector<std::string> level_names;
  std::optional<bool> has_congestion;  ///< what counters of meshes say; nothing: there were none
};

/// Decides on incast, solves, resamples. Noise is added to that of `problem` where the model explains less.
Fitted estimate(Problem& problem, const EstimateOptions& options);

/// The interval of a function of the parameters.
template <class F>
Estimate interval_of(const Fitted& fitted, F f) {
  Estimate out;
  out.value = f(fitted.solution.parameters);
  std::vector<double> values;
  for (const Parameters& p : fitted.resampled) values.push_back(f(p));
  std::sort(values.begin(), values.end());
  if (values.empty()) return {out.value, out.value, out.value};
  const auto at = [&](double q) {
    return values[static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
  };
  out.low = std::min(at(0.025), out.value);
  out.high = std::max(at(0.975), out.value);
  return out;
}

}  // namespace gar
