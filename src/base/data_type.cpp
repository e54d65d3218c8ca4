// Names and sizes of element types and operators.
#include "gar/data_type.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstddef>
#include <string>

#include "gar/errors.hpp"

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
        fmt::format("{} {} is not known; expected 0 to {}", what, static_cast<int>(value), table.size() - 1));
  }
  return index;
}

template <class Enum, std::size_t kSize>
Enum parse(std::string_view text, const std::array<std::string_view, kSize>& names, std::string_view what) {
  for (std::size_t i = 0; i < kSize; ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  throw InvalidArgument(fmt::format("unknown {} '{}'; expected {}", what, text, fmt::join(names, " ")));
}

}  // namespace

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

}  // namespace gar
