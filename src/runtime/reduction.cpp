// Names and sizes of types and operators, and the way into the kernels.
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

constexpr std::array<std::string_view, kNumDataTypes> kTypeNames = {"int8",    "uint8",    "int16",   "uint16",
                                                                    "int32",   "uint32",   "int64",   "uint64",
                                                                    "float16", "bfloat16", "float32", "float64"};
constexpr std::array<std::int64_t, kNumDataTypes> kTypeSizes = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
constexpr std::array<std::string_view, kNumReduceOps> kOpNames = {"sum", "prod", "min",  "max", "band",
                                                                  "bor", "bxor", "land", "lor", "lxor"};

/// Position of a value in the tables above; values from C callers may be anything.
template <class Enum, std::size_t kSize, class Entry>
std::size_t position(Enum value, const std::array<Entry, kSize>& table, std::string_view what) {
  const auto index = static_cast<std::size_t>(static_cast<int>(value));
  if (index >= table.size()) {
    throw InvalidArgument(
        fmt::format("{} {} is not known; accepted: 0 to {}", what, static_cast<int>(value), table.size() - 1));
  }
  return index;
}

template <class Enum, std::size_t kSize>
Enum parse(std::string_view text, const std::array<std::string_view, kSize>& names, std::string_view what) {
  for (std::size_t i = 0; i < kSize; ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  throw InvalidArgument(fmt::format("unknown {} '{}'; accepted: {}", what, text, fmt::join(names, " ")));
}

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

std::int64_t size_of(DataType type) { return kTypeSizes[position(type, kTypeSizes, "data type")]; }
bool is_integer(DataType type) {
  return position(type, kTypeSizes, "data type") <= static_cast<int>(DataType::kUint64);
}
bool is_supported(DataType type, ReduceOp op) {
  const std::size_t index = position(op, kOpNames, "operator");
  return is_integer(type) || index <= static_cast<std::size_t>(ReduceOp::kMax);
}
std::string_view to_string(DataType type) { return kTypeNames[position(type, kTypeNames, "data type")]; }
std::string_view to_string(ReduceOp op) { return kOpNames[position(op, kOpNames, "operator")]; }
DataType parse_data_type(std::string_view text) { return parse<DataType>(text, kTypeNames, "data type"); }
ReduceOp parse_reduce_op(std::string_view text) { return parse<ReduceOp>(text, kOpNames, "operator"); }

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
        fmt::format("{} is not defined for {}; accepted: sum prod min max", to_string(op), to_string(type)));
  }
  if (operands.empty()) throw InvalidArgument("a reduction needs at least one operand");
  if (count < 0) throw InvalidArgument(fmt::format("a reduction of {} elements; accepted: 0 and more", count));
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
