// The model prices one stage after the other. But ranks do not wait for each other, so where senders meet with loss,
// early senders of a stage meet late ones of the stage before. In a ring every rank hears from the same other one all
// the time. So what other plans take longer than predicted, over what rings do in the same case, is what overlapping
// costs; what else disturbs a size or a number of ranks disturbs both, and drops out.
#include "fit/overlap.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "gar/stats.hpp"

namespace gar {

namespace {

constexpr std::size_t kLeastRatios = 6;

bool has_incast(const Profile& profile) {
  return std::any_of(profile.levels.begin(), profile.levels.end(),
                     [](const LevelProfile& level) { return level.free_incast == Incast::kPresent; });
}

bool is_judged(const Observation& one) {
  return one.kind == ObservationKind::kCollective && one.collective == Collective::kAllReduce && !one.is_native &&
         !one.plan && !one.seconds.empty();
}

/// The shortest AllReduce that was fitted: shorter ones are about messages.
double least_fitted(const std::vector<Observation>& observations) {
  double out = std::numeric_limits<double>::infinity();
  for (const Observation& one : observations) {
    if (is_judged(one) && one.is_fitted) out = std::min(out, one.size_floats);
  }
  return out;
}

struct Case {
  double ring = -1;  ///< measured over predicted
  std::vector<double> others;
};

}  // namespace

Estimate measured_overlap(const Profile& profile, const std::vector<Observation>& observations) {
  Estimate out{.value = 1, .low = 1, .high = 1, .is_identified = false};
  if (!has_incast(profile)) return out;
  const double least = least_fitted(observations);
  std::map<std::pair<std::vector<std::int64_t>, double>, Case> cases;
  for (const Observation& one : observations) {
    if (!is_judged(one) || one.is_fitted || one.size_floats < least || one.servers.size() < 3) continue;
    const bool is_ring = one.algorithm.name == "ring";
    if (!is_ring && one.algorithm.name != "hcps" && one.algorithm.name != "rhd") continue;
    const double ratio = median_seconds(one) / predict_seconds(one, profile);
    Case& in = cases[{one.servers, one.size_floats}];
    if (is_ring) {
      in.ring = ratio;
    } else {
      in.others.push_back(ratio);
    }
  }
  std::vector<double> ratios;
  for (const auto& [key, in] : cases) {
    for (const double other : in.others) {
      if (in.ring > 0) ratios.push_back(other / in.ring);
    }
  }
  if (ratios.size() < kLeastRatios) return out;
  std::sort(ratios.begin(), ratios.end());
  // The ranks between which a median lies in 95 of 100 samples.
  const auto n = static_cast<double>(ratios.size());
  const double half = 0.98 * std::sqrt(n) / n;
  out = {quantile(ratios, 0.5), quantile(ratios, std::max(0.5 - half, 0.0)),
         quantile(ratios, std::min(0.5 + half, 1.0)), true};
  return out;
}

}  // namespace gar
