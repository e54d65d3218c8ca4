// Communicators between hosts without MPI: shared memory between the ranks of a host, TCP between hosts. Link gar::tcp.
// See docs/tcp.md.
//
//   gar::Communicator comm = gar::communicator_from_environment();  // as torchrun, srun or mpirun have started it
//   comm.all_reduce(gradient);
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gar/communicator.hpp"
#include "gar/store.hpp"

namespace gar {

/// How the ranks of a TCP communicator reach each other.
enum class TcpPath {
  kHierarchy,  ///< shared memory inside a host, TCP between hosts
  kMessages,   ///< TCP everywhere
};

/// What is particular to TCP.
struct TcpOptions {
  TcpPath path = TcpPath::kHierarchy;  ///< the same on all ranks
  /// The interface that the job uses, by name ("eth0") or network ("10.0.0.0/8", "fd00::/8"). Sockets are bound to it.
  /// Empty: GAR_INTERFACE, or else the way to the store's server, or else the first interface that is up.
  std::string interface;
  /// What the ranks of the job share and nobody else knows, 16 characters at least; the same on all ranks. Empty: that
  /// of the store, or else rank 0 makes one and puts it into the store.
  std::string secret;
};

/// Is this library built with TCP (it needs OpenSSL)? Without it the functions below, and StoreServer, tcp_store and
/// make_secret, throw TransportError.
bool has_tcp();

/// Joins the processes that call this with the same store, `name` and `size`. `name` is new for every communicator
/// that is made with a store: letters, digits, '-', '_', '.'; at most 100. Returns when all have joined. Throws
/// TransportError when one does not within the timeout.
Communicator tcp_communicator(Store& store, std::string_view name, int rank, int size,
                              const CommunicatorOptions& options = {}, const TcpOptions& tcp = {});

/// Joins a communicator of this store and `name` that is at work already: waits until its members take this process in
/// with Communicator::grow, this long at most. Its members have OnFailure::kShrinkAndGrow; what decides how operations
/// run (algorithm, `reproducible`, path) comes from them, and the time limit, the staging memory and the log from
/// `options`. Throws TransportError when nobody takes it in. With OnFailure::kShrinkAndGrow the store must live as long
/// as the communicator, here and above.
Communicator join_tcp(Store& store, std::string_view name, double limit_s, const CommunicatorOptions& options = {},
                      const TcpOptions& tcp = {});

/// What a launcher has told this process.
struct EnvironmentJob {
  int rank = 0;            ///< of this process
  int size = 1;            ///< ranks of the job
  std::string store;       ///< as in GAR_STORE; empty: nobody has said
  bool may_serve = false;  ///< rank 0 makes the store's server, at this address
};
/// The job that the environment describes: RANK and WORLD_SIZE (torchrun and others), or those of Open MPI, MPICH
/// (Hydra) and Slurm; GAR_STORE, or MASTER_ADDR and MASTER_PORT. Nothing: none. Throws InvalidArgument when they make
/// no sense.
std::optional<EnvironmentJob> environment_job();

/// All ranks of that job; every call makes another communicator. The store stays open until the process ends. Throws
/// InvalidArgument when there is no job, and says what is missing.
Communicator communicator_from_environment(const CommunicatorOptions& options = {}, const TcpOptions& tcp = {});

/// Joins the first communicator of that job, which is at work already, as join_tcp does. The process needs no rank: the
/// environment says where the store is, with GAR_STORE, or MASTER_ADDR and MASTER_PORT.
Communicator join_from_environment(double limit_s, const CommunicatorOptions& options = {}, const TcpOptions& tcp = {});

}  // namespace gar
