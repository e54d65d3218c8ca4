// What the reader and the writer of plan files share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "gar/plan.hpp"

namespace gar {

/// What is written: the newest version for plans with exchanges, which it added, and the one before for all others, so
/// that older programs read them. The oldest version spelled the collectives in another way. All of them are read.
inline constexpr std::string_view kExchangePlanSchema = "gar.plan/3";
inline constexpr std::string_view kPlanSchema = "gar.plan/2";
inline constexpr std::string_view kOldPlanSchema = "gar.plan/1";
/// How a digit stage is written, and what that is.
inline constexpr std::pair<std::string_view, StageKind> kDigitStages[] = {
    {"direct", StageKind::kDirect}, {"ring", StageKind::kRing}, {"exchange", StageKind::kExchange}};
/// The largest number of units or elements, and the largest step number.
inline constexpr std::int64_t kMaxUnits = std::int64_t{1} << 60;

/// Fields that describe a plan to people and scripts and are not part of it: the writer takes no others, the reader
/// skips them. docs/formats-plan.md says what they hold.
inline constexpr std::string_view kPlanNotes[] = {
    "gar_version", "topology", "predicted_seconds", "terms", "lower_bound_seconds", "switches", "stages", "explain"};
/// The entry of kPlanNotes with this name; empty when there is no such note.
std::string_view find_plan_note(std::string_view name);

/// Checks what fields of a plan file say about each other. Throws ParseError that names `source` and the field.
void check_plan_fields(const Plan& plan, const std::string& source);

}  // namespace gar
