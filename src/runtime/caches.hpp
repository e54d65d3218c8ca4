// What short vectors cost in one memory, where the caches hold them.
#pragma once

#include <optional>

#include "gar/topology.hpp"
#include "runtime/transport.hpp"

namespace gar {

/// The topology for vectors that the transport can gather: with the share of beta, gamma and delta that these need.
/// Measured with some gathers, in which all ranks take part; rank 0's word holds. Nothing where vectors are not read in
/// place.
std::optional<Topology> measure_caches(Transport& transport, const Topology& topology);

}  // namespace gar
