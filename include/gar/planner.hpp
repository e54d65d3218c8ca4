// GenTree: plans for tree networks, switch by switch (the paper's Section 4), and GenTree+, which searches beyond it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gar/model.hpp"
#include "gar/plan.hpp"
#include "gar/topology.hpp"

namespace gar {

/// One way to combine a switch's children, and what its own stages cost (both halves).
struct SwitchCandidate {
  std::string algorithm;              ///< cps hcps ring rhd acps
  std::vector<std::int64_t> factors;  ///< fan-ins, first stage first
  Terms terms;                        ///< cost of its stages, both halves
};

/// What was decided about the results of a switch's children before they leave.
struct Rearrangement {
  bool is_applied = false;     ///< the results are moved to the subset
  std::int64_t subset = 0;     ///< servers that would hold the results
  double seconds_without = 0;  ///< transfer out of the child as it is
  double seconds_with = 0;     ///< moving to the subset, then the transfer out
  std::string reason;          ///< in words
};

/// What was decided at a switch; identical switches once.
struct SwitchChoice {
  NodeId node = 0;                            ///< the switch, or one of several that are the same
  std::string name;                           ///< its name, for people
  std::int64_t count = 1;                     ///< instances of it in the network
  std::string algorithm;                      ///< the candidate that was taken
  std::vector<std::int64_t> factors;          ///< its fan-ins, first stage first
  bool is_rearranged = false;                 ///< some child's results were moved to a subset first
  Terms terms;                                ///< its own stages, both halves
  std::vector<SwitchCandidate> candidates;    ///< best first
  std::vector<Rearrangement> rearrangements;  ///< one per distinct child that is a switch
  /// Cost of its own stages.
  [[nodiscard]] double seconds() const { return terms.total(); }
};

/// A whole plan that was considered.
struct PlanCandidate {
  std::string algorithm;        ///< as on the command line
  std::int64_t num_chunks = 1;  ///< that it would run in
  double seconds = 0;           ///< predicted
};

/// A planned tree.
struct TreePlan {
  Plan plan;                              ///< the plan itself
  std::vector<PlanCandidate> considered;  ///< gentree+: whole plans that it was compared with, best first
  std::vector<SwitchChoice> switches;     ///< lowest first; the root is last
};

/// How `gentree` works.
struct GenTreeOptions {
  bool rearrange = true;  ///< false: the paper's GenTree*
  ModelOptions model;     ///< the model that it minimises
};

/// Plans a tree by the paper's Algorithms 1 and 2, for a vector of `size_floats` floats of 4 bytes.
TreePlan gentree(const Topology& topology, double size_floats, const GenTreeOptions& options = {});

/// Searches beyond GenTree, for the least cost under the model: never worse than any of the classic algorithms, gentree
/// and gentree-norearrange on the same input. See docs/planner.md for the plans that it searches.
TreePlan gentree_plus(const Topology& topology, double size_floats, const ModelOptions& options = {});

}  // namespace gar
