// One way to get a priced plan from any algorithm, flat or for trees.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/cli/common.hpp"
#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"

namespace gar::cli {

/// A plan with what it costs at the size that it was made for.
struct Planned {
  AlgorithmSpec spec;  ///< with factors
  TreePlan tree;       ///< flat algorithms: one switch, the root
  Terms terms;
  std::int64_t num_considered = 1;
};

/// Plans with one algorithm. Throws InvalidArgument when factors do not fit.
Planned plan_with(const AlgorithmSpec& spec, const Topology& topology, double size_floats, const ModelOptions& options);

/// Adds `--collective`.
CLI::Option* add_collective_option(CLI::App& verb, std::string& collective, const std::string& what);
/// What `--collective` names; its text has been checked.
Collective collective_of(const std::string& text);

/// Reads a plan file; - is standard input. Throws ParseError.
Plan load_plan(const std::string& path);

/// "8x3", "16".
std::string factor_words(const std::vector<std::int64_t>& factors);
/// What was decided, in a few words: "rack hcps 8x3; root cps 16".
std::string plan_words(const TreePlan& tree);

}  // namespace gar::cli
