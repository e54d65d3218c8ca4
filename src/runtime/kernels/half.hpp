// Conversions between float and its two 16-bit relatives, without branches, so that loops of them are vectorised.
#pragma once

#include <bit>
#include <cstdint>

#include "gar/reduction.hpp"

namespace gar {

/// `condition` ? a : b, in a form that compilers do not turn into a branch.
inline std::uint32_t select(bool condition, std::uint32_t a, std::uint32_t b) {
  return b ^ ((a ^ b) & (0U - static_cast<std::uint32_t>(condition)));
}

inline float float_of(Bfloat16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

inline Bfloat16 bfloat16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40;
  return {static_cast<std::uint16_t>(select((bits & 0x7fffffff) > 0x7f800000, quiet, rounded))};
}

inline float float_of(Float16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fff;
  // As a float, the shifted bits mean the same number times 2^(15 - 127), whether subnormal or not.
  const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112F);
  const std::uint32_t special = select(magnitude >= 0x7c00, 0x7f800000, 0);
  const std::uint32_t quiet = select(magnitude > 0x7c00, 0x400000, 0);
  return std::bit_cast<float>(sign | finite | special | quiet);
}

inline Float16 float16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t normal = (magnitude - (112U << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Adding 1/2, whose last bit is worth 2^-24, rounds to the multiples of the smallest float16.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000;
  const std::uint32_t nan = 0x7e00 | ((magnitude >> 13) & 0x1ff);
  std::uint32_t result = select(magnitude < 0x38800000, subnormal, normal);
  result = select(magnitude >= 0x477ff000, 0x7c00, result);  // 65520 and above
  result = select(magnitude > 0x7f800000, nan, result);
  return {static_cast<std::uint16_t>(sign | result)};
}

}  // namespace gar
