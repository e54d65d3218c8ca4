#include "apps/gar/sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace gar::cli {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::string_view kAcceptedCount = "a whole number of elements from 0 to 2^62 bytes, such as 1000000 or 3.2e7";
constexpr std::string_view kAcceptedBytes =
    "a number with an optional unit B, kB, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024), "
    "such as 400MB or 1.5GiB, up to 2^62 bytes";

// More significant digits than this are no sensible size; and 10^26 * 1 TiB is below 2^128.
constexpr std::size_t kMaxDigits = 26;
// Larger exponents are cut down to this, which is too large or too small for everything but 0.
constexpr int kMaxExponent = 4096;

[[noreturn]] void reject(std::string_view flag, std::string_view text, std::string_view why,
                         std::string_view accepted) {
  throw UsageError(fmt::format("{} '{}': {}; accepted: {}", flag, text, why, accepted));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// digits * 10^exponent
struct Decimal {
  Wide digits = 0;
  int exponent = 0;
};

/// Takes a number of the form 12, 1.5, .5 or 1.5e3 off the front of `rest`; nothing when there is none.
std::optional<Decimal> take_decimal(std::string_view& rest, bool& too_many_digits) {
  std::string significant;
  int exponent = 0;
  std::size_t at = 0;
  bool any_digit = false;
  bool in_fraction = false;
  for (; at < rest.size(); ++at) {
    const char c = rest[at];
    if (c == '.' && !in_fraction) {
      in_fraction = true;
      continue;
    }
    if (!is_digit(c)) break;
    any_digit = true;
    if (in_fraction) --exponent;
    if (c != '0' || !significant.empty()) significant += c;
  }
  if (!any_digit) return std::nullopt;
  if (at < rest.size() && (rest[at] == 'e' || rest[at] == 'E')) {
    std::size_t end = at + 1;
    const bool is_negative = end < rest.size() && rest[end] == '-';
    if (end < rest.size() && (rest[end] == '+' || rest[end] == '-')) ++end;
    const std::size_t first = end;
    int power = 0;
    for (; end < rest.size() && is_digit(rest[end]); ++end)
      power = std::min(power * 10 + (rest[end] - '0'), kMaxExponent);
    if (end == first) return std::nullopt;
    exponent += is_negative ? -power : power;
    at = end;
  }
  rest.remove_prefix(at);
  while (!significant.empty() && significant.back() == '0') {
    significant.pop_back();
    ++exponent;
  }
  too_many_digits = significant.size() > kMaxDigits;
  if (too_many_digits) return std::nullopt;
  Decimal result{0, exponent};
  for (const char c : significant) result.digits = result.digits * 10 + static_cast<Wide>(c - '0');
  return result;
}

enum class Whole { kOk, kTooLarge, kFractional };

/// number * unit as a whole number of at most 2^62.
Whole to_whole(const Decimal& number, std::int64_t unit, std::int64_t& result) {
  Wide value = number.digits * static_cast<Wide>(unit);
  if (value != 0) {
    for (int i = 0; i < number.exponent; ++i) {
      if (value > static_cast<Wide>(kMaxVectorBytes)) return Whole::kTooLarge;
      value *= 10;
    }
    for (int i = 0; i > number.exponent; --i) {
      if (value % 10 != 0) return Whole::kFractional;
      value /= 10;
    }
  }
  if (value > static_cast<Wide>(kMaxVectorBytes)) return Whole::kTooLarge;
  result = static_cast<std::int64_t>(value);
  return Whole::kOk;
}

std::optional<std::int64_t> unit_bytes(std::string_view unit) {
  struct Unit {
    std::string_view name;
    std::int64_t bytes;
  };
  static constexpr std::array<Unit, 11> kUnits{{{"", 1},
                                                {"B", 1},
                                                {"kB", 1'000},
                                                {"KB", 1'000},
                                                {"MB", 1'000'000},
                                                {"GB", 1'000'000'000},
                                                {"TB", 1'000'000'000'000},
                                                {"KiB", std::int64_t{1} << 10},
                                                {"MiB", std::int64_t{1} << 20},
                                                {"GiB", std::int64_t{1} << 30},
                                                {"TiB", std::int64_t{1} << 40}}};
  const auto* found = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return u.name == unit; });
  if (found == kUnits.end()) return std::nullopt;
  return found->bytes;
}

struct Quantity {
  std::string_view thing;     ///< "elements"
  std::string_view accepted;  ///< for messages
  bool has_unit = false;
};

std::int64_t parse_quantity(std::string_view flag, std::string_view text, const Quantity& quantity) {
  if (text.empty()) reject(flag, text, "nothing given", quantity.accepted);
  if (text.front() == '-') reject(flag, text, "must not be negative", quantity.accepted);
  std::string_view rest = text;
  bool too_many_digits = false;
  const std::optional<Decimal> number = take_decimal(rest, too_many_digits);
  if (too_many_digits) reject(flag, text, "too many digits", quantity.accepted);
  if (!number) reject(flag, text, "not a number", quantity.accepted);
  const std::optional<std::int64_t> unit = quantity.has_unit || rest.empty() ? unit_bytes(rest) : std::nullopt;
  if (!unit) {
    reject(flag, text, fmt::format("'{}' after the number is not {}", rest, quantity.has_unit ? "a unit" : "allowed"),
           quantity.accepted);
  }
  std::int64_t result = 0;
  switch (to_whole(*number, *unit, result)) {
    case Whole::kOk:
      return result;
    case Whole::kTooLarge:
      reject(flag, text, "too large", quantity.accepted);
    case Whole::kFractional:
      break;
  }
  reject(flag, text, fmt::format("not a whole number of {}", quantity.thing), quantity.accepted);
}

}  // namespace

const std::vector<Dtype>& dtypes() {
  static const std::vector<Dtype> kDtypes{{"int8", 1},    {"uint8", 1},    {"int16", 2},   {"uint16", 2},
                                          {"int32", 4},   {"uint32", 4},   {"int64", 8},   {"uint64", 8},
                                          {"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8}};
  return kDtypes;
}

std::int64_t parse_bytes(std::string_view flag, std::string_view text) {
  return parse_quantity(flag, text, {"bytes", kAcceptedBytes, true});
}

std::int64_t parse_count(std::string_view flag, std::string_view text) {
  return parse_quantity(flag, text, {"elements", kAcceptedCount, false});
}

Dtype parse_dtype(std::string_view flag, std::string_view text) {
  std::string accepted;
  for (const Dtype& dtype : dtypes()) {
    if (dtype.name == text) return dtype;
    accepted += accepted.empty() ? "" : " ";
    accepted += dtype.name;
  }
  reject(flag, text, "unknown type", accepted);
}

VectorSize vector_size_of_bytes(std::string_view flag, std::string_view text, Dtype dtype) {
  const std::int64_t bytes = parse_bytes(flag, text);
  if (bytes % dtype.size_bytes != 0) {
    reject(flag, text, fmt::format("{} bytes are not a whole number of {} elements", bytes, dtype.name),
           fmt::format("a multiple of {} bytes, or --dtype uint8", dtype.size_bytes));
  }
  return {dtype, bytes / dtype.size_bytes, bytes};
}

VectorSize vector_size_of_count(std::string_view flag, std::string_view text, Dtype dtype) {
  const std::int64_t count = parse_count(flag, text);
  if (count > kMaxVectorBytes / dtype.size_bytes) {
    reject(flag, text, fmt::format("too large for elements of {} bytes", dtype.size_bytes), kAcceptedCount);
  }
  return {dtype, count, count * dtype.size_bytes};
}

}  // namespace gar::cli
