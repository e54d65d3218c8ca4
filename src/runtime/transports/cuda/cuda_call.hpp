// CUDA's error codes as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

namespace gar {

/// "out of memory (cudaErrorMemoryAllocation)"
std::string to_text(cudaError_t error);

/// Throws DeviceError: "cudaMalloc of 1.5 GB on device 0: out of memory (cudaErrorMemoryAllocation)". Forgets the error
/// before that, so that it does not show up in a later call; errors that the device cannot recover from stay.
[[noreturn]] void throw_cuda_error(cudaError_t error, std::string_view what);

/// `what` says what was tried.
inline void check_cuda(cudaError_t error, std::string_view what) {
  if (error != cudaSuccess) throw_cuda_error(error, what);
}

/// The same, where words cost something: `describe()` gives them, and is called on failure only.
template <class Describe>
requires requires(Describe describe) { std::string(describe()); }
void check_cuda(cudaError_t error, Describe describe) {
  if (error != cudaSuccess) throw_cuda_error(error, describe());
}

/// "1.5 GB", "64 bytes"
std::string bytes_text(double bytes);

}  // namespace gar
