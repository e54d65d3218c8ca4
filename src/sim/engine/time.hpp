// Which simulated times count as the same. Sums of rounded numbers miss each other by a few units in the last place;
// what should happen together does so within these tolerances.
#pragma once

#include <limits>

namespace gar::sim {

inline constexpr double kNever = std::numeric_limits<double>::infinity();
/// Events that are closer than this share of the time happen together.
inline constexpr double kTieTime = 1e-12;
/// A flow or calculation that would end within this share of the time has ended.
inline constexpr double kDoneTime = 4e-12;

}  // namespace gar::sim
