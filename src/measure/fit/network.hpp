// Where the ranks of a fit are: the tree that is measured, and what the files say about its origin.
#pragma once

#include <string>
#include <vector>

#include "gar/fit.hpp"
#include "gar/measure/fit.hpp"
#include "gar/measure/world.hpp"

namespace gar::measure {

struct FitNetwork {
  Topology topology;  ///< one server per rank
  double cores = 0;   ///< as in Measurements
  bool is_memory = false;
  OperandAccess access = OperandAccess::kCopied;
  Provenance provenance = {};
  std::vector<int> host_of = {};       ///< of every rank
  bool has_messages = false;           ///< ranks send messages, through MPI or TCP
  std::int64_t ranks_per_machine = 1;  ///< on the fullest one
};
/// Collective. Throws InvalidArgument when the number of servers of the given topology is neither that of ranks nor
/// that of hosts.
FitNetwork find_network(World& world, Control& control, const FitConfig& config);

/// Hosts and the ranks on them as a tree, parameters 0. Where the ranks of a host do not follow each
/// other, all ranks are on one switch.
Topology discovered_topology(const std::vector<int>& host_of);
/// The given network with one server per rank. Throws InvalidArgument.
Topology place_on(const Topology& network, const std::vector<int>& host_of);

/// Cores that the ranks below a lowest switch share; 0: every rank has its own. `num_cores` and `num_ranks` are those
/// of the fullest machine.
double shared_cores(const Topology& topology, double num_cores, double num_ranks);

}  // namespace gar::measure
