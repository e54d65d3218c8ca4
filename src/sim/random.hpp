// Delays that depend on what is delayed and on the seed alone, not on the order in which they are asked for.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/hash.hpp"

namespace gar::sim {

enum class DelayKind : std::uint8_t { kLatency, kCalculation };

/// What is delayed.
struct Delayed {
  std::int64_t rank = 0;
  std::int64_t chunk = 0;
  std::int64_t step = 0;
  DelayKind kind = DelayKind::kLatency;
};

/// Exponentially distributed with mean 1.
inline double exponential(std::uint64_t seed, const Delayed& delayed) {
  std::uint64_t x = mix(seed);
  x = mix(x ^ static_cast<std::uint64_t>(delayed.rank));
  x = mix(x ^ static_cast<std::uint64_t>(delayed.chunk));
  x = mix(x ^ (static_cast<std::uint64_t>(delayed.step) * 2 + (delayed.kind == DelayKind::kCalculation ? 1 : 0)));
  const double uniform = (static_cast<double>(x >> 11U) + 0.5) * 0x1p-53;
  return -std::log(uniform);
}

}  // namespace gar::sim
