// Hashes: one way of mixing bits for all of the library. Values are the same on every rank and in every run.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <string_view>

namespace gar {

/// 64 bits in which every bit depends on every bit of `x` (the finaliser of SplitMix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// A hash with one more value. The order of values matters, also where a value is a hash itself.
template <std::integral T>
constexpr std::uint64_t mix_in(std::uint64_t hash, T value) {
  return mix(hash * 0x9e3779b97f4a7c15U + mix(static_cast<std::uint64_t>(value)));
}
constexpr std::uint64_t mix_in(std::uint64_t hash, double value) {
  return mix_in(hash, std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value));  // 0 and -0 are equal
}
constexpr std::uint64_t mix_in(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = mix_in(hash, c);
  return mix_in(hash, text.size());
}

}  // namespace gar
