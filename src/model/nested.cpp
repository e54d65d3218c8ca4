// Digits that a plan writes side by side, as sub-plans inside each other. O(digits).
#include "model/nested.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace gar {

namespace {

using Runs = std::vector<SubPlanRun>;

void append(Runs& runs, SubPlanId id, std::int64_t count) {
  if (!runs.empty() && runs.back().subplan == id) {
    runs.back().count += count;
  } else {
    runs.push_back({id, count});
  }
}

class Nesting {
 public:
  explicit Nesting(const Plan& plan) : given_(plan) {
    out_.plan = plan;
    out_.plan.subplans.clear();
  }

  Nested run() {
    for (const SubPlan& sp : given_.subplans) new_id_.push_back(add(sp));
    if (given_.root != kLeaf) out_.plan.root = renamed(given_.root);
    return std::move(out_);
  }

 private:
  [[nodiscard]] SubPlanId renamed(SubPlanId id) const {
    if (id < 0) return id;
    const auto old = static_cast<std::size_t>(id);
    return old < new_id_.size() ? new_id_[old] : std::numeric_limits<SubPlanId>::max();  // PlanIndex refuses it
  }

  // How many digits get sub-plans of their own: all that scatter but the last digit, if groups are nested in order.
  static std::size_t num_inner(const SubPlan& sp) {
    std::size_t digits = 0;
    std::size_t scattering = 0;
    std::int64_t stride = 0;
    for (const Stage& st : sp.stages) {
      if (!is_digit(st)) break;
      if (st.radix < 2 || (digits > 0 && st.stride != stride)) return 0;
      stride = st.stride * st.radix;
      ++digits;
      if (st.kind != StageKind::kExchange && scattering + 1 == digits) ++scattering;
    }
    return digits == 0 ? 0 : std::min(scattering, digits - 1);
  }

  SubPlanId add(const SubPlan& sp) {
    Runs children;
    for (const SubPlanRun& run : sp.children) append(children, renamed(run.subplan), run.count);
    const std::size_t inner = children.size() == 1 ? num_inner(sp) : 0;
    for (std::size_t s = 0; s < inner; ++s) {
      const std::int64_t radix = sp.stages[s].radix;
      if (children[0].count % radix != 0) return store({std::move(children), sp.stages, sp.label}, false);
      const std::int64_t num_groups = children[0].count / radix;
      const SubPlanId group = store({{{children[0].subplan, radix}}, {sp.stages[s]}, sp.label}, true);
      children = {{group, num_groups}};
    }
    return store(
        {std::move(children), {sp.stages.begin() + static_cast<std::ptrdiff_t>(inner), sp.stages.end()}, sp.label},
        false);
  }

  SubPlanId store(SubPlan sp, bool is_inner) {
    out_.plan.subplans.push_back(std::move(sp));
    out_.is_inner.push_back(is_inner);
    return static_cast<SubPlanId>(out_.plan.subplans.size()) - 1;
  }

  const Plan& given_;
  Nested out_;
  std::vector<SubPlanId> new_id_;
};

}  // namespace

Nested nested(const Plan& plan) { return Nesting(plan).run(); }

}  // namespace gar
