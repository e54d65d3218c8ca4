// Build a plan, look at one rank's part of it, prove it, break it.
#include <cstdio>

#include "gar/algorithms.hpp"
#include "gar/plan.hpp"
#include "gar/verify.hpp"

int main() {
  // Hierarchical Co-located PS: 6 servers, groups of 3 neighbours first, then groups of 2 across.
  const gar::Plan plan = gar::hcps(6, {3, 2});

  // A rank's program is derived from the plan without those of the other ranks.
  const gar::PlanIndex index(plan);
  std::printf("%s, rank 4:\n", plan.algorithm.c_str());
  for (const gar::Step& step : index.program(4).steps) {
    std::printf("  step %d:", static_cast<int>(step.number));
    for (const gar::Message& m : step.sends) {
      std::printf("  [%d,%d) to %d", static_cast<int>(m.begin), static_cast<int>(m.end), m.peer);
    }
    for (const gar::Message& m : step.recvs) {
      std::printf("  [%d,%d) %s %d", static_cast<int>(m.begin), static_cast<int>(m.end),
                  m.accumulate ? "added from" : "from", m.peer);
    }
    std::printf("\n");
  }

  const gar::VerifyReport proof = gar::verify(plan);
  std::printf("proof: %s, %d steps, %d messages, reductions of up to %d operands\n", proof.ok ? "correct" : "wrong",
              static_cast<int>(proof.num_steps), static_cast<int>(proof.num_messages),
              static_cast<int>(proof.max_fan_in));

  // One message less, on both sides.
  gar::Plan broken = gar::make_explicit(plan);
  broken.programs[1].steps[0].sends.erase(broken.programs[1].steps[0].sends.begin());
  broken.programs[0].steps[0].recvs.erase(broken.programs[0].steps[0].recvs.begin());
  std::printf("broken: %s\n", gar::verify(broken).problem.c_str());
}
