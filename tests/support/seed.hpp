// Seeds of what tests draw: the same in every run, or others on request, so that a long run meets new cases.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>

namespace gar::test {

/// `usual`; with GAR_TEST_SEED=N in the environment a number that follows from both. Throws std::invalid_argument when
/// N is no whole number below 2^64.
inline std::uint64_t seed(std::uint64_t usual) {
  const char* value = std::getenv("GAR_TEST_SEED");
  if (value == nullptr || *value == '\0') return usual;
  const std::string text(value);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::invalid_argument("GAR_TEST_SEED=" + text + ": expected a whole number below 2^64");
  }
  // Steele et al.: SplitMix64. Neighbouring seeds give numbers that have nothing in common.
  std::uint64_t mixed = usual + (number + 1) * 0x9E3779B97F4A7C15U;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31U);
}

}  // namespace gar::test
