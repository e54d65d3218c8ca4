// Element types, operators, and the n-ary reduction: any number of operands in one pass over memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace gar {

/// The values are part of the C interface (gar.h).
enum class DataType {
  kInt8 = 0,
  kUint8 = 1,
  kInt16 = 2,
  kUint16 = 3,
  kInt32 = 4,
  kUint32 = 5,
  kInt64 = 6,
  kUint64 = 7,
  kFloat16 = 8,   ///< IEEE binary16
  kBfloat16 = 9,  ///< the upper half of a float
  kFloat32 = 10,
  kFloat64 = 11,
};
inline constexpr int kNumDataTypes = 12;

/// Bitwise and logical operators are for integers only; logical ones give 0 or 1.
enum class ReduceOp {
  kSum = 0,
  kProd = 1,
  kMin = 2,
  kMax = 3,
  kBand = 4,
  kBor = 5,
  kBxor = 6,
  kLand = 7,
  kLor = 8,
  kLxor = 9,
};
inline constexpr int kNumReduceOps = 10;

/// 16-bit floating point numbers as bits; reductions accumulate them in float.
struct Float16 {
  std::uint16_t bits = 0;
  bool operator==(const Float16&) const = default;
};
struct Bfloat16 {
  std::uint16_t bits = 0;
  bool operator==(const Bfloat16&) const = default;
};
/// To the nearest, ties to even; overflow gives infinity, a NaN stays a (quiet) NaN.
Float16 to_float16(float value);
Bfloat16 to_bfloat16(float value);
float to_float(Float16 value);
float to_float(Bfloat16 value);

/// Bytes of one element.
std::int64_t size_of(DataType type);
bool is_integer(DataType type);
/// Does the operator make sense for the type? (Bitwise and logical ones: integers only.)
bool is_supported(DataType type, ReduceOp op);
/// "float32", "int8", ...; "sum", "band", ... The parsers throw InvalidArgument with the accepted names.
std::string_view to_string(DataType type);
std::string_view to_string(ReduceOp op);
DataType parse_data_type(std::string_view text);
ReduceOp parse_reduce_op(std::string_view text);

/// How results are written. Streaming stores go past the caches: better for results that are larger than these and
/// are not read again soon.
enum class Stores { kCached, kStreaming };

/// out[i] = operands[0][i] op operands[1][i] op ... from left to right; with one operand a copy. 16-bit floats are
/// accumulated in float and rounded once. Integer sums and products wrap around. min and max give NaN when an operand
/// is NaN. `out` may be one of the operands; other overlaps are not allowed. Nothing has to be aligned beyond its type.
/// Throws InvalidArgument when there is no operand or the operator does not fit the type.
void reduce(DataType type, ReduceOp op, void* out, std::span<const void* const> operands, std::int64_t count,
            Stores stores = Stores::kCached);

/// memcpy with a choice of stores.
void copy(void* out, const void* in, std::int64_t bytes, Stores stores = Stores::kCached);

/// The instruction set that reductions use on this machine: "AVX3_ZEN4", "AVX2", "NEON", "SCALAR", ...
std::string_view simd_name();

template <class T>
constexpr DataType data_type_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, Float16>) {
    return DataType::kFloat16;
  } else if constexpr (std::is_same_v<U, Bfloat16>) {
    return DataType::kBfloat16;
  } else if constexpr (std::is_same_v<U, float>) {
    return DataType::kFloat32;
  } else if constexpr (std::is_same_v<U, double>) {
    return DataType::kFloat64;
  } else {
    static_assert(std::is_integral_v<U> && !std::is_same_v<U, bool>, "not a type that can be reduced");
    constexpr int kLog2 = sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3;
    return static_cast<DataType>(2 * kLog2 + (std::is_unsigned_v<U> ? 1 : 0));
  }
}

}  // namespace gar
