// Topologies in words.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gar/topology.hpp"

namespace gar {

/// "384 servers, 17 switches, 2 levels of links, 3 distinct subtrees, longest path 32.90 ms".
std::string topology_totals(const Topology& topology);

/// Whose figures a network has that nobody has measured: "the paper's parameters: ..."; empty where neither the paper's
/// nor the usual ones are used.
std::string parameter_words(const Topology& topology);

/// Values that are valid but unlikely to be meant, one sentence each, at most `max_remarks`.
std::vector<std::string> topology_remarks(const Topology& topology, std::size_t max_remarks = 10);

}  // namespace gar
