// What gar/cuda.hpp says of this machine's GPUs, and its reduction.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "gar/cuda.hpp"
#include "gar/errors.hpp"
#include "runtime/transports/cuda/cuda_call.hpp"
#include "runtime/transports/cuda/kernels.hpp"

namespace gar {
namespace {

void check_pointer(const void* pointer, DataType type, const std::string& what) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto size = static_cast<std::uintptr_t>(size_of(type));
  if (pointer == nullptr) throw InvalidArgument(fmt::format("{} of a reduction is a null pointer", what));
  if (address % size != 0) {
    throw InvalidArgument(fmt::format("{} of a reduction, at {:#x}, is not aligned to the {} bytes of {}", what,
                                      address, size, to_string(type)));
  }
}

/// What several passes, each of which rounds and writes the result, cannot do.
void check_passes(DataType type, ReduceOp op, const void* out, std::span<const void* const> operands) {
  if (size_of(type) == 2 && (op == ReduceOp::kSum || op == ReduceOp::kProd)) {
    throw InvalidArgument(
        fmt::format("{} of {} {} operands on a GPU; expected up to {}, because more would be rounded twice",
                    to_string(op), operands.size(), to_string(type), kMaxDeviceOperands));
  }
  const auto later = std::find(operands.begin() + kMaxDeviceOperands, operands.end(), out);
  if (later != operands.end()) {
    throw InvalidArgument(fmt::format(
        "the result of a reduction of {} operands on a GPU is operand {}; expected one of the first {}, or none",
        operands.size(), later - operands.begin(), kMaxDeviceOperands));
  }
}

}  // namespace

void cuda_reduce(DataType type, ReduceOp op, void* out, std::span<const void* const> operands, std::int64_t count,
                 Stream stream) {
  require_supported_on_device(type, op);
  if (operands.empty()) throw InvalidArgument("a reduction needs at least one operand");
  if (count < 0) throw InvalidArgument(fmt::format("a reduction of {} elements; expected 0 and more", count));
  if (count == 0) return;
  check_pointer(out, type, "the result");
  for (std::size_t k = 0; k < operands.size(); ++k) check_pointer(operands[k], type, fmt::format("operand {}", k));
  if (operands.size() > kMaxDeviceOperands) check_passes(type, op, out, operands);
  const auto cuda_stream = static_cast<CudaStream>(stream.handle);
  if (operands.size() == 1) {
    const DeviceCopy job{out, operands[0], count * size_of(type)};
    launch_copies(std::span(&job, 1), cuda_stream);
    return;
  }
  // What a pass has reduced is the first operand of the next.
  DeviceReduction job{.out = out, .num_operands = 0, .count = count};
  for (const void* operand : operands) {
    if (job.num_operands == kMaxDeviceOperands) {
      launch_reductions(type, op, std::span(&job, 1), cuda_stream);
      job.operands[0] = out;
      job.num_operands = 1;
    }
    job.operands[static_cast<std::size_t>(job.num_operands++)] = operand;
  }
  launch_reductions(type, op, std::span(&job, 1), cuda_stream);
}

bool is_supported_on_cuda(DataType type, ReduceOp op) { return is_supported_on_device(type, op); }

int num_cuda_devices(std::string* why_none) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  static_cast<void>(cudaGetLastError());
  if (why_none != nullptr) {
    int driver_version = 0;
    const bool has_driver = cudaDriverGetVersion(&driver_version) == cudaSuccess && driver_version > 0;
    if (!has_driver) {
      *why_none = "no CUDA driver on this machine";
    } else if (error == cudaSuccess) {
      *why_none = "the CUDA driver shows no GPU";
    } else {
      *why_none = fmt::format("CUDA error {}: {}", static_cast<int>(error), cudaGetErrorString(error));
    }
  }
  return 0;
}

}  // namespace gar
