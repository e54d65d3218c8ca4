// Which observations are fitted.
#pragma once

#include <vector>

#include "fit/features.hpp"

namespace gar {

/// What is fitted, by whether receivers admitted senders. Without a second sender there is nobody to admit.
struct Selection {
  std::int64_t max_senders = 0;
  std::vector<const Observation*> admitted;  ///< as in the profile's own parameters
  std::vector<const Observation*> unadmitted;
};

/// Throws InvalidArgument when times are missing or impossible.
Selection select(const std::vector<Observation>& observations, const Place& place);

}  // namespace gar
