// Points in time that are some seconds away, whatever number of seconds is asked for.
#pragma once

#include <algorithm>
#include <chrono>

#include "gar/limits.hpp"

namespace gar {

/// The time `seconds` from now. More than kMaxSeconds, which a clock could not hold, count as kMaxSeconds; what is
/// negative or no number counts as 0.
template <class Clock = std::chrono::steady_clock>
typename Clock::time_point seconds_from_now(double seconds) {
  const std::chrono::duration<double> wait(seconds > 0 ? std::min(seconds, kMaxSeconds) : 0.0);
  return Clock::now() + std::chrono::duration_cast<typename Clock::duration>(wait);
}

/// What is left until then for poll(): milliseconds from 0 to a day, never less than there is.
inline int milliseconds_until(std::chrono::steady_clock::time_point then) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(then - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 86'400'000));
}

}  // namespace gar
