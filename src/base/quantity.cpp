// Sizes and counts as people write them.
#include "gar/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gar/errors.hpp"

namespace gar {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::string_view kAcceptedCount =
    "a whole number of elements from 0 to 2^62 bytes, such as 1000000, 3.2e7 or 1M (K, M, G, T: powers of 1024)";
constexpr std::string_view kAcceptedBytes =
    "a number with an optional unit B, kB, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB or K, M, G, T (powers "
    "of 1024), such as 400MB or 1.5GiB, up to 2^62 bytes";

// More significant digits than this are no sensible size; and 10^26 * 1 TiB is below 2^128.
constexpr std::size_t kMaxDigits = 26;
// Larger exponents are cut down to this, which is too large or too small for everything but 0.
constexpr int kMaxExponent = 4096;

[[noreturn]] void reject(std::string_view name, std::string_view text, std::string_view why,
                         std::string_view accepted) {
  throw UsageError(fmt::format("{} '{}': {}; expected {}", name, text, why, accepted));
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

struct Unit {
  std::string_view name;
  std::int64_t factor;
};
constexpr Unit kShortUnits[] = {{"", 1},
                                {"K", std::int64_t{1} << 10},
                                {"M", std::int64_t{1} << 20},
                                {"G", std::int64_t{1} << 30},
                                {"T", std::int64_t{1} << 40}};
// nccl-tests takes small letters, too.
constexpr Unit kByteUnits[] = {{"B", 1},
                               {"k", std::int64_t{1} << 10},
                               {"m", std::int64_t{1} << 20},
                               {"g", std::int64_t{1} << 30},
                               {"kB", 1'000},
                               {"KB", 1'000},
                               {"MB", 1'000'000},
                               {"GB", 1'000'000'000},
                               {"TB", 1'000'000'000'000},
                               {"KiB", std::int64_t{1} << 10},
                               {"MiB", std::int64_t{1} << 20},
                               {"GiB", std::int64_t{1} << 30},
                               {"TiB", std::int64_t{1} << 40}};

std::optional<std::int64_t> factor_of(std::string_view unit, bool is_bytes) {
  for (const Unit& known : kShortUnits) {
    if (known.name == unit) return known.factor;
  }
  for (const Unit& known : kByteUnits) {
    if (is_bytes && known.name == unit) return known.factor;
  }
  return std::nullopt;
}

struct Quantity {
  std::string_view thing;     ///< "elements"
  std::string_view accepted;  ///< for messages
  bool is_bytes = false;
};

std::int64_t parse_quantity(std::string_view name, std::string_view text, const Quantity& quantity) {
  if (text.empty()) reject(name, text, "nothing given", quantity.accepted);
  if (text.front() == '-') reject(name, text, "must not be negative", quantity.accepted);
  std::string_view rest = text;
  bool too_many_digits = false;
  const std::optional<Decimal> number = take_decimal(rest, too_many_digits);
  if (too_many_digits) reject(name, text, "too many digits", quantity.accepted);
  if (!number) reject(name, text, "not a number", quantity.accepted);
  const std::optional<std::int64_t> unit = factor_of(rest, quantity.is_bytes);
  if (!unit) {
    reject(name, text, fmt::format("'{}' after the number is not {}", rest, quantity.is_bytes ? "a unit" : "allowed"),
           quantity.accepted);
  }
  std::int64_t result = 0;
  switch (to_whole(*number, *unit, result)) {
    case Whole::kOk:
      return result;
    case Whole::kTooLarge:
      reject(name, text, "too large", quantity.accepted);
    case Whole::kFractional:
      break;
  }
  reject(name, text, fmt::format("not a whole number of {}", quantity.thing), quantity.accepted);
}

using ParseOne = std::int64_t (*)(std::string_view name, std::string_view text);

void add_range(std::string_view name, std::string_view text, std::size_t dots, std::int64_t factor, ParseOne parse,
               std::vector<std::int64_t>& out) {
  const std::int64_t first = parse(name, text.substr(0, dots));
  const std::int64_t last = parse(name, text.substr(dots + 2));
  if (first < 1 || last < first) {
    reject(name, text, "a range must begin at 1 or more and must not decrease",
           "FROM..TO, such as 1kB..1GB or 1e3..1e9");
  }
  for (std::int64_t value = first;; value *= factor) {
    out.push_back(value);
    if (std::ssize(out) > kMaxSizes) return;
    if (value > last / factor) return;
  }
}

std::vector<std::int64_t> parse_list(std::string_view name, std::string_view text, std::int64_t factor,
                                     ParseOne parse) {
  std::vector<std::int64_t> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    const std::size_t dots = item.find("..");
    if (dots == std::string_view::npos) {
      out.push_back(parse(name, item));
    } else {
      add_range(name, item, dots, factor, parse, out);
    }
    if (std::ssize(out) > kMaxSizes) {
      reject(name, text.substr(0, 80), "too many sizes", fmt::format("up to {}", kMaxSizes));
    }
    begin = end + 1;
  }
  return out;
}

}  // namespace

std::int64_t parse_bytes(std::string_view name, std::string_view text) {
  return parse_quantity(name, text, {"bytes", kAcceptedBytes, true});
}

std::int64_t parse_count(std::string_view name, std::string_view text) {
  return parse_quantity(name, text, {"elements", kAcceptedCount, false});
}

std::vector<std::int64_t> parse_bytes_list(std::string_view name, std::string_view text, std::int64_t factor) {
  return parse_list(name, text, factor, parse_bytes);
}

std::vector<std::int64_t> parse_count_list(std::string_view name, std::string_view text, std::int64_t factor) {
  return parse_list(name, text, factor, parse_count);
}

std::int64_t parse_size_factor(std::string_view name, std::string_view text) {
  constexpr std::int64_t kMost = 1'000'000;
  constexpr std::string_view kAccepted = "a whole number from 2 to 1000000";
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) {
    reject(name, text, "not a whole number", kAccepted);
  }
  const std::int64_t value = text.size() > 9 ? kMost + 1 : parse_count(name, text);
  if (value < 2 || value > kMost) reject(name, text, "out of range", kAccepted);
  return value;
}

std::optional<double> share_of(std::string_view text) {
  const bool is_percent = text.ends_with('%');
  const std::string number(text.substr(0, text.size() - (is_percent ? 1 : 0)));
  const bool is_plain =
      !number.empty() && number.front() != '+' && number.find_first_not_of("0123456789.eE+-") == std::string::npos;
  if (!is_plain) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end) / (is_percent ? 100 : 1);
  if (end != number.c_str() + number.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

DataType parse_dtype(std::string_view name, std::string_view text) {
  // The names of C, as in nccl-tests.
  constexpr std::pair<std::string_view, DataType> kOthers[] = {
      {"half", DataType::kFloat16}, {"float", DataType::kFloat32}, {"double", DataType::kFloat64}};
  for (const auto& [other, type] : kOthers) {
    if (other == text) return type;
  }
  std::string accepted;
  for (int i = 0; i < kNumDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    if (to_string(type) == text) return type;
    accepted += accepted.empty() ? "" : " ";
    accepted += to_string(type);
  }
  for (const auto& [other, type] : kOthers) accepted += fmt::format(" {}", other);
  reject(name, text, "unknown type", accepted);
}

VectorSize vector_size_of_bytes(std::string_view name, std::string_view text, DataType dtype) {
  const std::int64_t bytes = parse_bytes(name, text);
  if (bytes % size_of(dtype) != 0) {
    reject(name, text, fmt::format("{} bytes are not a whole number of {} elements", bytes, to_string(dtype)),
           fmt::format("a multiple of {} bytes, or --dtype uint8", size_of(dtype)));
  }
  return {dtype, bytes / size_of(dtype), bytes};
}

VectorSize vector_size_of_count(std::string_view name, std::string_view text, DataType dtype) {
  const std::int64_t count = parse_count(name, text);
  if (count > kMaxVectorBytes / size_of(dtype)) {
    reject(name, text, fmt::format("too large for elements of {} bytes", size_of(dtype)), kAcceptedCount);
  }
  return {dtype, count, count * size_of(dtype)};
}

}  // namespace gar
