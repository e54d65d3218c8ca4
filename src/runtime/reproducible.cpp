// Reproducible reductions: floats as integers.
//
// Problem: floating point addition is not associative, so that a sum's last bits follow the order in which a plan adds.
// Integer addition is. Idea: bring all ranks' values of an element to a common exponent and add integers.
//
// Sum of float32 and bfloat16. (1) AllReduce max of the biased exponents, a byte each: e. (2) Every rank rounds its
// value to a multiple of the unit u = 2^(e - bias - 41), to nearest even; that is an integer of at most 42 bits. (3)
// AllReduce sum of these as int64; 2^20 ranks cannot overflow. (4) The sum is rounded once to the type. Steps 1 to 3
// are exact or depend on the values alone. The number of ranks enters nowhere. float64: 16-bit exponents, and two
// words: the multiple of u, and what is left in units of u 2^-43, again at most 42 bits. 84 bits below the largest
// value survive. float16: every value is a multiple of 2^-24 below 2^40, so that there is no step 1 and the sum is
// exact.
//
// Error: with n values whose largest magnitude is M, at most n M 2^-42 (float32, bfloat16; n M 2^-85 for float64)
// besides the final rounding; the plain sum's bound is (n - 1) 2^-24 (2^-53) times the sum of the magnitudes. Sums that
// cancel are as exact as others, and a sum that overflows on its way but not at its end is right. A sum that is zero is
// +0.
//
// Infinities and NaN have the largest exponent, so that after step 1 all ranks know where they are; only then one more
// pass combines a byte of flags. (float16: one AllReduce of a single byte tells whether the pass is needed.)
//
// Product: the values of all ranks are gathered and multiplied in the order of their bit patterns, in double. This
// moves as many times the data as there are ranks. min, max: gar::reduce orders -0 below +0 and gives the canonical
// NaN, whatever the order of its operands.
//
// Traffic as a multiple of the plain sum's: float32 2.25, float64 2.25, bfloat16 4.5, float16 4.
#include "runtime/reproducible.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "gar/errors.hpp"
#include "runtime/kernels/half.hpp"

namespace gar {
namespace {

__extension__ using Int128 = __int128;

constexpr int kUnitBits = 41;  // a value is below 2^(kUnitBits + 1) units
constexpr int kWordBits = 43;  // from one word's unit to the next one's

/// 2^k for -1022 <= k <= 1023.
inline double power(std::int64_t k) { return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52); }

/// x 2^k in two steps: 2^k itself may be too large or too small for a double.
inline double scaled(double x, std::int64_t k) {
  const std::int64_t half = k >> 1;
  return x * power(half) * power(k - half);
}

/// To the nearest integer, ties to even, for |x| < 2^51: a sum with 1.5 * 2^52 has no room for fractions. Unlike llrint
/// it is vectorised.
inline std::int64_t nearest(double x) {
  constexpr double kShift = 0x1.8p52;
  return std::bit_cast<std::int64_t>(x + kShift) - std::bit_cast<std::int64_t>(kShift);
}

/// Keeps the kBits leading bits, rounded to nearest even.
template <int kBits>
std::int64_t leading_bits(std::int64_t x) {
  const auto magnitude = static_cast<std::uint64_t>(x < 0 ? -x : x);
  const int surplus = static_cast<int>(std::bit_width(magnitude)) - kBits;
  if (surplus <= 0) return x;
  const std::uint64_t half = std::uint64_t{1} << (surplus - 1);
  const std::uint64_t rounded = (magnitude + half - 1 + ((magnitude >> surplus) & 1)) >> surplus << surplus;
  return x < 0 ? -static_cast<std::int64_t>(rounded) : static_cast<std::int64_t>(rounded);
}

// How values of each type become integers and come back. `kSpecial` is the exponent of infinities and NaN. No result is
// rounded a second time for being subnormal: it is a multiple of the unit and, if that is below the smallest number of
// the type, of that number, because all values are.

struct Float32Scheme {
  using Value = float;
  using Exponent = std::uint8_t;
  static constexpr int kNumWords = 1;
  static constexpr bool kHasExponents = true;
  static constexpr Exponent kSpecial = 255;
  static Exponent exponent(float x) { return static_cast<Exponent>(std::bit_cast<std::uint32_t>(x) >> 23); }
  static void quantise(float x, int e, std::int64_t* word, std::int64_t /*stride*/) {
    *word = nearest(x * power(kUnitBits + 127 - e));
  }
  static float restore(const std::int64_t* word, std::int64_t /*stride*/, int e) {
    return static_cast<float>(static_cast<double>(static_cast<float>(*word)) * power(e - 127 - kUnitBits));
  }
};

struct Bfloat16Scheme {
  using Value = Bfloat16;
  using Exponent = std::uint8_t;
  static constexpr int kNumWords = 1;
  static constexpr bool kHasExponents = true;
  static constexpr Exponent kSpecial = 255;
  static Exponent exponent(Bfloat16 x) { return static_cast<Exponent>(x.bits >> 7); }
  static void quantise(Bfloat16 x, int e, std::int64_t* word, std::int64_t stride) {
    Float32Scheme::quantise(float_of(x), e, word, stride);
  }
  static Bfloat16 restore(const std::int64_t* word, std::int64_t /*stride*/, int e) {
    const double rounded = static_cast<double>(leading_bits<8>(*word)) * power(e - 127 - kUnitBits);
    return bfloat16_of(static_cast<float>(rounded));
  }
};

struct Float64Scheme {
  using Value = double;
  using Exponent = std::uint16_t;
  static constexpr int kNumWords = 2;
  static constexpr bool kHasExponents = true;
  static constexpr Exponent kSpecial = 2047;
  static Exponent exponent(double x) {
    return static_cast<Exponent>((std::bit_cast<std::uint64_t>(x) >> 52) & kSpecial);
  }
  static void quantise(double x, int e, std::int64_t* words, std::int64_t stride) {
    const double units = scaled(x, kUnitBits + 1023 - e);
    words[0] = nearest(units);
    words[stride] = nearest((units - static_cast<double>(words[0])) * power(kWordBits));  // the difference is exact
  }
  static double restore(const std::int64_t* words, std::int64_t stride, int e) {
    const Int128 sum = (static_cast<Int128>(words[0]) << kWordBits) + words[stride];
    return scaled(static_cast<double>(sum), e - 1023 - kUnitBits - kWordBits);
  }
};

struct Float16Scheme {
  using Value = Float16;
  using Exponent = std::uint8_t;  // of which only kSpecial is looked at
  static constexpr int kNumWords = 1;
  static constexpr bool kHasExponents = false;
  static constexpr Exponent kSpecial = 31;
  static Exponent exponent(Float16 x) { return static_cast<Exponent>((x.bits >> 10) & kSpecial); }
  static void quantise(Float16 x, int /*e*/, std::int64_t* word, std::int64_t /*stride*/) {
    *word = nearest(static_cast<double>(float_of(x)) * power(24));
  }
  static Float16 restore(const std::int64_t* word, std::int64_t /*stride*/, int /*e*/) {
    return float16_of(static_cast<float>(static_cast<double>(leading_bits<11>(*word)) * power(-24)));
  }
};

inline float widened(Float16 x) { return float_of(x); }
inline float widened(Bfloat16 x) { return float_of(x); }
inline float widened(float x) { return x; }
inline double widened(double x) { return x; }

template <class T>
T narrowed(double x) {
  if constexpr (std::is_same_v<T, Float16>) {
    return float16_of(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return bfloat16_of(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}

template <class T>
T canonical(T x) {
  return std::isnan(widened(x)) ? narrowed<T>(std::numeric_limits<double>::quiet_NaN()) : x;
}

// What a rank saw that is not finite.
constexpr std::uint8_t kPlusInfinity = 1;
constexpr std::uint8_t kMinusInfinity = 2;
constexpr std::uint8_t kNan = 4;

template <class T>
std::uint8_t flags_of(T value) {
  const auto x = widened(value);
  if (std::isnan(x)) return kNan;
  if (!std::isinf(x)) return 0;
  return x > 0 ? kPlusInfinity : kMinusInfinity;
}

template <class T>
T special_sum(std::uint8_t flags) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (flags == kPlusInfinity) return narrowed<T>(kInfinity);
  if (flags == kMinusInfinity) return narrowed<T>(-kInfinity);
  return narrowed<T>(std::numeric_limits<double>::quiet_NaN());
}

/// The vector as the collectives see it: AllReduce has one block, ReduceScatter one for every rank.
struct Blocks {
  std::int64_t count = 1;
  std::int64_t length = 0;  ///< elements of a block
  std::int64_t mine = 0;    ///< the block whose result is wanted
};

/// Elements of a block that are processed together.
std::int64_t window_length(const PlainCollectives& plain, const Blocks& blocks, std::int64_t bytes_per_element) {
  return std::clamp<std::int64_t>(plain.window_bytes / (blocks.count * bytes_per_element), 1, blocks.length);
}

template <class S>
class Summation {
  using T = typename S::Value;
  using Exponent = typename S::Exponent;

 public:
  Summation(const PlainCollectives& plain, const Blocks& blocks, const void* in, void* out)
      : plain_(plain), blocks_(blocks), in_(static_cast<const T*>(in)), out_(static_cast<T*>(out)) {
    window_ = window_length(plain, blocks, 8 * S::kNumWords + static_cast<std::int64_t>(sizeof(Exponent)));
    const auto num_elements = static_cast<std::size_t>(blocks.count * window_);
    exponents_.resize(num_elements);
    words_.resize(num_elements * S::kNumWords);
    if (scatters()) own_words_.resize(static_cast<std::size_t>(window_) * S::kNumWords);
  }

  void run() {
    for (std::int64_t begin = 0; begin < blocks_.length; begin += window_) {
      sum_window(begin, std::min(window_, blocks_.length - begin));
    }
  }

 private:
  [[nodiscard]] bool scatters() const { return blocks_.count > 1; }

  void sum_window(std::int64_t begin, std::int64_t length) {
    find_exponents(begin, length);
    const bool has_special = agree_on_exponents(blocks_.count * length);
    for (std::int64_t b = 0; b < blocks_.count; ++b) quantise(b, begin, length);
    const std::int64_t* sums = combined(words_.data(), own_words_.data(), length * S::kNumWords, ReduceOp::kSum);
    const Exponent* exponents = exponents_.data() + (scatters() ? blocks_.mine * length : 0);
    // The flags are taken before `out` is written: it may be a part of `in`.
    const std::uint8_t* flags = has_special ? combined_flags(begin, length) : nullptr;
    T* out = out_ + begin;
    for (std::int64_t i = 0; i < length; ++i) out[i] = S::restore(sums + i, length, exponents[i]);
    for (std::int64_t i = 0; flags != nullptr && i < length; ++i) {
      if (flags[i] != 0) out[i] = special_sum<T>(flags[i]);
    }
  }

  const T* input(std::int64_t block, std::int64_t begin) const { return in_ + block * blocks_.length + begin; }

  void find_exponents(std::int64_t begin, std::int64_t length) {
    for (std::int64_t b = 0; b < blocks_.count; ++b) {
      const T* in = input(b, begin);
      Exponent* out = exponents_.data() + b * length;
      for (std::int64_t i = 0; i < length; ++i) out[i] = S::exponent(in[i]);
    }
  }

  /// Are there infinities or NaN, on any rank?
  bool agree_on_exponents(std::int64_t count) {
    if constexpr (S::kHasExponents) {
      all_reduce(exponents_.data(), count, ReduceOp::kMax);
    }
    const auto end = exponents_.begin() + count;
    std::uint8_t has_special = std::find(exponents_.begin(), end, S::kSpecial) != end ? 1 : 0;
    if constexpr (!S::kHasExponents) {
      all_reduce(&has_special, 1, ReduceOp::kMax);
    }
    return has_special != 0;
  }

  void quantise(std::int64_t block, std::int64_t begin, std::int64_t length) {
    const T* in = input(block, begin);
    const Exponent* exponents = exponents_.data() + block * length;
    std::int64_t* words = words_.data() + block * length * S::kNumWords;
    for (std::int64_t i = 0; i < length; ++i) {
      S::quantise(in[i], exponents[i], words + i, length);
      if (exponents[i] == S::kSpecial) {
        for (int w = 0; w < S::kNumWords; ++w) words[w * length + i] = 0;
      }
    }
  }

  /// In place.
  template <class U>
  void all_reduce(U* data, std::int64_t count, ReduceOp op) {
    plain_.run({Collective::kAllReduce, data, data, count, data_type_of<U>(), op});
  }

  /// All ranks' `data` combined: this rank's block of it, `block_count` elements.
  template <class U>
  const U* combined(U* data, U* own, std::int64_t block_count, ReduceOp op) {
    if (!scatters()) {
      all_reduce(data, block_count, op);
      return data;
    }
    plain_.run({Collective::kReduceScatter, data, own, block_count, data_type_of<U>(), op});
    return own;
  }

  const std::uint8_t* combined_flags(std::int64_t begin, std::int64_t length) {
    flags_.resize(static_cast<std::size_t>(blocks_.count * window_));
    own_flags_.resize(static_cast<std::size_t>(window_));
    for (std::int64_t b = 0; b < blocks_.count; ++b) {
      const T* in = input(b, begin);
      std::transform(in, in + length, flags_.begin() + b * length, flags_of<T>);
    }
    return combined(flags_.data(), own_flags_.data(), length, ReduceOp::kBor);
  }

  const PlainCollectives& plain_;
  Blocks blocks_;
  const T* in_;
  T* out_;
  std::int64_t window_ = 0;
  std::vector<Exponent> exponents_;
  std::vector<std::int64_t> words_;      ///< block by block; in a block all first words, then all second ones
  std::vector<std::int64_t> own_words_;  ///< ReduceScatter: the sums of this rank's block
  std::vector<std::uint8_t> flags_;
  std::vector<std::uint8_t> own_flags_;
};

/// The product of `values`, which are sorted by their bits first.
template <class T>
T product(std::vector<T>& values) {
  const auto bits = [](T x) {
    if constexpr (sizeof(T) == 2) {
      return x.bits;
    } else if constexpr (sizeof(T) == 4) {
      return std::bit_cast<std::uint32_t>(x);
    } else {
      return std::bit_cast<std::uint64_t>(x);
    }
  };
  std::sort(values.begin(), values.end(), [&](T a, T b) { return bits(a) < bits(b); });
  double result = 1;
  for (const T x : values) result *= widened(x);
  return canonical(narrowed<T>(result));
}

template <class T>
void multiply(const PlainCollectives& plain, const Blocks& blocks, const void* in, void* out) {
  const auto num_ranks = static_cast<std::int64_t>(plain.size);
  const std::int64_t window = window_length(plain, {num_ranks, blocks.length, 0}, static_cast<std::int64_t>(sizeof(T)));
  std::vector<T> gathered(static_cast<std::size_t>(num_ranks * window));
  std::vector<T> result(static_cast<std::size_t>(window));
  std::vector<T> values(static_cast<std::size_t>(num_ranks));
  for (std::int64_t begin = 0; begin < blocks.length; begin += window) {
    const std::int64_t length = std::min(window, blocks.length - begin);
    for (std::int64_t b = 0; b < blocks.count; ++b) {
      plain.run({.collective = Collective::kAllGather,
                 .in = static_cast<const T*>(in) + b * blocks.length + begin,
                 .out = gathered.data(),
                 .count = length,
                 .type = data_type_of<T>()});
      if (b != blocks.mine) continue;
      for (std::int64_t i = 0; i < length; ++i) {
        for (std::int64_t r = 0; r < num_ranks; ++r) {
          values[static_cast<std::size_t>(r)] = gathered[static_cast<std::size_t>(r * length + i)];
        }
        result[static_cast<std::size_t>(i)] = product(values);
      }
    }
    // Only now: `out` may be a part of `in` that a later block's turn reads.
    std::copy_n(result.begin(), length, static_cast<T*>(out) + begin);
  }
}

/// With one rank only the sign of zero (in sums) and the bits of NaN can change.
template <class T>
void normalise(const void* in, void* out, std::int64_t count, ReduceOp op) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  for (std::int64_t i = 0; i < count; ++i) {
    const T x = canonical(from[i]);
    to[i] = op == ReduceOp::kSum && widened(x) == 0 ? T{} : x;
  }
}

template <class S>
void reduce_floats(const PlainCollectives& plain, const CollectiveCall& call) {
  const bool scatters = call.collective == Collective::kReduceScatter;
  const Blocks blocks{scatters ? plain.size : 1, call.count, scatters ? plain.rank : 0};
  if (plain.size == 1) {
    normalise<typename S::Value>(call.in, call.out, blocks.length, call.op);
  } else if (call.op == ReduceOp::kSum) {
    Summation<S>(plain, blocks, call.in, call.out).run();
  } else {
    multiply<typename S::Value>(plain, blocks, call.in, call.out);
  }
}

bool is_plain(const PlainCollectives& plain, DataType type, ReduceOp op) {
  return !changes_bits(type, op) || (plain.size > 1 && (op == ReduceOp::kMin || op == ReduceOp::kMax));
}

}  // namespace

bool changes_bits(DataType type, ReduceOp /*op*/) { return !is_integer(type); }

void run_reproducible(const PlainCollectives& plain, const CollectiveCall& call) {
  if (is_plain(plain, call.type, call.op)) {
    plain.run(call);
    return;
  }
  if (call.count == 0) return;
  if (plain.size > kMaxReproducibleRanks) {
    throw InvalidArgument(
        fmt::format("a reproducible reduction of {} ranks; expected up to {}", plain.size, kMaxReproducibleRanks));
  }
  switch (call.type) {
    case DataType::kFloat16:
      return reduce_floats<Float16Scheme>(plain, call);
    case DataType::kBfloat16:
      return reduce_floats<Bfloat16Scheme>(plain, call);
    case DataType::kFloat32:
      return reduce_floats<Float32Scheme>(plain, call);
    default:
      return reduce_floats<Float64Scheme>(plain, call);
  }
}

}  // namespace gar
