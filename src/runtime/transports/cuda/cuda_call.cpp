#include "runtime/transports/cuda/cuda_call.hpp"

#include <fmt/format.h>

#include "gar/errors.hpp"

namespace gar {

std::string to_text(cudaError_t error) {
  return fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
}

void throw_cuda_error(cudaError_t error, std::string_view what) {
  static_cast<void>(cudaGetLastError());
  throw DeviceError(fmt::format("{}: {}", what, to_text(error)));
}

std::string bytes_text(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.0f} bytes", bytes);
  if (bytes < 1e6) return fmt::format("{:.3g} kB", 1e-3 * bytes);
  return bytes < 1e9 ? fmt::format("{:.3g} MB", 1e-6 * bytes) : fmt::format("{:.4g} GB", 1e-9 * bytes);
}

}  // namespace gar
