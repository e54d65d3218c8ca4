// Communicators over MPI for a caller that knows the job's network, and how many senders a rank may admit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gar/mpi.hpp"
#include "gar/topology.hpp"
#include "runtime/admission.hpp"
#include "runtime/transports/mpi/hosts.hpp"

namespace gar {

/// For a caller that stands in for MPI itself.
struct JobNetwork {
  std::optional<Topology> network;  ///< of the whole job
  std::int64_t server = 0;          ///< where this process is, for communicators of a part of the job
  /// MPI's own function, where the caller has taken its name (and PMPI_Allreduce); null: that name.
  decltype(&PMPI_Allreduce) all_reduce = nullptr;
};

/// Marks an error of the set-up that all ranks get alike, so that one of them can report it for all. (A rank whose own
/// trouble made the others fail gets another error.)
struct FoundAlike {
  virtual ~FoundAlike() = default;
};
template <class Base>
struct AlikeError : Base, FoundAlike {
  using Base::Base;
};

/// As the public function, for calls that the program believes to be MPI's: MPI may be called from whatever thread
/// waits. On the job's network, if it is given, instead of that of the options or the environment. Where the ranks do
/// not follow the network from left to right, it is measured.
Communicator mpi_communicator(MPI_Comm comm, const CommunicatorOptions& options, MpiPath path, const JobNetwork& job);

}  // namespace gar
