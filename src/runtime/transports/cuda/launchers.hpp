// The two families of reduction kernels, as launch_reductions sees them.
#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "runtime/transports/cuda/kernels.hpp"

namespace gar::device {

struct Half;
struct Bhalf;

/// Sums of up to this many operands have kernels of their own for each number of them, which read all operands before
/// they add the first two.
inline constexpr int kMaxFixedOperands = 16;

/// Sums of floating point numbers, with at most kMaxFixedOperands operands that are aligned like the output.
bool is_fixed(DataType type, ReduceOp op, const DeviceReduction& job);

/// Launch those jobs that are fixed, those that are not.
template <class T>
cudaError_t launch_fixed_sums(DataType type, std::span<const DeviceReduction> jobs, CudaStream stream);
extern template cudaError_t launch_fixed_sums<float>(DataType, std::span<const DeviceReduction>, CudaStream);
extern template cudaError_t launch_fixed_sums<double>(DataType, std::span<const DeviceReduction>, CudaStream);
extern template cudaError_t launch_fixed_sums<Half>(DataType, std::span<const DeviceReduction>, CudaStream);
extern template cudaError_t launch_fixed_sums<Bhalf>(DataType, std::span<const DeviceReduction>, CudaStream);

cudaError_t launch_others(DataType type, ReduceOp op, std::span<const DeviceReduction> jobs, CudaStream stream);

cudaError_t launch_copy_kernel(std::span<const DeviceCopy> jobs, CudaStream stream);

/// Parts of load_kernels.
template <class T>
cudaError_t load_fixed_sums();
extern template cudaError_t load_fixed_sums<float>();
extern template cudaError_t load_fixed_sums<double>();
extern template cudaError_t load_fixed_sums<Half>();
extern template cudaError_t load_fixed_sums<Bhalf>();
cudaError_t load_others();

}  // namespace gar::device
