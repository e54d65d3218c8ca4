// Delays that depend on what is delayed and on the seed alone, not on the order in which they are asked for.
#pragma once

#include <cmath>
#include <cstdint>

namespace gar::sim {

/// A good mix of 64 bits (the finaliser of SplitMix64).
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

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
