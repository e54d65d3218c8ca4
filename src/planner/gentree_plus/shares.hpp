// Plans in which every rank owns the share of the vector that fits what it, and the links above it, can do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "gar/planner.hpp"
#include "planner/fragment.hpp"

namespace gar::plus {

/// A plan with unequal shares and what was decided at its switches.
struct SharedPlan {
  FragmentPtr fragment;
  std::vector<SwitchChoice> switches;                     ///< lowest first; without terms until price_switches
  std::vector<std::pair<FragmentPtr, NodeId>> fragments;  ///< by switch: the plan of everything below it
};

/// How SharedPlans look.
struct ShareOptions {
  std::int64_t most_members = 0;  ///< of a group that exchanges in one step; more children are nested
  double strength = 1;            ///< 1: shares that fit; 0: equal ones; between them a mixture
  bool is_flat = false;           ///< servers exchange as if they were all below one switch
  bool is_whole = true;           ///< shares that fit an AllReduce; false: the half of it that is planned
};

/// Seconds of a plan.
using PriceOf = std::function<double(const FragmentPtr&)>;

/// Do the children of some switch differ, so that shares may, too?
bool may_share_unequally(const Topology& topology);
/// The cheapest of these variants; nothing where the shares that fit are equal. Then up to `num_refined` prices are
/// spent on moving a little from one child to another. O(servers * height) for the shares of a variant.
std::optional<SharedPlan> plan_with_shares(const Topology& topology, const ModelOptions& options,
                                           const std::vector<ShareOptions>& variants, std::int64_t num_units,
                                           const PriceOf& price, int num_refined);
/// Fills in what the stages of its switches cost.
void price_switches(SharedPlan& plan, const Topology& topology, double size_floats, const ModelOptions& options,
                    std::int64_t num_units);

}  // namespace gar::plus
