// The n-ary reduction: any number of operands in one pass over memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "gar/data_type.hpp"

namespace gar {

/// An IEEE binary16 number as bits; reductions accumulate it in float.
struct Float16 {
  std::uint16_t bits = 0;  ///< sign, exponent and fraction, as IEEE binary16 orders them
  bool operator==(const Float16&) const = default;
};
/// The upper half of a float as bits; reductions accumulate it in float.
struct Bfloat16 {
  std::uint16_t bits = 0;  ///< the upper 16 bits of a float
  bool operator==(const Bfloat16&) const = default;
};
/// To the nearest, ties to even; overflow gives infinity, a NaN stays a (quiet) NaN.
Float16 to_float16(float value);
/// To the nearest, in the same way.
Bfloat16 to_bfloat16(float value);
/// Exact.
float to_float(Float16 value);
/// Exact.
float to_float(Bfloat16 value);

/// How results are written. Streaming (non-temporal) stores bypass the caches: better for results that are larger
/// than the caches and are not read again soon.
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

/// The DataType of a C++ type: integers by size and sign, float, double, Float16 and Bfloat16.
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
