#include "fit/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gar/errors.hpp"
#include "gar/limits.hpp"

namespace gar {

namespace {

bool has_one_sender(const Features& features) {
  for (const auto& stage : features.stages) {
    for (const LinkLoad& load : stage) {
      if (load.senders > 1) return false;
    }
  }
  return true;
}

}  // namespace

Selection select(const std::vector<Observation>& observations, const Place& place) {
  Selection out;
  std::size_t most_servers = 0;
  for (const Observation& one : observations) {
    if (one.is_fitted && !one.is_native) out.max_senders = std::max(out.max_senders, one.max_senders);
    if (one.kind == ObservationKind::kReduction) most_servers = std::max(most_servers, one.servers.size());
  }
  for (const Observation& one : observations) {
    if (!one.is_fitted || one.is_native) continue;
    if (one.seconds.empty()) throw InvalidArgument(fmt::format("{}: no times; expected at least one", describe(one)));
    for (const double s : one.seconds) {
      if (!(s >= kLeastSeconds && s <= kMaxSeconds)) {
        throw InvalidArgument(fmt::format("{}: a time of {:g} s; expected times from {:g} to {:g} s", describe(one), s,
                                          kLeastSeconds, kMaxSeconds));
      }
    }
    const bool is_reduction = one.kind == ObservationKind::kReduction;
    // Ranks that compute at the same time are what an AllReduce meets; where it is known how they share cores, one rank
    // alone says the same.
    if (is_reduction && place.cores <= 0 && one.servers.size() < most_servers) continue;
    const bool is_neutral = is_reduction || has_one_sender(features_of(one, place));
    if (one.max_senders == out.max_senders || is_neutral) out.admitted.push_back(&one);
    if (one.max_senders == 0 || is_neutral) out.unadmitted.push_back(&one);
  }
  return out;
}

}  // namespace gar
