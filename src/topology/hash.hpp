// A number that stands for a whole topology, for comparisons between ranks.
#pragma once

#include <cstdint>

#include "gar/topology.hpp"

namespace gar {

/// Equal for equal trees (names, parameters and children), on every rank of a job. O(stored nodes and runs).
std::uint64_t hash_of(const Topology& topology);

}  // namespace gar
