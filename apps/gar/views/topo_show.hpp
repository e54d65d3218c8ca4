// A topology for people: the tree with identical siblings folded, totals, and remarks about odd values.
#pragma once

#include <string>
#include <vector>

#include "apps/gar/views/json_output.hpp"
#include "gar/topology.hpp"

namespace gar::cli {

struct TopoShowOptions {
  bool color = false;
  bool full = false;  ///< no limits on the number of lines
};

/// The drawing that `gar topo show` prints. Its size follows the distinct subtrees, with a limit on top.
std::string draw_topology(const Topology& topology, const TopoShowOptions& options);

/// "384 servers, 17 switches, 2 levels of links, 3 distinct subtrees, longest path 32.90 ms".
std::string topology_totals(const Topology& topology);

/// Values that are valid but unlikely to be meant, one sentence each, at most `max_remarks`.
std::vector<std::string> topology_remarks(const Topology& topology, std::size_t max_remarks = 10);

/// Fills `document` with totals and one entry per distinct subtree.
void add_topology_json(const Topology& topology, Json& document);

}  // namespace gar::cli
