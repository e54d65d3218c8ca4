#include "runtime/transports/cuda/driver.hpp"

#include <fmt/format.h>

#include "gar/errors.hpp"
#include "runtime/transports/cuda/cuda_call.hpp"

namespace gar {

namespace {

constexpr unsigned kVersion =
    12000;  // of the driver's interface: batches of memory operations as they are since CUDA 12

template <class Function>
void look_up(Function& function, const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &address, kVersion, cudaEnableDefault, &found);
  if (error != cudaSuccess) throw_cuda_error(error, fmt::format("looking for {} in the CUDA driver", name));
  if (address == nullptr) {
    throw DeviceError(fmt::format("the CUDA driver has no {}; expected drivers for CUDA 12 and later", name));
  }
  function = reinterpret_cast<Function>(address);
}

DriverFunctions load() {
  DriverFunctions functions;
  look_up(functions.stream_batch_mem_op, "cuStreamBatchMemOp");
  look_up(functions.get_address_range, "cuMemGetAddressRange");
  look_up(functions.pointer_attribute, "cuPointerGetAttribute");
  look_up(functions.error_string, "cuGetErrorString");
  return functions;
}

}  // namespace

const DriverFunctions& driver() {
  static const DriverFunctions kFunctions = load();
  return kFunctions;
}

void check_driver(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  static_cast<void>(driver().error_string(result, &text));
  throw DeviceError(
      fmt::format("{}: {} (CUDA error {})", what, text == nullptr ? "unknown" : text, static_cast<int>(result)));
}

}  // namespace gar
