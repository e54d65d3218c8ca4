// Flat algorithms, which treat the network as one switch, in the form in which tree plans are described.
#pragma once

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "gar/topology.hpp"

namespace gar {

/// A flat algorithm as what was decided at the root.
SwitchChoice flat_choice(const Topology& topology, const AlgorithmSpec& spec, const Terms& terms);

}  // namespace gar
