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
  Terms terms;
};

/// What was decided about the results of a switch's children before they leave.
struct Rearrangement {
  bool is_applied = false;
  std::int64_t subset = 0;     ///< servers that would hold the results
  double seconds_without = 0;  ///< transfer out of the child as it is
  double seconds_with = 0;     ///< moving to the subset, then the transfer out
  std::string reason;          ///< in words
};

/// What was decided at a switch; identical switches once.
struct SwitchChoice {
  NodeId node = 0;
  std::string name;
  std::int64_t count = 1;
  std::string algorithm;
  std::vector<std::int64_t> factors;
  bool is_rearranged = false;                 ///< some child's results were moved to a subset first
  Terms terms;                                ///< its own stages, both halves
  std::vector<SwitchCandidate> candidates;    ///< best first
  std::vector<Rearrangement> rearrangements;  ///< one per distinct child that is a switch
  [[nodiscard]] double seconds() const { return terms.total(); }
};

/// A whole plan that was considered.
struct PlanCandidate {
  std::string algorithm;
  std::int64_t num_chunks = 1;
  double seconds = 0;
};

/// A planned tree.
struct TreePlan {
  Plan plan;
  std::vector<PlanCandidate> considered;  ///< gentree+: whole plans that it was compared with, best first
  std::vector<SwitchChoice> switches;     ///< lowest first; the root is last
};

struct GenTreeOptions {
  bool rearrange = true;  ///< false: the paper's GenTree*
  ModelOptions model;
};

/// The paper's Algorithms 1 and 2.
TreePlan gentree(const Topology& topology, double size_floats, const GenTreeOptions& options = {});

/// Searches beyond GenTree, for the least cost under the model: never worse than any of the classic algorithms, gentree
/// and gentree-norearrange on the same input. See docs/planner.md for the plans that it searches.
TreePlan gentree_plus(const Topology& topology, double size_floats, const ModelOptions& options = {});

}  // namespace gar
