// What the builders of plans share: empty plans, stages over digits, resolutions that divide evenly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gar/plan.hpp"

namespace gar::building {

/// Throws InvalidArgument unless 1 <= n <= kMaxServers.
void check_ranks(std::int64_t n);

/// A plan without sub-plans for n ranks and a vector of `units` units. Throws as check_ranks does.
Plan empty_plan(std::string algorithm, std::int64_t n, std::int64_t units);

/// Appends a sub-plan and returns its id.
SubPlanId add(Plan& plan, SubPlan subplan);

/// One sub-plan of n ranks with one digit stage of the given kind per factor, neighbours first. Throws InvalidArgument
/// when the factors do not multiply to n.
Plan digits_plan(std::string algorithm, std::int64_t n, const std::vector<std::int64_t>& factors, StageKind kind);

/// The only factor of algorithms that treat all ranks as one group; no factor for a single rank.
std::vector<std::int64_t> one_group(std::int64_t n);

/// A number of units that n and all `divisors` divide, or, where that would be too many, so many that rounding does
/// not matter.
std::int64_t units_for(std::int64_t n, const std::vector<std::int64_t>& divisors);

/// The placement that a sub-plan of n ranks leaves, while the plan around it is still being built.
std::vector<Piece> placement_of(const Plan& plan, SubPlanId id, std::int64_t n);

}  // namespace gar::building
