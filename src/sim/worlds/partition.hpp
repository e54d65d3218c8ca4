// Ranks and links that cannot be told apart.
//
// A partition of the ranks is right when the members of a class run the same program with peers of the same classes
// over links of the same classes, and every link of a class carries the same flows of the same classes, from equally
// many senders. Then all members of a class do the same at the same time: max-min fair rates are unique, so they
// cannot depend on which member one looks at.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gar/plan.hpp"
#include "sim/network.hpp"

namespace gar::sim {

struct Partition {
  std::vector<std::uint32_t> rank_class;  ///< per rank
  std::vector<std::uint32_t> node_class;  ///< per instance of the tree
  std::vector<std::int32_t> first_rank;   ///< per class
  std::vector<std::int64_t> rank_count;   ///< per class
  std::vector<std::int32_t> first_node;   ///< per class of instances
  std::vector<std::int64_t> node_count;
};

/// Finds classes from the structure of plan and network alone where both are regular (digit stages over equal subtrees;
/// ranks that a what-if singles out cost a few more classes), and elsewhere by colour refinement over the messages.
/// Nothing when there would be more than `most` classes.
std::optional<Partition> find_partition(const PlanIndex& index, const Network& network, std::int64_t most);

}  // namespace gar::sim
