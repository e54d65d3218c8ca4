// Sizes, counts and shares as people write them: "400MB", "1.5GiB", "1e8", "3.2e7", "5%".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gar/data_type.hpp"

namespace gar {

/// The largest vector that is accepted.
inline constexpr std::int64_t kMaxVectorBytes = std::int64_t{1} << 62;

/// A vector's length, in elements and in bytes.
struct VectorSize {
  DataType dtype = DataType::kFloat32;  ///< what every element is
  std::int64_t count = 0;               ///< elements
  std::int64_t bytes = 0;               ///< bytes: count times the size of an element
  /// Length in floats of 4 bytes, the unit of the model.
  [[nodiscard]] double floats() const { return static_cast<double>(bytes) / 4.0; }
};

/// The parsers are exact (no rounding through floating point) and throw UsageError with the name of what is parsed (a
/// flag, a field), the text and what is accepted. Bytes: a number with an optional unit B, kB, KB, MB, GB, TB (powers
/// of 1000), KiB, MiB, GiB, TiB or K, M, G, T (powers of 1024).
std::int64_t parse_bytes(std::string_view name, std::string_view text);
/// A whole number of elements, "1e8" included; K, M, G, T are powers of 1024.
std::int64_t parse_count(std::string_view name, std::string_view text);

/// How a range grows that says no factor.
inline constexpr std::int64_t kSizeFactor = 4;
/// The longest list of sizes.
inline constexpr std::int64_t kMaxSizes = 10'000;
/// One or several: "1MB", "1kB,1MB", "1kB..1GB", which is 1kB and each `factor` times the one before, as long as that
/// is not above 1GB.
std::vector<std::int64_t> parse_bytes_list(std::string_view name, std::string_view text,
                                           std::int64_t factor = kSizeFactor);
/// The same for numbers of elements.
std::vector<std::int64_t> parse_count_list(std::string_view name, std::string_view text,
                                           std::int64_t factor = kSizeFactor);
/// The factor of a range: a whole number from 2 to 1,000,000.
std::int64_t parse_size_factor(std::string_view name, std::string_view text);

/// A share, as a number or in percent: "0.05", "5%". Nothing when the text is neither, or is not finite.
std::optional<double> share_of(std::string_view text);

/// An element type: "float32", "int8", ...; also "half", "float" and "double", as in nccl-tests.
DataType parse_dtype(std::string_view name, std::string_view text);

/// The vector of that many bytes; UsageError when they are no whole number of elements, or more than kMaxVectorBytes.
VectorSize vector_size_of_bytes(std::string_view name, std::string_view text, DataType dtype);
/// The vector of that many elements; UsageError when it has more than kMaxVectorBytes.
VectorSize vector_size_of_count(std::string_view name, std::string_view text, DataType dtype);

}  // namespace gar
