// What two levels of uneven groups cost at least, so that most of them need not be priced message by message.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gar/model.hpp"
#include "planner/footprint.hpp"

namespace gar {

/// Equal children in groups as even as possible, which are not all equal. Every child's active ranks hold one interval
/// each, all of them equally long.
struct UnevenGroups {
  std::int64_t num_children = 0;
  std::int64_t groups = 0;
  std::int64_t large = 0;      ///< children of the largest group
  double pair_latency = 0;     ///< of the longest path between two children
  bool all_are_active = true;  ///< every rank of a child is
};

struct GroupsFloor {
  Footprint footprint;  ///< in chunks
  double whole = 0;     ///< in one piece, seconds
  [[nodiscard]] double seconds(double size_floats, std::int64_t chunks) const {
    return chunks == 1 ? whole : footprint.pipelined_seconds(size_floats, chunks);
  }
};
/// `child` is the footprint of one of them, as priced.
GroupsFloor groups_floor(const Footprint& child, const UnevenGroups& uneven, double size_floats,
                         const ModelOptions& options);

/// A server that nothing is better of than of all of these, for children that differ.
Footprint best_server(const Footprint& servers);

}  // namespace gar
