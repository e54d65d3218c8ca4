// Inputs whose reductions are exact in every order, and what collectives must make of them, one element after the
// other.
//
// An element's value depends on its rank and on its index modulo a prime, so that long vectors are filled and compared
// by whole periods; no chunk, block or cache line is a multiple of the period. Values, by operator:
//   integers       any bits; sums and products wrap around, which is the same in every order
//   float sum      small integers: no partial sum of up to 16 ranks needs more bits than the type has
//   float prod     signs and powers of two, of which every second rank has one other than 1: no overflow on the way
//   float min max  integers without 0, for min(-0, +0) has no defined sign
//   land lor lxor  zeros and any other bits; on a single rank 0 and 1 only, where nothing is combined
// Nothing of the library's own arithmetic is used, nor that of gar bench, whose data are checked against the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "gar/reduction.hpp"

namespace gar::test {

inline constexpr std::int64_t kPeriod = 4093;

inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

inline int bytes_of(DataType type) {
  static constexpr int kBytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return kBytes[static_cast<int>(type)];
}
inline bool is_float(DataType type) { return static_cast<int>(type) >= 8; }
inline bool is_signed(DataType type) { return static_cast<int>(type) % 2 == 0; }
inline bool fits(DataType type, ReduceOp op) { return !is_float(type) || static_cast<int>(op) < 4; }

/// The bits of a number in a format with so many exponent and fraction bits. Only for normal numbers and zero, and only
/// when nothing has to be rounded.
inline std::uint16_t exact_bits(double value, int exponent_bits, int fraction_bits) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (value == 0) return sign;
  int exponent = 0;
  const double scaled = std::ldexp(std::frexp(std::fabs(value), &exponent), fraction_bits + 1);  // [2^f, 2^(f+1))
  const int biased = exponent - 1 + (1 << (exponent_bits - 1)) - 1;
  if (scaled != std::floor(scaled) || biased < 1 || biased >= (1 << exponent_bits) - 1) {
    throw std::logic_error("the oracle's value " + std::to_string(value) + " is not exact");
  }
  const auto fraction = static_cast<unsigned>(scaled) & ((1U << fraction_bits) - 1);
  return static_cast<std::uint16_t>(sign | (static_cast<unsigned>(biased) << fraction_bits) | fraction);
}
inline double value_of_bits(std::uint16_t bits, int exponent_bits, int fraction_bits) {
  const int biased = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = bits & ((1 << fraction_bits) - 1);
  const double magnitude = biased == 0 ? std::ldexp(fraction, 2 - (1 << (exponent_bits - 1)) - fraction_bits)
                                       : std::ldexp(fraction + (1 << fraction_bits),
                                                    biased - (1 << (exponent_bits - 1)) + 1 - fraction_bits);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

inline void store_float(DataType type, double value, std::byte* at) {
  if (type == DataType::kFloat64) {
    std::memcpy(at, &value, 8);
  } else if (type == DataType::kFloat32) {
    const auto narrow = static_cast<float>(value);
    if (narrow != value) throw std::logic_error("the oracle's value is not exact");
    std::memcpy(at, &narrow, 4);
  } else {
    const std::uint16_t bits = type == DataType::kFloat16 ? exact_bits(value, 5, 10) : exact_bits(value, 8, 7);
    std::memcpy(at, &bits, 2);
  }
}
inline double load_float(DataType type, const std::byte* at) {
  double wide = 0;
  float narrow = 0;
  std::uint16_t bits = 0;
  switch (type) {
    case DataType::kFloat64:
      std::memcpy(&wide, at, 8);
      return wide;
    case DataType::kFloat32:
      std::memcpy(&narrow, at, 4);
      return narrow;
    case DataType::kFloat16:
      std::memcpy(&bits, at, 2);
      return value_of_bits(bits, 5, 10);
    default:
      std::memcpy(&bits, at, 2);
      return value_of_bits(bits, 8, 7);
  }
}

/// An integer extended to 64 bits with its sign.
inline std::uint64_t load_integer(DataType type, const std::byte* at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(bytes_of(type)));
  const int unused = 64 - 8 * bytes_of(type);
  return is_signed(type) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused) : bits;
}

inline double combine(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::kSum:
      return a + b;
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMin:
      return b < a ? b : a;
    case ReduceOp::kMax:
      return a < b ? b : a;
    default:
      throw std::logic_error("not an operator for floating point numbers");
  }
}
/// And, or and exclusive or by counting: how many of the two must be true?
inline bool holds(ReduceOp op, int num_true) {
  switch (op) {
    case ReduceOp::kBand:
    case ReduceOp::kLand:
      return num_true == 2;
    case ReduceOp::kBor:
    case ReduceOp::kLor:
      return num_true > 0;
    case ReduceOp::kBxor:
    case ReduceOp::kLxor:
      return num_true == 1;
    default:
      throw std::logic_error("not an operator of truth values");
  }
}
inline std::uint64_t combine(ReduceOp op, std::uint64_t a, std::uint64_t b, bool is_less) {
  if (op == ReduceOp::kSum) return a + b;
  if (op == ReduceOp::kProd) return a * b;
  if (op == ReduceOp::kMin) return is_less ? a : b;
  if (op == ReduceOp::kMax) return is_less ? b : a;
  if (op == ReduceOp::kLand || op == ReduceOp::kLor || op == ReduceOp::kLxor) {
    return holds(op, (a == 0 ? 0 : 1) + (b == 0 ? 0 : 1)) ? 1 : 0;
  }
  std::uint64_t out = 0;
  for (int bit = 63; bit >= 0; --bit) {
    out = 2 * out + (holds(op, static_cast<int>((a >> bit) % 2 + (b >> bit) % 2)) ? 1 : 0);
  }
  return out;
}
/// into = into op from, for one element.
inline void combine_element(DataType type, ReduceOp op, std::byte* into, const std::byte* from) {
  if (is_float(type)) return store_float(type, combine(op, load_float(type, into), load_float(type, from)), into);
  const std::uint64_t a = load_integer(type, into);
  const std::uint64_t b = load_integer(type, from);
  const bool is_less = is_signed(type) ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
  const std::uint64_t bits = combine(op, a, b, is_less);
  std::memcpy(into, &bits, static_cast<std::size_t>(bytes_of(type)));
}

/// What the vectors of one operation hold.
class Oracle {
 public:
  /// `num_ranks` at most 16. Vectors shorter than a period are `length` long.
  Oracle(DataType type, ReduceOp op, int num_ranks, std::uint64_t salt, std::int64_t length = kPeriod)
      : type_(type),
        op_(op),
        num_ranks_(num_ranks),
        salt_(salt),
        period_(std::clamp<std::int64_t>(length, 1, kPeriod)) {
    const std::size_t row = static_cast<std::size_t>(period_) * static_cast<std::size_t>(bytes_of(type));
    rows_.resize(static_cast<std::size_t>(num_ranks));
    for (int r = 0; r < num_ranks; ++r) {
      rows_[static_cast<std::size_t>(r)].resize(row);
      for (std::int64_t i = 0; i < period_; ++i)
        store_input(r, i, rows_[static_cast<std::size_t>(r)].data() + i * size());
    }
  }

  [[nodiscard]] int size() const { return bytes_of(type_); }

  /// Elements [first, first + count) of a rank's input.
  void fill(int rank, std::int64_t first, std::int64_t count, std::byte* out) const {
    tile(rows_[static_cast<std::size_t>(rank)], first, count,
         [&](const std::byte* from, std::int64_t at, std::size_t bytes) { std::memcpy(out + at, from, bytes); });
  }
  /// The first of the elements that is not a rank's input, counted from `data`; -1: all are.
  [[nodiscard]] std::int64_t find_other_than_input(int rank, std::int64_t first, std::int64_t count,
                                                   const std::byte* data) const {
    return find_difference(rows_[static_cast<std::size_t>(rank)], first, count, data);
  }
  /// The first of the elements that is not the reduction of all ranks; -1: all are.
  [[nodiscard]] std::int64_t find_other_than_result(std::int64_t first, std::int64_t count, const std::byte* data) {
    if (result_.empty()) reduce_all();
    return find_difference(result_, first, count, data);
  }

 private:
  template <class F>
  void tile(const std::vector<std::byte>& row, std::int64_t first, std::int64_t count, F f) const {
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t in_period = (first + done) % period_;
      const std::int64_t length = std::min(period_ - in_period, count - done);
      f(row.data() + in_period * size(), done * size(), static_cast<std::size_t>(length * size()));
      done += length;
    }
  }

  std::int64_t find_difference(const std::vector<std::byte>& row, std::int64_t first, std::int64_t count,
                               const std::byte* data) const {
    std::int64_t found = -1;
    tile(row, first, count, [&](const std::byte* expected, std::int64_t at, std::size_t bytes) {
      if (found >= 0 || std::memcmp(expected, data + at, bytes) == 0) return;
      std::size_t i = 0;
      while (expected[i] == data[at + static_cast<std::int64_t>(i)]) ++i;
      found = (at + static_cast<std::int64_t>(i)) / size();
    });
    return found;
  }

  void store_input(int rank, std::int64_t index, std::byte* at) const {
    const std::uint64_t h =
        mix(salt_ * 1'000'003 + mix(static_cast<std::uint64_t>(index) * 64 + static_cast<std::uint64_t>(rank)));
    if (is_float(type_)) {
      store_float(type_, float_input(rank, index, h), at);
    } else {
      const std::uint64_t bits = integer_input(h);
      std::memcpy(at, &bits, static_cast<std::size_t>(size()));
    }
  }

  [[nodiscard]] double float_input(int rank, std::int64_t index, std::uint64_t h) const {
    if (op_ == ReduceOp::kProd) {
      const double magnitude = (rank + index) % 2 == 0 ? 1 : (h & 2) != 0 ? 2 : 0.5;
      return (h & 1) != 0 ? -magnitude : magnitude;
    }
    // Bits of a sum of 16 operands: 11 (float16), 8 (bfloat16), 24, 53.
    const int bits = type_ == DataType::kFloat16    ? 6
                     : type_ == DataType::kBfloat16 ? 3
                     : type_ == DataType::kFloat32  ? 19
                                                    : 44;
    const auto magnitude = static_cast<double>((h >> 8) % (std::uint64_t{1} << bits)) + (op_ == ReduceOp::kSum ? 0 : 1);
    return (h & 1) != 0 && magnitude != 0 ? -magnitude : magnitude;
  }

  [[nodiscard]] std::uint64_t integer_input(std::uint64_t h) const {
    const std::uint64_t a = mix(h);
    const std::uint64_t b = mix(a);
    const bool rare = b % 16 == 0;
    const std::uint64_t other_than_zero = num_ranks_ == 1 ? 1 : h | 0x01;
    switch (op_) {
      case ReduceOp::kProd:
        return rare ? h : h | 1;
      case ReduceOp::kBand:
        return h | a | b | mix(b);
      case ReduceOp::kBor:
        return h & a & b & mix(b);
      case ReduceOp::kLand:
        return rare ? 0 : other_than_zero << (num_ranks_ == 1 ? 0 : a % 8);
      case ReduceOp::kLor:
        return rare ? other_than_zero << (num_ranks_ == 1 ? 0 : a % 8) : 0;
      case ReduceOp::kLxor:
        return a % 2 == 0 ? 0 : other_than_zero;
      default:
        return h;
    }
  }

  void reduce_all() {
    result_ = rows_[0];
    for (std::size_t r = 1; r < rows_.size(); ++r) {
      for (std::int64_t i = 0; i < period_; ++i) {
        combine_element(type_, op_, result_.data() + i * size(), rows_[r].data() + i * size());
      }
    }
  }

  DataType type_;
  ReduceOp op_;
  int num_ranks_;
  std::uint64_t salt_;
  std::int64_t period_;
  std::vector<std::vector<std::byte>> rows_;
  std::vector<std::byte> result_;
};

}  // namespace gar::test
