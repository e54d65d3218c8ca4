// `gar plan --counts`: the best plan as a function of the size.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/cli/common.hpp"
#include "apps/gar/cli/network.hpp"
#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"

namespace gar::cli {

struct PlanTableArgs {
  NetworkArgs network;
  std::string counts;  ///< "1e3..1e9"
  std::string dtype;
  std::vector<AlgorithmSpec> algorithms;
  ModelOptions model;
  Policy policy = Policy::kModel;
};

int print_plan_table(const PlanTableArgs& args, const Context& context);

}  // namespace gar::cli
