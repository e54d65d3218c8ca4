// The runtime for C (C99) and for everything that can call C.
//
//   gar_comm* comm;
//   gar_comm_create_shm("job42", rank, size, NULL, &comm);          // every process of the host
//   gar_all_reduce(comm, GAR_IN_PLACE, gradient, n, GAR_FLOAT32, GAR_SUM);
//   gar_comm_free(comm);
//
// Functions return GAR_OK or say what is wrong: the code says of which kind, gar_last_error() in words. They promise
// what the C++ interface (gar/communicator.hpp) promises: every rank makes the same calls in the same order, and a
// communicator and its requests are used by one thread at a time. See docs/runtime.md; gar/gar_mpi.h is for MPI
// programs.
#ifndef GAR_GAR_H
#define GAR_GAR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/// What a function returns: GAR_OK or one of the errors below.
typedef int gar_status;
/// What every element of a vector is.
typedef int gar_type;
/// How elements are combined.
typedef int gar_op;

/// The values of gar_status.
enum {
  GAR_OK = 0,               ///< done
  GAR_ERROR_ARGUMENT = 1,   ///< a value that is not accepted; nothing has been done
  GAR_ERROR_TRANSPORT = 2,  ///< a peer died, does not answer, or made another call; the communicator is unusable
  GAR_ERROR_PLAN = 3,       ///< the plan is malformed, or does not fit the communicator
  GAR_ERROR_PARSE = 4,      ///< a file cannot be read, or is not what its format allows
  GAR_ERROR_MEMORY = 5,     ///< out of memory
  GAR_ERROR_INTERNAL = 6,   ///< none of the others: a defect of the library
  GAR_ERROR_DEVICE = 7      ///< a GPU cannot do it (no driver, no memory); it has begun on no rank, and all are told
};

/// The values of gar_type.
enum {
  GAR_INT8 = 0,
  GAR_UINT8 = 1,
  GAR_INT16 = 2,
  GAR_UINT16 = 3,
  GAR_INT32 = 4,
  GAR_UINT32 = 5,
  GAR_INT64 = 6,
  GAR_UINT64 = 7,
  GAR_FLOAT16 = 8,   ///< IEEE binary16; added up in float
  GAR_BFLOAT16 = 9,  ///< the upper half of a float; added up in float
  GAR_FLOAT32 = 10,
  GAR_FLOAT64 = 11
};

/// The values of gar_op. Bitwise and logical operators are for integers only; logical ones give 0 or 1.
enum {
  GAR_SUM = 0,
  GAR_PROD = 1,
  GAR_MIN = 2,
  GAR_MAX = 3,
  GAR_BAND = 4,
  GAR_BOR = 5,
  GAR_BXOR = 6,
  GAR_LAND = 7,
  GAR_LOR = 8,
  GAR_LXOR = 9
};

/// A communicator: this rank's end of a group of ranks.
typedef struct gar_comm gar_comm;
/// A non-blocking or persistent operation.
typedef struct gar_request gar_request;

/// "0.1.0"
const char* gar_version(void);
/// What went wrong in the last function that failed on this thread; "" when none has. Valid until the next one fails.
const char* gar_last_error(void);
/// "GAR_OK", "GAR_ERROR_ARGUMENT", ...; "unknown" for other values.
const char* gar_status_name(gar_status status);
/// Bytes of one element; 0 for a value that is no type.
size_t gar_type_size(gar_type type);

/// How a communicator works. Start from GAR_OPTIONS_INIT, so that a program also works with later versions, which may
/// have more fields: gar_options options = GAR_OPTIONS_INIT;
typedef struct gar_options {
  size_t size;  ///< sizeof(gar_options); GAR_OPTIONS_INIT fills it in
  const char*
      algorithm;  ///< as on the command line ("ring", "hcps:4x2"); NULL: GAR_ALGO, or else the best for each size
  const char* plan_file;  ///< run this AllReduce plan; NULL: none
  const char*
      topology;      ///< a topology file, or as on the command line ("star:8"); NULL: GAR_TOPOLOGY, or else built in
  int reproducible;  ///< not 0: the same bits for any number of ranks, plan and transport; slower
  double timeout_s;  ///< a peer that does not answer for this long is an error
  int64_t staging_bytes;  ///< shared memory of each rank; 0: chosen from the caches of the machine
  int64_t latency_bytes;  ///< vectors up to this many bytes are gathered at once; -1: the model decides; 0: never
  /// Gets one line of text for every note: which plan runs and why. NULL: none, or standard error with GAR_DEBUG=INFO.
  /// Threads that the library has started may call it as well.
  void (*log)(const char* text, void* user);
  void* log_user;  ///< handed to `log`
  /// One of GAR_ON_FAILURE_REPORT and so on: what happens when a rank dies or is silent (docs/failures.md).
  int on_failure;
} gar_options;

/// The values of gar_options.on_failure.
enum {
  GAR_ON_FAILURE_REPORT = 0,          ///< every rank gets GAR_ERROR_TRANSPORT; the communicator is over
  GAR_ON_FAILURE_SHRINK = 1,          ///< the others agree who is left, run the operation again and go on
  GAR_ON_FAILURE_SHRINK_AND_GROW = 2  ///< the same, and gar_comm_grow takes newcomers in; over TCP (gar_tcp.h)
};

/// The defaults.
#define GAR_OPTIONS_INIT \
  { sizeof(gar_options), NULL, NULL, NULL, 0, 30.0, 0, -1, NULL, NULL, GAR_ON_FAILURE_REPORT }

/// Makes one communicator for each of num_ranks threads of this process: comms[0 .. num_ranks - 1]. `options` may be
/// NULL here and below. On failure nothing is written.
gar_status gar_comm_create_threads(int num_ranks, const gar_options* options, gar_comm** comms);
/// Joins the processes of this host that call this with the same `name` (letters, digits, '-', '_', '.') and `size`.
/// Returns when all have joined, or with GAR_ERROR_TRANSPORT when one does not join within the timeout.
gar_status gar_comm_create_shm(const char* name, int rank, int size, const gar_options* options, gar_comm** comm);
/// Completes what is under way, then frees. NULL is allowed. Free the requests of a communicator first.
void gar_comm_free(gar_comm* comm);
/// From 0 to gar_comm_size - 1; -1 when `comm` is NULL.
int gar_comm_rank(const gar_comm* comm);
/// The number of ranks; -1 when `comm` is NULL.
int gar_comm_size(const gar_comm* comm);
/// Who belongs to a communicator that may shrink or grow. Returns gar_comm_size, and writes the ranks that they had
/// when the communicator was made (newcomers have numbers that nobody has had before), in ascending order, `capacity`
/// of them at most, to `ranks` (may be NULL with 0), and to `generation` (may be NULL) a number that grows when ranks
/// are lost or newcomers taken in. -1 when `comm` is NULL.
int gar_comm_members(const gar_comm* comm, int* ranks, int capacity, uint64_t* generation);
/// Takes in the newcomers that wait (gar_comm_join_tcp), behind the others; a barrier, for all ranks. *num_new (may be
/// NULL) becomes how many are members now; why others are not goes to options.log. The communicator stays as it is
/// where nobody waits, or newcomers die meanwhile. Needs GAR_ON_FAILURE_SHRINK_AND_GROW.
gar_status gar_comm_grow(gar_comm* comm, int* num_new);

/// Stands for `in` when the operands lie where the result goes:
/// gar_all_reduce: in `out`. gar_reduce_scatter: in `out`, which then has size * block_count elements, and the result
/// goes to its first block. gar_all_gather: in this rank's block of `out`.
#define GAR_IN_PLACE ((const void*)&gar_in_place_address)
/// Only its address has a meaning: use GAR_IN_PLACE.
extern const char gar_in_place_address;

/// out = in of all ranks combined, `count` elements each. `out` may be `in`. Buffers are host memory, or device memory
/// on communicators of gar_cuda.h; complete when the function returns, here and below.
gar_status gar_all_reduce(gar_comm* comm, const void* in, void* out, int64_t count, gar_type type, gar_op op);
/// Rank r gets block r of the combined vector, which has size * block_count elements. `out` may be a block of `in`.
gar_status gar_reduce_scatter(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type, gar_op op);
/// out = the blocks (block_count elements each) of all ranks in the order of ranks. `in` may be this rank's block of
/// `out`.
gar_status gar_all_gather(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type);
/// No rank returns before every rank has called it.
gar_status gar_barrier(gar_comm* comm);

/// The root's `count` elements at `data` to every rank. On host memory only, here and below.
gar_status gar_broadcast(gar_comm* comm, void* data, int64_t count, gar_type type, int root);
/// The root's out = in of all ranks combined. On the root `in` may be GAR_IN_PLACE; on the others `out` may be NULL.
gar_status gar_reduce_to(gar_comm* comm, const void* in, void* out, int64_t count, gar_type type, gar_op op, int root);
/// Rank r gets block r of the root's `in`, which may be NULL on the others. The root's `out` may be its block of `in`.
gar_status gar_scatter(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type, int root);
/// The root's out = the blocks of all ranks in the order of ranks. On the root `in` may be GAR_IN_PLACE: it lies in its
/// block of `out`; on the others `out` may be NULL.
gar_status gar_gather(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type, int root);
/// Block r of `out` becomes this rank's block of rank r's `in`.
gar_status gar_all_to_all(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type);
/// The same with blocks of different lengths, which follow each other: in_counts[r] elements for rank r, and
/// out_counts[r] from it.
gar_status gar_all_to_all_v(gar_comm* comm, const void* in, const int64_t* in_counts, void* out,
                            const int64_t* out_counts, gar_type type);
/// On a communicator of two ranks: the other one calls gar_receive with the same count and type.
gar_status gar_send(gar_comm* comm, const void* data, int64_t count, gar_type type);
/// The other end of gar_send.
gar_status gar_receive(gar_comm* comm, void* data, int64_t count, gar_type type);

/// On communicators of gar/gar_cuda.h: gar_all_reduce in the order of `stream`, a cudaStream_t (NULL: CUDA's default
/// stream); returns when the operation is in the stream. GAR_ERROR_ARGUMENT on communicators for host memory.
gar_status gar_all_reduce_on_stream(gar_comm* comm, const void* in, void* out, int64_t count, gar_type type, gar_op op,
                                    void* stream);
/// gar_reduce_scatter in the order of a stream.
gar_status gar_reduce_scatter_on_stream(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                        gar_op op, void* stream);
/// gar_all_gather in the order of a stream.
gar_status gar_all_gather_on_stream(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                    void* stream);
/// Returns when everything in the stream is done; unlike cudaStreamSynchronize it notices a peer that has died or
/// failed, and returns GAR_ERROR_TRANSPORT.
gar_status gar_stream_synchronize(gar_comm* comm, void* stream);

/// gar_all_reduce that returns at once. The buffers must live, and must not be touched, until the request is complete.
/// On failure nothing is written to `request`.
gar_status gar_all_reduce_start(gar_comm* comm, const void* in, void* out, int64_t count, gar_type type, gar_op op,
                                gar_request** request);
/// gar_reduce_scatter that returns at once.
gar_status gar_reduce_scatter_start(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                    gar_op op, gar_request** request);
/// gar_all_gather that returns at once.
gar_status gar_all_gather_start(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                gar_request** request);

/// gar_broadcast that returns at once.
gar_status gar_broadcast_start(gar_comm* comm, void* data, int64_t count, gar_type type, int root,
                               gar_request** request);
/// gar_reduce_to that returns at once.
gar_status gar_reduce_to_start(gar_comm* comm, const void* in, void* out, int64_t count, gar_type type, gar_op op,
                               int root, gar_request** request);
/// gar_scatter that returns at once.
gar_status gar_scatter_start(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type, int root,
                             gar_request** request);
/// gar_gather that returns at once.
gar_status gar_gather_start(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type, int root,
                            gar_request** request);
/// gar_all_to_all that returns at once.
gar_status gar_all_to_all_start(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                gar_request** request);
/// gar_send that returns at once.
gar_status gar_send_start(gar_comm* comm, const void* data, int64_t count, gar_type type, gar_request** request);
/// gar_receive that returns at once.
gar_status gar_receive_start(gar_comm* comm, void* data, int64_t count, gar_type type, gar_request** request);

/// Plans a gar_all_reduce that gar_request_start runs, as often as needed.
gar_status gar_all_reduce_prepare(gar_comm* comm, const void* in, void* out, int64_t count, gar_type type, gar_op op,
                                  gar_request** request);
/// Plans a gar_reduce_scatter that gar_request_start runs.
gar_status gar_reduce_scatter_prepare(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                      gar_op op, gar_request** request);
/// Plans a gar_all_gather that gar_request_start runs.
gar_status gar_all_gather_prepare(gar_comm* comm, const void* in, void* out, int64_t block_count, gar_type type,
                                  gar_request** request);

/// Starts a prepared operation (again). GAR_ERROR_ARGUMENT while it is running.
gar_status gar_request_start(gar_request* request);
/// *is_complete becomes 1 when the operation has finished, 0 while it runs. Returns what the operation failed with.
gar_status gar_request_test(gar_request* request, int* is_complete);
/// Returns when the operation has finished, with what it failed with.
gar_status gar_request_wait(gar_request* request);
/// Waits, then frees. NULL is allowed.
void gar_request_free(gar_request* request);

/// Without any communicator: out[i] = operands[0][i] op operands[1][i] op ... in one pass over memory. `out` may be one
/// of the operands.
gar_status gar_reduce(gar_type type, gar_op op, void* out, const void* const* operands, int num_operands,
                      int64_t count);

/// Without any communicator: what the algorithms cost on a network, best first. `topology`: a file, or as on the
/// command line ("tree:16x24"). `algorithms`: as on the command line ("ring,hcps:8x3"); NULL: all. *json becomes the
/// document that gar predict --json prints (schema gar.predict/1); free it with gar_text_free. On failure nothing is
/// written, here and below.
gar_status gar_predict(const char* topology, int64_t count, gar_type type, const char* algorithms, char** json);
/// The plan of an AllReduce for a network. `algorithm`: NULL is gentree+. *json becomes the plan file that gar plan -o
/// writes, which gar_verify reads and which options.plan_file can name; free it with gar_text_free.
gar_status gar_plan(const char* topology, int64_t count, gar_type type, const char* algorithm, char** json);
/// Proves a plan. `plan`: the path of a plan file, or the text of one, which begins with '{'. *is_proved becomes 1 when
/// it is correct and 0 when it is not. *json becomes the document that gar verify --json prints (schema gar.verify/1),
/// with the first counter-example; free it with gar_text_free. `json` may be NULL.
gar_status gar_verify(const char* plan, int* is_proved, char** json);
/// Frees what one of these has written. NULL is allowed.
void gar_text_free(char* text);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif  // GAR_GAR_H
