// What `gar profile show` says about a profile.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/views/json_output.hpp"
#include "gar/profile.hpp"

namespace gar::cli {

/// A profile for people.
std::string profile_report(const Profile& profile, const std::string& source, bool color);
/// The same numbers for scripts: schema "gar.profile-show/1".
Json profile_document(const Profile& profile, const std::string& source);

/// {"value", "low", "high", "identified"}; an interval without an end has null there.
Json estimate_document(const Estimate& estimate);

/// |fitted / measured - 1| over all residuals.
struct ResidualSummary {
  double median_error = 0;
  double p95_error = 0;
  std::vector<Residual> worst;  ///< at most five, largest error first
};
ResidualSummary summarise(const std::vector<Residual>& residuals);

}  // namespace gar::cli
