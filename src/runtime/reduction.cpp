// The way into the kernels.
#include "gar/reduction.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>

#include "gar/errors.hpp"
#include "runtime/kernels/half.hpp"
#include "runtime/kernels/kernel.hpp"

namespace gar {
namespace {

const KernelSet& best_kernels() {
  static const KernelSet kBest = [] {
    const std::vector<KernelSet> sets = simd_kernels();
    return sets.empty() ? portable_kernels() : sets.front();
  }();
  return kBest;
}

}  // namespace

Float16 to_float16(float value) { return float16_of(value); }
Bfloat16 to_bfloat16(float value) { return bfloat16_of(value); }
float to_float(Float16 value) { return float_of(value); }
float to_float(Bfloat16 value) { return float_of(value); }

void copy(void* out, const void* in, std::int64_t bytes, Stores stores) {
  if (bytes <= 0 || out == in) return;
  if (stores == Stores::kStreaming) {
    best_kernels().copy_streaming(out, in, bytes);
  } else {
    std::memcpy(out, in, static_cast<std::size_t>(bytes));
  }
}

void reduce(DataType type, ReduceOp op, void* out, std::span<const void* const> operands, std::int64_t count,
            Stores stores) {
  if (!is_supported(type, op)) {
    throw InvalidArgument(
        fmt::format("{} is not defined for {}; expected sum prod min max", to_string(op), to_string(type)));
  }
  if (operands.empty()) throw InvalidArgument("a reduction needs at least one operand");
  if (count < 0) throw InvalidArgument(fmt::format("a reduction of {} elements; expected 0 and more", count));
  if (count == 0) return;
  if (operands.size() == 1) {
    copy(out, operands[0], count * size_of(type), stores);
    return;
  }
  best_kernels().kernel(type, op)({.out = out,
                                   .operands = operands.data(),
                                   .num_operands = static_cast<std::int64_t>(operands.size()),
                                   .count = count,
                                   .is_streaming = stores == Stores::kStreaming});
}

std::string_view simd_name() { return best_kernels().name; }

}  // namespace gar
