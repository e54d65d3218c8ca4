// For how long a link has been in use: what the rate solver adds up and the ledger keeps for the stages of a plan.
#pragma once

#include <cstdint>

namespace gar::sim {

using FlowIndex = std::uint32_t;
using LinkIndex = std::uint32_t;

/// Counts of flows and senders below this are rounding: they are sums of shares that have come and gone.
inline constexpr double kNoFlow = 1e-6;

/// For how long a link has been in use.
struct LinkSums {
  double busy = 0;    ///< seconds with bytes flowing
  double full = 0;    ///< integral of load / capacity
  double incast = 0;  ///< of the busy seconds, what incast has cost

  LinkSums& operator+=(const LinkSums& other) {
    busy += other.busy;
    full += other.full;
    incast += other.incast;
    return *this;
  }
  LinkSums& operator-=(const LinkSums& other) {
    busy -= other.busy;
    full -= other.full;
    incast -= other.incast;
    return *this;
  }
  /// Adds what has happened since `before` another `times` times.
  void repeat(double times, const LinkSums& before) {
    busy += times * (busy - before.busy);
    full += times * (full - before.full);
    incast += times * (incast - before.incast);
  }
};

}  // namespace gar::sim
