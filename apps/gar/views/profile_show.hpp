// What `gar profile show` says about a profile.
#pragma once

#include <string>

#include "gar/profile.hpp"

namespace gar::cli {

/// A profile for people.
std::string profile_report(const Profile& profile, const std::string& source, bool color);
/// Its parameters for programs: where, which, value, interval.
std::string profile_csv(const Profile& profile);

}  // namespace gar::cli
