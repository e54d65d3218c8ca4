// Element types and operators: their names and sizes.
#pragma once

#include <cstdint>
#include <string_view>

#include "gar/language.hpp"

namespace gar {

/// The type of an element. The values are part of the C interface (gar.h).
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
/// The number of element types.
inline constexpr int kNumDataTypes = 12;

/// How elements are combined. Bitwise and logical operators are for integers only; logical ones give 0 or 1. The values
/// are part of the C interface (gar.h).
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
/// The number of operators.
inline constexpr int kNumReduceOps = 10;

/// Bytes of one element.
std::int64_t size_of(DataType type);
/// True for the eight integer types, signed and unsigned.
bool is_integer(DataType type);
/// Does the operator make sense for the type? (Bitwise and logical ones: integers only.)
bool is_supported(DataType type, ReduceOp op);
/// "float32", "int8", ...
std::string_view to_string(DataType type);
/// "sum", "band", ...
std::string_view to_string(ReduceOp op);
/// The type with that name. Throws InvalidArgument with the names that exist.
DataType parse_data_type(std::string_view text);
/// The operator with that name. Throws InvalidArgument with the names that exist.
ReduceOp parse_reduce_op(std::string_view text);

}  // namespace gar
