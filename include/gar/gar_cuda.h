// The C interface for the memory of GPUs. Link gar::cuda, and gar::nccl for what has nccl in its name. No header of
// CUDA or NCCL is needed: streams are void*. See docs/gpu.md.
#ifndef GAR_GAR_CUDA_H
#define GAR_GAR_CUDA_H

#include "gar/gar.h"

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/// Joins the processes of this host that call this with the same `name` and `size`; each takes part with the CUDA
/// device that is current, and peers read each other's buffers where they lie (memory of cudaMalloc). `options` may be
/// NULL here and below. GAR_ERROR_DEVICE when there is no GPU. Operations with a stream: gar_all_reduce_on_stream etc.
gar_status gar_comm_create_cuda(const char* name, int rank, int size, const gar_options* options, gar_comm** comm);
/// The same with NCCL between the ranks. Ranks that share a GPU need a different NCCL_HOSTID each.
gar_status gar_comm_create_nccl(const char* name, int rank, int size, const gar_options* options, gar_comm** comm);
/// On an ncclComm_t that the caller has made, with its device current, and keeps until `comm` is freed. A collective
/// call.
gar_status gar_comm_create_nccl_on(void* nccl_comm, const gar_options* options, gar_comm** comm);

/// gar_reduce on device memory, in the order of `stream`, a cudaStream_t (NULL: CUDA's default stream); returns at
/// once.
gar_status gar_cuda_reduce(gar_type type, gar_op op, void* out, const void* const* operands, int num_operands,
                           int64_t count, void* stream);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif  // GAR_GAR_CUDA_H
