// A topology for people: the tree with identical siblings folded.
#pragma once

#include <string>

#include "gar/topology.hpp"

namespace gar::cli {

struct TopoShowOptions {
  bool color = false;
  bool full = false;   ///< no limits on the number of lines
  bool greek = false;  ///< parameters as in files: beta, epsilon, gamma, delta, mu
};

/// The drawing that `gar topo show` prints. Its size follows the distinct subtrees, with a limit on top.
std::string draw_topology(const Topology& topology, const TopoShowOptions& options);

}  // namespace gar::cli
