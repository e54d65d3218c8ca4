// The parts of the plan format that other writers of JSON need.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "gar/plan.hpp"

namespace gar {

/// What is written; the version before spelled the collectives in another way and is read, too.
inline constexpr std::string_view kPlanSchema = "gar.plan/2";
inline constexpr std::string_view kOldPlanSchema = "gar.plan/1";
/// The largest number of units or elements, and the largest step number.
inline constexpr std::int64_t kMaxUnits = std::int64_t{1} << 60;

/// Writes the members of a plan document without the braces around them, so that a writer can put members of its own
/// (see docs/formats-plan.md for their names) before or after them.
void write_plan_fields(const Plan& plan, std::ostream& out);

/// Checks what fields of a plan file say about each other. Throws ParseError that names `source` and the field.
void check_plan_fields(const Plan& plan, const std::string& source);

}  // namespace gar
