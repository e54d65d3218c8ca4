// The seed of a proof: where it comes from, and how it is written.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "gar/errors.hpp"
#include "gar/verify.hpp"

namespace gar {

ProofSeed fresh_proof_seed() {
  std::random_device system;
  const auto word = [&system] { return static_cast<std::uint64_t>(system()) << 32U | system(); };
  const std::uint64_t high = word();
  return {high, word()};
}

ProofSeed parse_proof_seed(const std::string& text) {
  constexpr std::size_t kMostDigits = 32;
  const auto value_of = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  if (text.empty() || text.size() > kMostDigits ||
      std::any_of(text.begin(), text.end(), [&](char c) { return value_of(c) < 0; }))
    throw InvalidArgument(fmt::format("'{}' is no seed; expected 1 to {} hexadecimal digits", text, kMostDigits));
  ProofSeed seed;
  for (const char c : text) {
    seed.high = seed.high << 4U | seed.low >> 60U;
    seed.low = seed.low << 4U | static_cast<std::uint64_t>(value_of(c));
  }
  return seed;
}

std::string to_text(const ProofSeed& seed) {
  return seed.high == 0 ? fmt::format("{:x}", seed.low) : fmt::format("{:x}{:016x}", seed.high, seed.low);
}

}  // namespace gar
