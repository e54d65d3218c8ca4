// The C interface for jobs without MPI. In libgar_c, and in gar::tcp. See docs/tcp.md.
#ifndef GAR_GAR_TCP_H
#define GAR_GAR_TCP_H

#include "gar/gar.h"

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/// A store of keys and values that all ranks of a job see, as functions of the caller.
typedef struct gar_store {
  /// Sets a key to `bytes` bytes; 0 on success.
  int (*set)(const char* key, const void* value, size_t bytes, void* user);
  /// Waits until the key is set, for `timeout_s` at most. Writes up to `capacity` bytes of it to `value`, and how many
  /// it has to `bytes`; 0 on success. Called again with more room when there was too little.
  int (*get)(const char* key, double timeout_s, void* value, size_t capacity, size_t* bytes, void* user);
  void* user;  ///< handed to both
} gar_store;

/// Makes a communicator of the processes that call this with the same store, `name` and `size`; `name` is new for every
/// communicator of a store. `interface`: the interface to use, by name or network ("eth0", "10.0.0.0/8"); NULL: chosen.
/// `options` may be NULL. Returns when all have joined, or with GAR_ERROR_TRANSPORT when one does not in time. The
/// functions are called later only by gar_comm_grow.
gar_status gar_comm_create_tcp(const gar_store* store, const char* name, int rank, int size, const char* interface,
                               const gar_options* options, gar_comm** comm);

/// The same for the job that the launcher has described in the environment (docs/tcp.md).
gar_status gar_comm_create_from_environment(const gar_options* options, gar_comm** comm);

/// Joins a communicator of this store and `name` that is at work already: waits until its members take this process in
/// with gar_comm_grow, `limit_s` seconds at most, or returns GAR_ERROR_TRANSPORT. What decides how operations run comes
/// from the members, and the time limit, the staging memory and the log from `options`.
gar_status gar_comm_join_tcp(const gar_store* store, const char* name, double limit_s, const char* interface,
                             const gar_options* options, gar_comm** comm);

/// The same for the first communicator of the job that GAR_STORE, or MASTER_ADDR and MASTER_PORT, name.
gar_status gar_comm_join_from_environment(double limit_s, const gar_options* options, gar_comm** comm);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif  // GAR_GAR_TCP_H
