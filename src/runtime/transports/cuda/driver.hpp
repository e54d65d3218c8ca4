// Functions of the CUDA driver that the runtime library has no name for. They are looked up, so that nothing is linked
// to libcuda and programs start on machines without a GPU.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace gar {

struct DriverFunctions {
  CUresult (*stream_batch_mem_op)(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned) = nullptr;
  CUresult (*get_address_range)(CUdeviceptr*, std::size_t*, CUdeviceptr) = nullptr;
  CUresult (*pointer_attribute)(void*, CUpointer_attribute, CUdeviceptr) = nullptr;
  CUresult (*error_string)(CUresult, const char**) = nullptr;
};

/// Throws DeviceError when the driver is too old, or not there.
const DriverFunctions& driver();

/// Throws DeviceError.
void check_driver(CUresult result, const char* what);

inline CUdeviceptr device_address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

}  // namespace gar
