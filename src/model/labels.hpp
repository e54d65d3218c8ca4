// Names of stages for people.
#pragma once

#include <string>

#include "gar/plan.hpp"

namespace gar {

/// "rack level, 8-way exchange".
std::string stage_label(const SubPlan& sp, const Stage& st);

}  // namespace gar
