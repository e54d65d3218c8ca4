// Reductions and copies on the memory of a GPU, in the order of a stream.
//
// Jobs of one call are independent of each other: many of them share a launch, because a launch costs microseconds and
// a step of a plan may have one small piece from every peer.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "gar/reduction.hpp"

struct CUstream_st;

namespace gar {

using CudaStream = CUstream_st*;

/// Operands of one pass.
inline constexpr int kMaxDeviceOperands = 64;

/// out[i] = operands[0][i] op operands[1][i] op ... from left to right.
struct DeviceReduction {
  void* out = nullptr;
  std::array<const void*, kMaxDeviceOperands> operands{};
  int num_operands = 0;  ///< at least 2
  std::int64_t count = 0;
};
struct DeviceCopy {
  void* out = nullptr;
  const void* in = nullptr;
  std::int64_t bytes = 0;
};

/// float16, bfloat16, float32, float64, int8, uint8, int32, uint32, int64 and uint64 with sum, prod, min and max.
bool is_supported_on_device(DataType type, ReduceOp op);
/// Throws InvalidArgument with what is accepted.
void require_supported_on_device(DataType type, ReduceOp op);

/// What gar::reduce promises holds bit for bit: 16-bit floats are accumulated in float and rounded once, integers wrap
/// around, min and max give NaN when an operand is NaN; `out` may be one of its own operands; pointers are aligned to
/// their type only. Both return when the work is in the stream. They throw DeviceError when CUDA refuses.
void launch_reductions(DataType type, ReduceOp op, std::span<const DeviceReduction> jobs, CudaStream stream);
void launch_copies(std::span<const DeviceCopy> jobs, CudaStream stream);

/// CUDA loads a kernel when it is launched for the first time, and may wait for all streams of the process to do so.
/// Streams that wait for other ranks would then wait for ever: load all kernels for the current device before. Throws
/// DeviceError.
void load_kernels();

}  // namespace gar
