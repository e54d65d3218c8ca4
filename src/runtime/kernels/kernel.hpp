// The inner loops of gar::reduce, one set for each instruction set.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gar/reduction.hpp"

namespace gar {

/// One pass over `num_operands` >= 2 vectors.
struct Pass {
  void* out = nullptr;
  const void* const* operands = nullptr;
  std::int64_t num_operands = 0;
  std::int64_t count = 0;
  bool is_streaming = false;
};
using Kernel = void (*)(const Pass& pass);

struct KernelSet {
  std::string_view name;
  /// Only for supported combinations.
  Kernel (*kernel)(DataType type, ReduceOp op) = nullptr;
  void (*copy_streaming)(void* out, const void* in, std::int64_t bytes) = nullptr;
};

/// Plain loops, for every machine.
KernelSet portable_kernels();
/// Those that were compiled with Google Highway and run on this machine, best first; may be empty.
std::vector<KernelSet> simd_kernels();

}  // namespace gar
