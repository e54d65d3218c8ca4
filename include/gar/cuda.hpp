// AllReduce, ReduceScatter and AllGather on the memory of GPUs, between the processes of a host. Link gar::cuda. See
// docs/gpu.md.
//
//   cudaSetDevice(gpu);
//   gar::Communicator comm = gar::cuda_communicator("job42", rank, size);
//   comm.all_reduce(gradient, gradient, n, gar::DataType::kFloat32, gar::ReduceOp::kSum, gar::Stream{stream});
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gar/communicator.hpp"

namespace gar {

/// Joins the processes of this host that call this with the same `name` and `size`, as shared_memory_communicator does;
/// each takes part with the CUDA device that is current. Peers' buffers are read where they lie (CUDA IPC): no copy, no
/// staging memory. Buffers must come from cudaMalloc. All ranks end their communicators at about the same time. Throws
/// DeviceError when there is no GPU.
Communicator cuda_communicator(std::string_view name, int rank, int size, const CommunicatorOptions& options = {});

/// gar::reduce on device memory, in the order of a stream; returns at once. Throws DeviceError when CUDA refuses.
void cuda_reduce(DataType type, ReduceOp op, void* out, std::span<const void* const> operands, std::int64_t count,
                 Stream stream);

/// float16, bfloat16, float32, float64 and integers of 8, 32 and 64 bits; sum, prod, min, max.
bool is_supported_on_cuda(DataType type, ReduceOp op);

/// GPUs that this process can use; 0 with the reason in `why_none`.
int num_cuda_devices(std::string* why_none = nullptr);

}  // namespace gar
