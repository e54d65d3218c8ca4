// One form for plans that send the same messages.
#pragma once

#include <vector>

#include "gar/plan.hpp"

namespace gar {

/// A plan in which every digit that scatters has a sub-plan of its own, where its place in the tree allows that.
struct Nested {
  Plan plan;
  std::vector<bool> is_inner;  ///< by sub-plan: the plan that was given has it as a part of its parent
};

/// Rewrites digits s_0, s_1, ... of one sub-plan, with ascending strides, as sub-plans inside each other: neighbours of
/// digit s_0 form groups, groups of these follow by digit s_1, and so on. Every rank sends the same messages in the
/// same steps, and both forms get the same price. Exchanges stay where they are, in the root.
Nested nested(const Plan& plan);

}  // namespace gar
