#include "model/labels.hpp"

#include <fmt/format.h>

namespace gar {

std::string stage_label(const SubPlan& sp, const Stage& st) {
  std::string what;
  switch (st.kind) {
    case StageKind::kDirect:
      what = fmt::format("{}-way exchange", st.radix);
      break;
    case StageKind::kRing:
      what = fmt::format("ring of {}", st.radix);
      break;
    case StageKind::kPlace:
      what = "straight to the owners";
      break;
  }
  return sp.label.empty() ? what : sp.label + ", " + what;
}

}  // namespace gar
