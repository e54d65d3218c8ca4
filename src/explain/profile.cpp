// Profiles in words.
#include <fmt/format.h>

#include "gar/explain_profile.hpp"

namespace gar {

std::string incast_words(const LevelProfile& level) {
  const double share = level.beta.value > 0 ? level.epsilon.value / level.beta.value : 0;
  const std::string each = share > 0 ? fmt::format(" {:.2g}% of beta", 100 * share) : std::string(" time");
  switch (level.incast) {
    case Incast::kNone:
      return fmt::format("none: up to {} senders cost no more than one", level.most_senders);
    case Incast::kDrift:
      return fmt::format("none; each further sender costs{}, as on networks without loss (up to {} measured)", each,
                         level.most_senders);
    case Incast::kPresent:
      return fmt::format("present: above {:g} senders each further one costs{} (up to {} measured)",
                         level.incast_threshold.value, each, level.most_senders);
    default:
      return level.most_senders > 0 ? fmt::format("unknown: only up to {} senders were measured", level.most_senders)
                                    : std::string("unknown: not measured");
  }
}

}  // namespace gar
