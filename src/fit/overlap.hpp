// What stages cost beyond the model because they overlap.
#pragma once

#include <vector>

#include "gar/fit.hpp"
#include "gar/profile.hpp"

namespace gar {

/// Profile::overlap, out of the AllReduces that were held out.
Estimate measured_overlap(const Profile& profile, const std::vector<Observation>& observations);

}  // namespace gar
