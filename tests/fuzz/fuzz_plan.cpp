// The plan reader, PlanIndex and the verifier on arbitrary bytes: nothing but gar::Error may come out.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "gar/errors.hpp"
#include "gar/plan.hpp"
#include "gar/plan_io.hpp"
#include "gar/verify.hpp"

namespace {

/// Small enough to run in a moment: a few bytes can ask for a hundred million ranks.
bool is_small(const gar::Plan& plan, const gar::PlanIndex& index) {
  return plan.num_ranks <= 64 && index.num_steps() <= 4096;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
    const gar::Plan plan = gar::read_plan(in, "fuzz");

    std::ostringstream out;
    gar::write_plan(plan, out);
    std::istringstream again(out.str());
    if (gar::read_plan(again, "written") != plan) std::abort();

    if (plan.num_ranks > 4096) return 0;
    const gar::PlanIndex index(plan);
    if (plan.is_explicit() || is_small(plan, index)) {
      const gar::VerifyReport report = gar::verify(plan);
      if (report.ok != report.problem.empty()) std::abort();
      // A plan of sub-plans is right by construction once it is well formed.
      if (!plan.is_explicit() && !report.ok) std::abort();
    }
  } catch (const gar::Error&) {
  }
  return 0;
}
