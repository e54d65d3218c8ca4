// Conversions between float and its two 16-bit relatives, without branches, so that loops of them are vectorised.
#pragma once

#include <bit>
#include <cstdint>

#include "gar/reduction.hpp"

namespace gar {

inline float float_of(Bfloat16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

inline Bfloat16 bfloat16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40;
  return {static_cast<std::uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded)};
}

inline float float_of(Float16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fff;
  const std::uint32_t normal = (magnitude << 13) + (112U << 23);  // exponent bias 15 -> 127
  const auto subnormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
  const std::uint32_t special = 0x7f800000 | (magnitude << 13) | (magnitude > 0x7c00 ? 0x400000 : 0);
  const std::uint32_t finite = magnitude < 0x400 ? subnormal : normal;
  return std::bit_cast<float>(sign | (magnitude >= 0x7c00 ? special : finite));
}

inline Float16 float16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t normal = (magnitude - (112U << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Adding 1/2, whose last bit is worth 2^-24, rounds to the multiples of the smallest float16.
  const float shifted = std::bit_cast<float>(magnitude < 0x38800000 ? magnitude : 0) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000;
  const std::uint32_t nan = 0x7e00 | ((magnitude >> 13) & 0x1ff);
  std::uint32_t result = magnitude < 0x38800000 ? subnormal : normal;
  result = magnitude >= 0x477ff000 ? 0x7c00 : result;  // 65520 and above
  result = magnitude > 0x7f800000 ? nan : result;
  return {static_cast<std::uint16_t>(sign | result)};
}

}  // namespace gar
