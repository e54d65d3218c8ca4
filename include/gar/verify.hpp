// Proof that a plan is right: every rank ends with every contribution exactly once, every message has its partner,
// nothing can deadlock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "gar/plan.hpp"

namespace gar {

/// The random numbers of a proof: all fingerprints of a run follow from these 128 bits.
struct ProofSeed {
  std::uint64_t high = 0;  ///< the upper 64 bits
  std::uint64_t low = 0;   ///< the lower 64 bits
  bool operator==(const ProofSeed&) const = default;
};
/// A seed that nobody has seen before, from the system's source of random numbers.
ProofSeed fresh_proof_seed();
/// Reads 1 to 32 hexadecimal digits. Throws InvalidArgument.
ProofSeed parse_proof_seed(const std::string& text);
/// The digits, without leading zeros: parse_proof_seed() reads them.
std::string to_text(const ProofSeed& seed);

/// How contributions are followed through a plan.
enum class ProofKind {
  kAuto,          ///< kExact up to kExactRanks ranks, kFingerprints above
  kExact,         ///< as sets: nothing is left to chance; takes a pass over the plan for every 64 ranks
  kFingerprints,  ///< as random numbers, in one pass
};
/// Ranks up to which kAuto is exact.
inline constexpr std::int64_t kExactRanks = 64;

/// How a plan is proved.
struct VerifyOptions {
  ProofKind kind = ProofKind::kAuto;  ///< sets or fingerprints
  /// Elements of a fingerprint, 1 or 2. Whatever a wrong plan is, as long as it was made without knowing the seed, it
  /// passes with a probability below 2^-60 with one, and below 2^-120 with two.
  int num_elements = 1;
  std::optional<ProofSeed> seed;  ///< of the fingerprints; none: a fresh one
};

/// What the verifier found.
struct VerifyReport {
  bool ok = false;                ///< the plan is proved
  std::string problem;            ///< empty when ok; otherwise the first counter-example, in words
  std::int64_t num_steps = 0;     ///< step numbers are below this
  std::int64_t num_messages = 0;  ///< AllGather included
  std::int64_t volume_units = 0;  ///< sum of the sizes of all messages
  std::int64_t max_fan_in = 0;    ///< most operands of one reduction, own included
  /// Scratch that a rank needs in addition to its vector: most units received to be reduced in one step.
  std::int64_t buffer_units = 0;
  std::int64_t buffer_rank = 0;  ///< a rank that needs that much
  bool is_exact = false;         ///< contributions and messages were compared as they are, and not by fingerprints
  ProofSeed seed;                ///< of the fingerprints; 0 when exact
  /// Below what a plan that is wrong, and was made without knowing the seed, would have passed: 2^-60 or 2^-120; 0 when
  /// exact.
  double error_probability = 0;
};

/// Proves a plan. Throws PlanError only when the plan is malformed (not merely wrong), and InvalidArgument for a number
/// of elements that is not accepted.
VerifyReport verify(const Plan& plan, const VerifyOptions& options = {});

/// Words for an interval: elements when the plan says for how many it was made, units otherwise.
std::string describe(const Plan& plan, Interval interval);

}  // namespace gar
