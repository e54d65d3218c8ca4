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
  Network network;
  std::string counts;  ///< "1e3..1e9"; empty: `sizes` is meant
  std::string sizes;   ///< in bytes, "1kB..1GB"
  std::string dtype;
  std::vector<AlgorithmSpec> algorithms;
  ModelOptions model;
  Policy policy = Policy::kModel;
  double merge = 0;
};

int print_plan_table(const PlanTableArgs& args, const Context& context);

/// The plan of one of several sizes.
struct PlanTableSize {
  VectorSize size;
  std::string algorithm;  ///< "hcps:8x3"
  std::string words;      ///< "root hcps 8x3"
  std::int64_t num_chunks = 1;
  double seconds = 0;
  std::string document;  ///< with --json
};
void print_plan_sizes(const Topology& topology, const std::vector<PlanTableSize>& rows, const Context& context);

}  // namespace gar::cli
