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

/// The natural logarithm of a number above 0, out of exact steps, additions, multiplications and divisions: C libraries
/// differ in the last bit of theirs, and a simulation is to be the same wherever it runs, on a page as well.
inline double portable_log(double x) {
  constexpr double kLog2 = 0.69314718055994530942;
  constexpr double kRootOfHalf = 0.70710678118654752440;
  constexpr int kTerms = 12;  // of the series of the inverse hyperbolic tangent, whose square is below 0.03
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < kRootOfHalf) {
    mantissa *= 2;
    --exponent;
  }
  const double ratio = (mantissa - 1) / (mantissa + 1);
  const double square = ratio * ratio;
  double sum = 0;
  for (int k = kTerms; k >= 0; --k) sum = sum * square + 1.0 / (2 * k + 1);
  return exponent * kLog2 + 2 * ratio * sum;
}

/// Exponentially distributed with mean 1.
inline double exponential(std::uint64_t seed, const Delayed& delayed) {
  std::uint64_t x = mix(seed);
  x = mix(x ^ static_cast<std::uint64_t>(delayed.rank));
  x = mix(x ^ static_cast<std::uint64_t>(delayed.chunk));
  x = mix(x ^ (static_cast<std::uint64_t>(delayed.step) * 2 + (delayed.kind == DelayKind::kCalculation ? 1 : 0)));
  const double uniform = (static_cast<double>(x >> 11U) + 0.5) * 0x1p-53;
  return -portable_log(uniform);
}

}  // namespace gar::sim
