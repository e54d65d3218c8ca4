// Names of stages for people.
#include <fmt/format.h>

#include "gar/plan.hpp"

namespace gar {

std::string stage_label(const SubPlan& subplan, const Stage& stage) {
  std::string what;
  switch (stage.kind) {
    case StageKind::kDirect:
      what = fmt::format("{}-way exchange", stage.radix);
      break;
    case StageKind::kExchange:
      what = fmt::format("{}-way exchange of everything", stage.radix);
      break;
    case StageKind::kRing:
      what = fmt::format("ring of {}", stage.radix);
      break;
    case StageKind::kPlace:
      what = "straight to the owners";
      break;
  }
  return subplan.label.empty() ? what : subplan.label + ", " + what;
}

}  // namespace gar
