// Proof that a plan is right: every rank ends with every contribution exactly once, every message has its partner,
// nothing can deadlock.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "gar/plan.hpp"

namespace gar {

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
};

/// Proves a plan. Throws PlanError only when the plan is malformed (not merely wrong).
VerifyReport verify(const Plan& plan);

/// Words for an interval: elements when the plan says for how many it was made, units otherwise.
std::string describe(const Plan& plan, Interval interval);

}  // namespace gar
