// The n-ary reduction against a serial loop over elements, bit for bit: every type, operator, fan-in, store kind and
// instruction set, aligned or not, in place or not.
#include "gar/reduction.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gar/errors.hpp"
#include "runtime/kernels/kernel.hpp"

namespace gar {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSlow = true;
#else
constexpr bool kIsSlow = false;
#endif
constexpr std::int64_t kGuard = 64;  // bytes before and after every result that must stay as they are

template <class T>
constexpr bool kIsFloat = std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

// ---- the oracle: one element, from left to right

template <class T>
auto wide(T x) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>) {
    return to_float(x);
  } else {
    return x;
  }
}

template <class T, class V>
T narrow(V x) {
  if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(x);
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return to_bfloat16(x);
  } else {
    return static_cast<T>(x);
  }
}

/// Order with -0 below +0; no NaN.
template <class V>
bool less(V a, V b) {
  if constexpr (std::is_floating_point_v<V>) {
    if (a == 0 && b == 0) return std::signbit(a) && !std::signbit(b);
  }
  return a < b;
}

template <class V>
V combine_float(ReduceOp op, V a, V b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<V>::quiet_NaN();
  if (op == ReduceOp::kSum) return a + b;
  if (op == ReduceOp::kProd) return a * b;
  return op == ReduceOp::kMin ? (less(b, a) ? b : a) : (less(a, b) ? b : a);
}

template <class V>
V combine_integer(ReduceOp op, V a, V b) {
  using U = std::make_unsigned_t<V>;
  const auto x = static_cast<std::uint64_t>(static_cast<U>(a));
  const auto y = static_cast<std::uint64_t>(static_cast<U>(b));
  switch (op) {
    case ReduceOp::kSum:
      return static_cast<V>(static_cast<U>(x + y));
    case ReduceOp::kProd:
      return static_cast<V>(static_cast<U>(x * y));
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kBand:
      return static_cast<V>(static_cast<U>(x & y));
    case ReduceOp::kBor:
      return static_cast<V>(static_cast<U>(x | y));
    case ReduceOp::kBxor:
      return static_cast<V>(static_cast<U>(x ^ y));
    case ReduceOp::kLand:
      return static_cast<V>(a != 0 && b != 0);
    case ReduceOp::kLor:
      return static_cast<V>(a != 0 || b != 0);
    case ReduceOp::kLxor:
      return static_cast<V>((a != 0) != (b != 0));
  }
  return 0;
}

template <class T>
T oracle(ReduceOp op, const std::vector<const T*>& operands, std::int64_t i) {
  if (operands.size() == 1) return operands[0][i];
  auto a = wide(operands[0][i]);
  for (std::size_t k = 1; k < operands.size(); ++k) {
    if constexpr (kIsFloat<T>) {
      a = combine_float(op, a, wide(operands[k][i]));
    } else {
      a = combine_integer(op, a, operands[k][i]);
    }
  }
  if constexpr (kIsFloat<T>) {
    if (std::isnan(a)) a = std::numeric_limits<decltype(a)>::quiet_NaN();
  }
  return narrow<T>(a);
}

// ---- inputs

template <class T>
using Bits = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                   std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
T of_bits(std::uint64_t bits) {
  return std::bit_cast<T>(static_cast<Bits<T>>(bits));
}

/// Ordinary numbers whose sums need rounding and whose products stay finite for a while.
template <class T>
T ordinary(std::mt19937_64& random) {
  const double mantissa = std::uniform_real_distribution<double>(1, 2)(random);
  const double sign = (random() & 1) != 0 ? 1 : -1;
  return narrow<T>(static_cast<decltype(wide(T{}))>(sign * std::ldexp(mantissa, static_cast<int>(random() % 7) - 3)));
}

template <class T>
T special(std::mt19937_64& random) {
  using V = decltype(wide(T{}));
  using Limits = std::numeric_limits<V>;
  switch (random() % 8) {
    case 0:
      return narrow<T>(Limits::infinity());
    case 1:
      return narrow<T>(-Limits::infinity());
    case 2:
      return narrow<T>(V{0});
    case 3:
      return narrow<T>(-V{0});
    case 4:
      return of_bits<T>(random());  // denormal, huge, NaN with a payload, ...
    case 5:                         // the largest finite number
      return of_bits<T>(std::bit_cast<Bits<T>>(narrow<T>(Limits::infinity())) - 1U);
    case 6:  // a denormal
      return of_bits<T>(random() % 64 + 1);
    default:
      return narrow<T>(-Limits::quiet_NaN());
  }
}

/// One element of all operands: columns of a kind, because a single NaN hides everything else.
template <class T>
T draw(std::mt19937_64& random, std::int64_t column) {
  if constexpr (kIsFloat<T>) {
    switch (column % 4) {
      case 0:
      case 1:
        return ordinary<T>(random);
      case 2:
        return random() % 16 == 0 ? special<T>(random) : ordinary<T>(random);
      default:
        return narrow<T>((random() & 1) != 0 ? decltype(wide(T{})){0} : -decltype(wide(T{})){0});
    }
  } else {
    switch (column % 3) {
      case 0:
        return of_bits<T>(random());
      case 1:
        return static_cast<T>(random() % 3);  // zeros for the logical operators
      default:
        return random() % 4 == 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
    }
  }
}

/// A vector at `offset` elements past a 64-byte boundary, between guard bytes.
template <class T>
class Buffer {
 public:
  Buffer(std::int64_t count, std::int64_t offset)
      : bytes_(static_cast<std::size_t>(count * static_cast<std::int64_t>(sizeof(T)) + 4 * kGuard), std::byte{0xa5}),
        count_(count) {
    const auto base = reinterpret_cast<std::uintptr_t>(bytes_.data()) + kGuard;
    const std::uintptr_t aligned = (base + 63) / 64 * 64 + static_cast<std::uintptr_t>(offset) * sizeof(T) % 64;
    begin_ = reinterpret_cast<T*>(aligned);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() = default;
  T* data() { return begin_; }
  [[nodiscard]] bool guards_intact() const {
    const auto* first = reinterpret_cast<const std::byte*>(begin_);
    const auto* last = reinterpret_cast<const std::byte*>(begin_ + count_);
    const auto is_guard = [](std::byte b) { return b == std::byte{0xa5}; };
    return std::all_of(bytes_.data(), first, is_guard) && std::all_of(last, bytes_.data() + bytes_.size(), is_guard);
  }

 private:
  std::vector<std::byte> bytes_;
  std::int64_t count_;
  T* begin_;
};

std::vector<KernelSet> all_kernels() {
  std::vector<KernelSet> sets = simd_kernels();
  sets.push_back(portable_kernels());
  return sets;
}

// ---- the sweep

template <class T>
class Case {
 public:
  Case(ReduceOp op, std::int64_t fan_in, std::int64_t count, std::uint64_t seed)
      : op_(op), fan_in_(fan_in), count_(count), random_(seed) {
    for (std::int64_t k = 0; k < fan_in; ++k) {
      buffers_.emplace_back(count, static_cast<std::int64_t>(random_() % 64));
      pointers_.push_back(buffers_.back().data());
      for (std::int64_t i = 0; i < count; ++i) buffers_.back().data()[i] = draw<T>(random_, i);
    }
    for (std::int64_t i = 0; i < count; ++i) expected_.push_back(oracle<T>(op, pointers_, i));
  }

  /// In place at `position`, or out of place (-1).
  void check(const KernelSet* set, std::int64_t position, bool is_streaming) {
    Buffer<T> out(count_, static_cast<std::int64_t>(random_() % 64));
    std::vector<const void*> operands(pointers_.begin(), pointers_.end());
    if (position >= 0) {
      copy_out(out.data(), pointers_[static_cast<std::size_t>(position)]);
      operands[static_cast<std::size_t>(position)] = out.data();
    }
    if (set != nullptr && fan_in_ > 1 && count_ > 0) {
      set->kernel(data_type_of<T>(), op_)({out.data(), operands.data(), fan_in_, count_, is_streaming});
    } else {
      reduce(data_type_of<T>(), op_, out.data(), operands, count_, is_streaming ? Stores::kStreaming : Stores::kCached);
    }
    if (!out.guards_intact()) fail("wrote outside of the result", set, position, is_streaming);
    if (count_ > 0 && std::memcmp(out.data(), expected_.data(), expected_.size() * sizeof(T)) != 0) {
      fail(first_difference(out.data()), set, position, is_streaming);
    }
  }

 private:
  void copy_out(T* to, const T* from) const { std::copy(from, from + count_, to); }

  std::string first_difference(const T* out) const {
    for (std::int64_t i = 0; i < count_; ++i) {
      const T& e = expected_[static_cast<std::size_t>(i)];
      if (std::memcmp(&out[i], &e, sizeof(T)) == 0) continue;
      const auto got = std::bit_cast<Bits<T>>(out[i]);
      const auto want = std::bit_cast<Bits<T>>(e);
      return "element " + std::to_string(i) + ": bits " + std::to_string(got) + " instead of " + std::to_string(want);
    }
    return {};
  }

  void fail(const std::string& what, const KernelSet* set, std::int64_t position, bool is_streaming) const {
    ADD_FAILURE() << to_string(data_type_of<T>()) << ' ' << to_string(op_) << ", " << fan_in_ << " operands, " << count_
                  << " elements, in place " << position << ", streaming " << is_streaming << ", "
                  << (set != nullptr ? set->name : "reduce()") << ": " << what;
  }

  ReduceOp op_;
  std::int64_t fan_in_;
  std::int64_t count_;
  std::mt19937_64 random_;
  std::vector<Buffer<T>> buffers_;
  std::vector<const T*> pointers_;
  std::vector<T> expected_;
};

constexpr std::int64_t kCounts[] = {0, 1, 2, 3, 7, 15, 16, 17, 63, 64, 65, 1000, 1003};

template <class T>
class ReductionTest : public ::testing::Test {
 protected:
  static void check_all(ReduceOp op, std::int64_t fan_in, std::int64_t count) {
    static const std::vector<KernelSet> kSets = all_kernels();
    Case<T> one(op, fan_in, count, static_cast<std::uint64_t>(1000 * fan_in + count));
    for (const bool is_streaming : {false, true}) {
      one.check(nullptr, -1, is_streaming);
      for (const KernelSet& set : kSets) {
        one.check(&set, -1, is_streaming);
        // With many elements the positions are sampled; the elements themselves meet every loop of a kernel.
        const std::int64_t step = count > 65 || kIsSlow ? std::max<std::int64_t>(fan_in / 2, 1) : 1;
        for (std::int64_t position = 0; position < fan_in; position += step) one.check(&set, position, is_streaming);
        one.check(&set, fan_in - 1, is_streaming);
      }
    }
  }
};

using Types = ::testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                               std::int64_t, std::uint64_t, Float16, Bfloat16, float, double>;
TYPED_TEST_SUITE(ReductionTest, Types);

TYPED_TEST(ReductionTest, equals_a_serial_loop) {
  for (int op = 0; op < kNumReduceOps; ++op) {
    if (!is_supported(data_type_of<TypeParam>(), static_cast<ReduceOp>(op))) continue;
    for (std::int64_t fan_in = 1; fan_in <= 20; fan_in += kIsSlow && fan_in > 3 ? 4 : 1) {
      for (const std::int64_t count : kCounts) this->check_all(static_cast<ReduceOp>(op), fan_in, count);
    }
    this->check_all(static_cast<ReduceOp>(op), 131, 300);
  }
}

// So many operands and elements that a kernel reads them in groups, block by block.
TYPED_TEST(ReductionTest, equals_a_serial_loop_in_groups_and_blocks) {
  const auto count = static_cast<std::int64_t>((std::size_t{140'000} + 7) / sizeof(TypeParam)) + 3;
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kLxor}) {
    if (!is_supported(data_type_of<TypeParam>(), op)) continue;
    for (const std::int64_t fan_in : {13, 17, 40}) {
      if (!kIsSlow || fan_in == 17) this->check_all(op, fan_in, count);
    }
  }
}

// Every position of the vector gives the same bits for the same operands: min and max of zeros and NaN in both orders.
TYPED_TEST(ReductionTest, does_not_depend_on_the_lane) {
  if constexpr (kIsFloat<TypeParam>) {
    using V = decltype(wide(TypeParam{}));
    const V nan = std::numeric_limits<V>::quiet_NaN();
    const V inf = std::numeric_limits<V>::infinity();
    const std::vector<V> values = {0, -V{0}, 1, -1, inf, -inf, nan, -nan};
    for (const V a : values) {
      for (const V b : values) {
        const std::vector<TypeParam> left(101, narrow<TypeParam>(a));
        const std::vector<TypeParam> right(101, narrow<TypeParam>(b));
        for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax}) {
          for (const KernelSet& set : all_kernels()) {
            std::vector<TypeParam> out(101);
            std::vector<TypeParam> swapped(101);
            const void* operands[] = {left.data(), right.data(), left.data()};
            set.kernel(data_type_of<TypeParam>(), op)({out.data(), operands, 2, 101, false});
            set.kernel(data_type_of<TypeParam>(), op)({swapped.data(), operands + 1, 2, 101, false});
            for (std::size_t i = 0; i < out.size(); ++i) {
              ASSERT_EQ(0, std::memcmp(&out[i], out.data(), sizeof(TypeParam))) << set.name << ' ' << a << ' ' << b;
              ASSERT_EQ(0, std::memcmp(&out[i], &swapped[i], sizeof(TypeParam))) << set.name << ' ' << a << ' ' << b;
            }
          }
        }
      }
    }
  }
}

TEST(Reduction, accumulates_16_bit_floats_in_float) {
  // 2048 + 1 is not a float16, so that adding ones one after the other in float16 would stay at 2048.
  const std::vector<Float16> big(40, to_float16(2048));
  const std::vector<Float16> one(40, to_float16(1));
  for (const std::size_t fan_in : {3U, 17U, 33U, 101U}) {
    std::vector<const void*> operands(fan_in, one.data());
    operands[0] = big.data();
    std::vector<Float16> out(40);
    reduce(DataType::kFloat16, ReduceOp::kSum, out.data(), operands, 40);
    for (const Float16 x : out) EXPECT_EQ(x, to_float16(2048 + static_cast<float>(fan_in - 1))) << fan_in;
  }
}

TEST(Reduction, copies_any_number_of_bytes_to_any_address) {
  std::vector<std::byte> from(3000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 % 251);
  std::vector<KernelSet> sets = all_kernels();
  for (const std::int64_t bytes : {0, 1, 2, 31, 63, 64, 65, 127, 128, 255, 256, 257, 511, 1000, 2500}) {
    for (std::int64_t offset = 0; offset < 70; offset += 3) {
      for (const KernelSet& set : sets) {
        Buffer<std::uint8_t> out(bytes, offset);
        set.copy_streaming(out.data(), from.data() + offset / 2, bytes);
        EXPECT_EQ(0, std::memcmp(out.data(), from.data() + offset / 2, static_cast<std::size_t>(bytes)));
        EXPECT_TRUE(out.guards_intact()) << set.name << ' ' << bytes << ' ' << offset;
      }
      for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
        Buffer<std::uint8_t> out(bytes, offset);
        copy(out.data(), from.data(), bytes, stores);
        EXPECT_EQ(0, std::memcmp(out.data(), from.data(), static_cast<std::size_t>(bytes)));
        EXPECT_TRUE(out.guards_intact());
      }
    }
  }
  copy(from.data(), from.data(), 3000, Stores::kStreaming);
  EXPECT_EQ(from[2999], static_cast<std::byte>(2999 * 7 % 251));
}

// ---- names

TEST(Reduction, names_and_sizes) {
  for (int i = 0; i < kNumDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(parse_data_type(to_string(type)), type);
    EXPECT_EQ(is_integer(type), to_string(type).find("int") != std::string_view::npos);
  }
  for (int i = 0; i < kNumReduceOps; ++i) {
    EXPECT_EQ(parse_reduce_op(to_string(static_cast<ReduceOp>(i))), static_cast<ReduceOp>(i));
  }
  EXPECT_EQ(to_string(DataType::kBfloat16), "bfloat16");
  EXPECT_EQ(to_string(ReduceOp::kLxor), "lxor");
  EXPECT_EQ(size_of(DataType::kFloat16), 2);
  EXPECT_EQ(size_of(data_type_of<double>()), 8);
  EXPECT_TRUE(is_supported(DataType::kUint8, ReduceOp::kLxor));
  EXPECT_TRUE(is_supported(DataType::kBfloat16, ReduceOp::kMax));
  EXPECT_FALSE(is_supported(DataType::kFloat64, ReduceOp::kBand));
  EXPECT_FALSE(simd_name().empty());
}

TEST(Reduction, refuses_what_makes_no_sense) {
  const float x = 1;
  float out = 0;
  const void* operands[] = {&x, &x};
  EXPECT_THROW(reduce(DataType::kFloat32, ReduceOp::kBxor, &out, operands, 1), InvalidArgument);
  EXPECT_THROW(reduce(DataType::kFloat32, ReduceOp::kSum, &out, {}, 1), InvalidArgument);
  EXPECT_THROW(reduce(DataType::kFloat32, ReduceOp::kSum, &out, operands, -1), InvalidArgument);
  EXPECT_THROW(static_cast<void>(size_of(static_cast<DataType>(12))), InvalidArgument);
  EXPECT_THROW(static_cast<void>(is_supported(DataType::kInt8, static_cast<ReduceOp>(-1))), InvalidArgument);
  EXPECT_THROW(parse_data_type("float"), InvalidArgument);
  EXPECT_THROW(parse_reduce_op(""), InvalidArgument);
  try {
    parse_data_type("half");
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()),
              "unknown data type 'half'; expected int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 "
              "float32 float64");
  }
}

// ---- 16-bit floats

/// (-1)^sign 2^(exponent - bias) 1.mantissa, by arithmetic.
double value_of(std::uint32_t bits, int mantissa_bits, int bias) {
  const std::uint32_t exponent = (bits & 0x7fff) >> mantissa_bits;
  const double fraction = (bits & ((1U << mantissa_bits) - 1)) * std::ldexp(1.0, -mantissa_bits);
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, static_cast<int>(exponent) - bias);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <class Half>
Half rounded(float x) {
  if constexpr (std::is_same_v<Half, Float16>) {
    return to_float16(x);
  } else {
    return to_bfloat16(x);
  }
}

template <class Half>
void check_conversions(int mantissa_bits, int bias) {
  const std::uint32_t infinity = 0x7fff & ~((1U << mantissa_bits) - 1);
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const float x = to_float(half);
    if ((bits & 0x7fff) > infinity) {
      EXPECT_TRUE(std::isnan(x));
      EXPECT_TRUE(std::isnan(to_float(rounded<Half>(x))));
      EXPECT_EQ(rounded<Half>(x).bits & (1U << (mantissa_bits - 1)), 1U << (mantissa_bits - 1)) << "quiet";
      continue;
    }
    if ((bits & 0x7fff) == infinity) {
      EXPECT_EQ(x, (bits & 0x8000) != 0 ? -INFINITY : INFINITY);
    } else {
      EXPECT_EQ(x, value_of(bits, mantissa_bits, bias));
    }
    EXPECT_EQ(std::signbit(x), (bits & 0x8000) != 0);
    ASSERT_EQ(rounded<Half>(x), half);
  }
  // Between two neighbours: the middle goes to the even one, everything else to the nearer; above the largest likewise,
  // as if infinity were the next number.
  for (std::uint32_t bits = 0; bits < infinity; ++bits) {
    const double low = value_of(bits, mantissa_bits, bias);
    const double high = value_of(bits + 1, mantissa_bits, bias);
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(static_cast<double>(middle), (low + high) / 2);
    for (const std::uint32_t sign : {0U, 0x8000U}) {
      const float flip = sign != 0 ? -1.0F : 1.0F;
      ASSERT_EQ(rounded<Half>(flip * middle).bits, sign | (bits + (bits & 1)));
      ASSERT_EQ(rounded<Half>(flip * std::nextafter(middle, 0.0F)).bits, sign | bits);
      ASSERT_EQ(rounded<Half>(flip * std::nextafter(middle, INFINITY)).bits, sign | (bits + 1));
    }
  }
}

TEST(Reduction, converts_every_float16) {
  check_conversions<Float16>(10, 15);
  EXPECT_EQ(to_float16(65519.996F).bits, 0x7bff);
  EXPECT_EQ(to_float16(65520).bits, 0x7c00);
  EXPECT_EQ(to_float16(3e38F).bits, 0x7c00);
  EXPECT_EQ(to_float16(-1e-30F).bits, 0x8000);
}

TEST(Reduction, converts_every_bfloat16) { check_conversions<Bfloat16>(7, 127); }

// The kernels' own conversions: x + (-0) is x for every 16-bit number.
TEST(Reduction, kernels_convert_every_16_bit_float) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  const std::vector<std::uint16_t> zero(65536, 0x8000);
  const void* operands[] = {all.data(), zero.data()};
  for (const KernelSet& set : all_kernels()) {
    for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
      const std::uint16_t infinity = type == DataType::kFloat16 ? 0x7c00 : 0x7f80;
      const std::uint16_t nan = type == DataType::kFloat16 ? 0x7e00 : 0x7fc0;
      std::vector<std::uint16_t> out(65536);
      set.kernel(type, ReduceOp::kSum)({out.data(), operands, 2, 65536, false});
      for (std::uint32_t i = 0; i < 65536; ++i) {
        ASSERT_EQ(out[i], (i & 0x7fff) > infinity ? nan : i) << set.name << ' ' << to_string(type);
      }
    }
  }
}

}  // namespace
}  // namespace gar
