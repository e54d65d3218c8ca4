// Profiles in words.
#pragma once

#include <string>

#include "gar/profile.hpp"

namespace gar {

/// What a level says about incast: "present: above 9 senders each further one costs 1.9% of beta (up to 14 measured)",
/// "none: up to 14 senders cost no more than one".
std::string incast_words(const LevelProfile& level);

}  // namespace gar
