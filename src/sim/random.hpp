// Delays that depend on what is delayed and on the seed alone, not on the order in which they are asked for.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/hash.hpp"

namespace gar::sim {

/// Exponentially distributed with mean 1.
inline double exponential(std::uint64_t seed, std::int64_t rank, std::int64_t chunk, std::int64_t step,
                          bool is_calculation) {
  std::uint64_t x = mix(seed);
  x = mix(x ^ static_cast<std::uint64_t>(rank));
  x = mix(x ^ static_cast<std::uint64_t>(chunk));
  x = mix(x ^ (static_cast<std::uint64_t>(step) * 2 + (is_calculation ? 1 : 0)));
  const double uniform = (static_cast<double>(x >> 11U) + 0.5) * 0x1p-53;
  return -std::log(uniform);
}

}  // namespace gar::sim
