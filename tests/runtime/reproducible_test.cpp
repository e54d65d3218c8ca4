// Reproducible reductions over collectives that combine in random orders and groupings, against exact arithmetic.
#include "runtime/reproducible.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "gar/errors.hpp"

namespace gar {
namespace {

// ---- exact sums: a number is a two's complement integer of 2560 bits, in units of 2^-1200

class Exact {
 public:
  void add(double x) {
    if (x == 0) return;
    int exponent = 0;
    const auto mantissa = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::fabs(x), &exponent), 53));
    const int shift = exponent - 53 + 1200;
    ASSERT_GE(shift, 0);
    const auto first = static_cast<std::size_t>(shift / 32);
    const int bits = shift % 32;
    const std::array<std::uint64_t, 3> parts = {(mantissa << bits) & 0xffffffff, (mantissa >> (32 - bits)) & 0xffffffff,
                                                bits == 0 ? 0 : mantissa >> (64 - bits)};
    std::int64_t carry = 0;
    for (std::size_t i = first; i < limbs_.size(); ++i) {
      const std::int64_t part = i - first < 3 ? static_cast<std::int64_t>(parts[i - first]) : 0;
      carry += static_cast<std::int64_t>(limbs_[i]) + (x < 0 ? -part : part);
      limbs_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }

  /// To the nearest number with `precision` bits that is a multiple of 2^least, ties to even.
  [[nodiscard]] double rounded(int precision, int least) const {
    const bool is_negative = (limbs_.back() >> 31) != 0;
    Exact magnitude = *this;
    if (is_negative) magnitude.negate();
    int top = 32 * static_cast<int>(limbs_.size()) - 1;
    while (top >= 0 && !magnitude.bit(top)) --top;
    if (top < 0) return 0;
    const int last = std::max(top - precision + 1, least + 1200);
    std::uint64_t kept = 0;
    for (int i = top; i >= last; --i) kept = 2 * kept + (magnitude.bit(i) ? 1 : 0);
    bool has_rest = false;
    for (int i = 0; i < last - 1; ++i) has_rest = has_rest || magnitude.bit(i);
    if (last > 0 && magnitude.bit(last - 1) && (has_rest || (kept & 1) != 0)) ++kept;
    const double result = std::ldexp(static_cast<double>(kept), last - 1200);
    return is_negative ? -result : result;
  }

 private:
  [[nodiscard]] bool bit(int i) const { return ((limbs_[static_cast<std::size_t>(i / 32)] >> (i % 32)) & 1) != 0; }
  void negate() {
    std::uint64_t carry = 1;
    for (std::uint32_t& limb : limbs_) {
      carry += static_cast<std::uint32_t>(~limb);
      limb = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }
  std::array<std::uint32_t, 80> limbs_{};
};

// ---- the types

template <class T>
struct Format;
template <>
struct Format<float> {
  static constexpr int kPrecision = 24, kLeast = -149, kBits = 41;
  static double wide(float x) { return x; }
  static float narrow(double x) { return static_cast<float>(x); }
};
template <>
struct Format<double> {
  static constexpr int kPrecision = 53, kLeast = -1074, kBits = 84;
  static double wide(double x) { return x; }
  static double narrow(double x) { return x; }
};
template <>
struct Format<Bfloat16> {
  static constexpr int kPrecision = 8, kLeast = -133, kBits = 41;
  static double wide(Bfloat16 x) { return to_float(x); }
  static Bfloat16 narrow(double x) { return to_bfloat16(static_cast<float>(x)); }
};
template <>
struct Format<Float16> {
  static constexpr int kPrecision = 11, kLeast = -24, kBits = 1000;  // exact
  static double wide(Float16 x) { return to_float(x); }
  static Float16 narrow(double x) { return to_float16(static_cast<float>(x)); }
};

template <class T>
T quiet_nan() {
  return Format<T>::narrow(std::numeric_limits<double>::quiet_NaN());
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// To the nearest multiple of 2^unit, ties to even.
double on_grid(double x, int unit) {
  if (x == 0) return 0;
  int exponent = 0;
  const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(std::fabs(x), &exponent), 53));
  const int surplus = unit - (exponent - 53);
  if (surplus <= 0) return x;
  if (surplus > 55) return 0;
  const std::int64_t half = std::int64_t{1} << (surplus - 1);
  std::int64_t kept = mantissa >> surplus;
  const std::int64_t rest = mantissa - (kept << surplus);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  return std::copysign(std::ldexp(static_cast<double>(kept), unit), x);
}

/// The definition: round every value to the grid that the largest one sets, add exactly, round once; zero is +0.
template <class T>
T defined_sum(const std::vector<T>& values) {
  using F = Format<T>;
  bool has_plus = false;
  bool has_minus = false;
  int exponent = F::kLeast + F::kPrecision - 1;  // of the smallest normal number
  for (const T value : values) {
    const double x = F::wide(value);
    if (std::isnan(x)) return quiet_nan<T>();
    if (std::isinf(x)) {
      (x > 0 ? has_plus : has_minus) = true;
    } else if (x != 0) {
      exponent = std::max(exponent, std::ilogb(x));
    }
  }
  if (has_plus && has_minus) return quiet_nan<T>();
  if (has_plus || has_minus) return F::narrow(has_plus ? INFINITY : -INFINITY);
  Exact sum;
  for (const T value : values) sum.add(on_grid(F::wide(value), exponent - F::kBits));
  const double result = sum.rounded(F::kPrecision, F::kLeast);
  return F::narrow(result == 0 ? 0 : result);
}

// ---- ranks as threads, and collectives between them

template <class T>
using Columns = std::vector<std::vector<T>>;  // [rank][element]

class Bus {
 public:
  Bus(int size, std::uint64_t seed)
      : size_(size), random_(seed), barrier_(size), inputs_(static_cast<std::size_t>(size)) {}

  PlainCollectives plain(int rank) {
    PlainCollectives p;
    p.rank = rank;
    p.size = size_;
    p.run = [this, rank](const CollectiveCall& call) {
      const std::int64_t block = call.count * size_of(call.type);
      exchange(rank, call.in, [&] {
        if (call.collective == Collective::kAllGather) {
          gather(block);
        } else {
          combine(vector_bytes(call, size_) / size_of(call.type), call.type, call.op);
        }
      });
      give(call.out, call.collective == Collective::kReduceScatter ? rank * block : 0, out_bytes(call, size_));
    };
    return p;
  }
  [[nodiscard]] std::int64_t largest_call() const { return largest_call_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  template <class F>
  void exchange(int rank, const void* in, F work) {
    inputs_[static_cast<std::size_t>(rank)] = static_cast<const std::byte*>(in);
    barrier_.arrive_and_wait();
    if (rank == 0) work();
    barrier_.arrive_and_wait();
  }
  void give(void* out, std::int64_t offset, std::int64_t bytes) {
    std::memcpy(out, result_.data() + offset, static_cast<std::size_t>(bytes));
    barrier_.arrive_and_wait();
  }
  void note(std::int64_t bytes) {
    bytes_ += bytes;
    largest_call_ = std::max(largest_call_, bytes);
  }

  /// Random ranks' values are combined, a random number at a time, until one is left.
  void combine(std::int64_t count, DataType type, ReduceOp op) {
    const auto bytes = static_cast<std::size_t>(count * size_of(type));
    note(count * size_of(type));
    std::vector<std::vector<std::byte>> pool;
    for (const std::byte* in : inputs_) pool.emplace_back(in, in + bytes);
    while (pool.size() > 1) {
      std::shuffle(pool.begin(), pool.end(), random_);
      const std::size_t taken = std::min<std::size_t>(pool.size(), 2 + random_() % 4);
      std::vector<const void*> operands;
      for (std::size_t k = pool.size() - taken; k < pool.size(); ++k) operands.push_back(pool[k].data());
      std::vector<std::byte> out(bytes);
      reduce(type, op, out.data(), operands, count);
      pool.resize(pool.size() - taken);
      pool.push_back(std::move(out));
    }
    result_ = pool.front();
  }
  void gather(std::int64_t bytes) {
    note(bytes * size_);
    result_.clear();
    for (const std::byte* in : inputs_) result_.insert(result_.end(), in, in + bytes);
  }

  int size_;
  std::mt19937_64 random_;
  std::barrier<> barrier_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte> result_;
  std::int64_t largest_call_ = 0;
  std::int64_t bytes_ = 0;
};

struct Setting {
  std::uint64_t seed = 1;
  std::int64_t window_bytes = std::int64_t{4} << 20;
  bool is_in_place = false;
};

template <class F>
void on_all_ranks(int size, F f) {
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) threads.emplace_back([&f, r] { f(r); });
  for (std::thread& t : threads) t.join();
}

/// All ranks' results, which are checked to be the same.
template <class T>
std::vector<T> all_reduce(const Columns<T>& in, ReduceOp op, const Setting& setting = {}, Bus* used = nullptr) {
  const int size = static_cast<int>(in.size());
  Bus own(size, setting.seed);
  Bus& bus = used != nullptr ? *used : own;
  Columns<T> out = setting.is_in_place ? in : Columns<T>(in.size(), std::vector<T>(in[0].size()));
  on_all_ranks(size, [&](int r) {
    PlainCollectives plain = bus.plain(r);
    plain.window_bytes = setting.window_bytes;
    const auto k = static_cast<std::size_t>(r);
    run_reproducible(plain, {Collective::kAllReduce, setting.is_in_place ? out[k].data() : in[k].data(), out[k].data(),
                             static_cast<std::int64_t>(in[k].size()), data_type_of<T>(), op});
  });
  for (const std::vector<T>& result : out) {
    EXPECT_TRUE(std::equal(result.begin(), result.end(), out[0].begin(), same_bits<T>));
  }
  return out[0];
}

/// The blocks of all ranks one after the other: what all_reduce gives. In place: in rank r's own block, or the first
/// one.
template <class T>
std::vector<T> reduce_scatter(const Columns<T>& in, ReduceOp op, const Setting& setting = {}) {
  const int size = static_cast<int>(in.size());
  const std::size_t block = in[0].size() / in.size();
  Bus bus(size, setting.seed);
  Columns<T> work = in;
  std::vector<T> out(block * in.size());
  on_all_ranks(size, [&](int r) {
    PlainCollectives plain = bus.plain(r);
    plain.window_bytes = setting.window_bytes;
    const auto k = static_cast<std::size_t>(r);
    std::vector<T> apart(block);
    T* to = setting.is_in_place ? work[k].data() + (setting.seed % 2 == 0 ? 0 : k * block) : apart.data();
    run_reproducible(plain, {Collective::kReduceScatter, work[k].data(), to, static_cast<std::int64_t>(block),
                             data_type_of<T>(), op});
    std::copy(to, to + block, out.begin() + static_cast<std::ptrdiff_t>(k * block));
  });
  return out;
}

// ---- inputs

/// Each column is of a kind: near each other, far apart, cancelling, tiny, huge, ties.
template <class T>
T draw(std::mt19937_64& random, std::size_t column) {
  using F = Format<T>;
  const int top = std::is_same_v<T, Float16> ? 15 : std::is_same_v<T, double> ? 1023 : 127;
  const int bottom = F::kLeast;
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  const double mantissa = std::uniform_real_distribution<double>(1, 2)(random) * ((random() & 1) != 0 ? 1 : -1);
  switch (column % 8) {
    case 0:
      return F::narrow(std::ldexp(mantissa, between(-3, 3)));
    case 1:
      return F::narrow(std::ldexp(mantissa, between(-14, 14)));
    case 2:  // around the end of the grid, next to ones that often cancel
      return F::narrow((random() & 1) != 0 ? std::copysign(1.0, mantissa)
                                           : std::ldexp(mantissa, -F::kBits + between(-3, F::kPrecision + 3)));
    case 3:
      return F::narrow(std::ldexp(mantissa, between(bottom, bottom + F::kPrecision + 2)));
    case 4:  // overflow on the way
      return F::narrow(std::ldexp(mantissa < 0 ? -1.5 : 1.75, top));
    case 5:  // exact ties
      return F::narrow(std::ldexp((random() & 1) != 0 ? 1.0 : -1.0, -between(0, F::kPrecision + 1)));
    case 6:
      return F::narrow((random() & 1) != 0 ? 0.0 : -0.0);
    default:
      return F::narrow(std::ldexp(mantissa, between(bottom, top - 1)));
  }
}

template <class T>
Columns<T> draw_columns(int size, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Columns<T> in(static_cast<std::size_t>(size), std::vector<T>(count));
  for (auto& rank : in) {
    for (std::size_t i = 0; i < count; ++i) rank[i] = draw<T>(random, i);
  }
  return in;
}

template <class T>
std::vector<T> column(const Columns<T>& in, std::size_t i) {
  std::vector<T> values;
  for (const auto& rank : in) values.push_back(rank[i]);
  return values;
}

template <class T>
class ReproducibleTest : public ::testing::Test {};
using Types = ::testing::Types<Float16, Bfloat16, float, double>;
TYPED_TEST_SUITE(ReproducibleTest, Types);

TYPED_TEST(ReproducibleTest, sum_is_the_defined_one) {
  using F = Format<TypeParam>;
  for (const int size : {1, 2, 3, 5, 8}) {
    const Columns<TypeParam> in = draw_columns<TypeParam>(size, 800, static_cast<std::uint64_t>(size));
    const std::vector<TypeParam> out = all_reduce(in, ReduceOp::kSum);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const TypeParam expected = defined_sum(column(in, i));
      ASSERT_TRUE(same_bits(out[i], expected))
          << size << " ranks, element " << i << ": " << F::wide(out[i]) << " instead of " << F::wide(expected);
    }
  }
}

TYPED_TEST(ReproducibleTest, order_grouping_windows_and_idle_ranks_change_nothing) {
  std::mt19937_64 random(7);
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax}) {
    Columns<TypeParam> in = draw_columns<TypeParam>(4, 211, 17);
    const std::vector<TypeParam> expected = all_reduce(in, op);
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      std::shuffle(in.begin(), in.end(), random);
      Columns<TypeParam> more = in;
      const double neutral[] = {0.0, 1.0, INFINITY, -INFINITY};
      const TypeParam idle = Format<TypeParam>::narrow(neutral[static_cast<int>(op)]);
      for (std::uint64_t k = 0; k < seed; ++k) {
        more.insert(more.begin() + static_cast<std::ptrdiff_t>(random() % (more.size() + 1)),
                    std::vector<TypeParam>(211, idle));
      }
      const Setting setting{seed, std::int64_t{1} << (2 * seed), seed % 2 == 0};
      const std::vector<TypeParam> out = all_reduce(more, op, setting);
      ASSERT_EQ(0, std::memcmp(out.data(), expected.data(), out.size() * sizeof(TypeParam)))
          << to_string(op) << ", seed " << seed;
    }
  }
}

// One rank alone gives what it gives among idle ranks: +0 for -0, the canonical NaN.
TYPED_TEST(ReproducibleTest, one_rank_is_no_exception) {
  using F = Format<TypeParam>;
  Columns<TypeParam> one = draw_columns<TypeParam>(1, 100, 3);
  one[0][0] = F::narrow(-std::numeric_limits<double>::quiet_NaN());
  one[0][1] = F::narrow(-0.0);
  const std::vector<TypeParam> idle(100, F::narrow(0));
  const std::vector<TypeParam> alone = all_reduce(one, ReduceOp::kSum);
  const std::vector<TypeParam> together = all_reduce(Columns<TypeParam>{idle, one[0], idle}, ReduceOp::kSum);
  EXPECT_EQ(0, std::memcmp(alone.data(), together.data(), 100 * sizeof(TypeParam)));
  EXPECT_TRUE(same_bits(alone[0], quiet_nan<TypeParam>()));
  EXPECT_TRUE(same_bits(alone[1], F::narrow(0.0)));
  const std::vector<TypeParam> minimum = all_reduce(one, ReduceOp::kMin);
  EXPECT_TRUE(same_bits(minimum[0], quiet_nan<TypeParam>()));
  EXPECT_TRUE(same_bits(minimum[1], F::narrow(-0.0)));
}

TYPED_TEST(ReproducibleTest, reduce_scatter_gives_the_same_bits) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax}) {
    for (const int size : {1, 2, 3, 5}) {
      Columns<TypeParam> in = draw_columns<TypeParam>(size, static_cast<std::size_t>(size) * 41, 5);
      if (size > 1) in[1][7] = Format<TypeParam>::narrow(-INFINITY);
      const std::vector<TypeParam> expected = all_reduce(in, op);
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const Setting setting{seed, std::int64_t{16} << (2 * seed), seed > 2};
        const std::vector<TypeParam> out = reduce_scatter(in, op, setting);
        ASSERT_EQ(0, std::memcmp(out.data(), expected.data(), out.size() * sizeof(TypeParam)))
            << to_string(op) << ", " << size << " ranks, seed " << seed;
      }
    }
  }
}

TYPED_TEST(ReproducibleTest, infinities_and_nan) {
  using F = Format<TypeParam>;
  const double inf = INFINITY;
  const double nan = -std::numeric_limits<double>::quiet_NaN();
  const double largest = std::is_same_v<TypeParam, Float16>    ? 65504
                         : std::is_same_v<TypeParam, Bfloat16> ? static_cast<double>(to_float(Bfloat16{0x7f7f}))
                         : std::is_same_v<TypeParam, float>    ? static_cast<double>(std::numeric_limits<float>::max())
                                                               : std::numeric_limits<double>::max();
  const std::vector<std::vector<double>> cases = {
      // three ranks, sum
      {inf, 1, 2, inf},
      {1, -inf, largest, -inf},
      {inf, -inf, 1, nan},
      {nan, 1, 2, nan},
      {inf, nan, inf, nan},
      {inf, inf, inf, inf},
      {largest, largest, 1, inf},
      {-largest, -largest, -largest, -inf},
      {largest, largest, -largest, largest},
      {-1, 0, 1, 0},
      {-0.0, -0.0, -0.0, 0},
  };
  Columns<TypeParam> in(3);
  for (const auto& one : cases) {
    for (std::size_t r = 0; r < 3; ++r) in[r].push_back(F::narrow(one[r]));
  }
  const std::vector<TypeParam> out = all_reduce(in, ReduceOp::kSum);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const TypeParam expected = std::isnan(cases[i][3]) ? quiet_nan<TypeParam>() : F::narrow(cases[i][3]);
    EXPECT_TRUE(same_bits(out[i], expected)) << i << ": " << F::wide(out[i]) << " instead of " << F::wide(expected);
  }
}

TYPED_TEST(ReproducibleTest, min_and_max_order_zeros_and_give_the_canonical_nan) {
  using F = Format<TypeParam>;
  const double nan = -std::numeric_limits<double>::quiet_NaN();
  const Columns<TypeParam> in = {{F::narrow(0.0), F::narrow(-0.0), F::narrow(nan), F::narrow(1)},
                                 {F::narrow(-0.0), F::narrow(0.0), F::narrow(1), F::narrow(-2)}};
  const std::vector<TypeParam> low = all_reduce(in, ReduceOp::kMin);
  const std::vector<TypeParam> high = all_reduce(in, ReduceOp::kMax);
  EXPECT_TRUE(same_bits(low[0], F::narrow(-0.0)) && same_bits(low[1], F::narrow(-0.0)));
  EXPECT_TRUE(same_bits(high[0], F::narrow(0.0)) && same_bits(high[1], F::narrow(0.0)));
  EXPECT_TRUE(same_bits(low[2], quiet_nan<TypeParam>()) && same_bits(high[2], quiet_nan<TypeParam>()));
  EXPECT_TRUE(same_bits(low[3], F::narrow(-2)) && same_bits(high[3], F::narrow(1)));
}

TYPED_TEST(ReproducibleTest, products) {
  using F = Format<TypeParam>;
  Columns<TypeParam> in = {{F::narrow(3), F::narrow(0), F::narrow(-0.5), F::narrow(INFINITY)},
                           {F::narrow(-5), F::narrow(7), F::narrow(-8), F::narrow(0)}};
  const std::vector<TypeParam> out = all_reduce(in, ReduceOp::kProd);
  EXPECT_TRUE(same_bits(out[0], F::narrow(-15)));
  EXPECT_TRUE(same_bits(out[1], F::narrow(0)));
  EXPECT_TRUE(same_bits(out[2], F::narrow(4)));
  EXPECT_TRUE(same_bits(out[3], quiet_nan<TypeParam>()));
}

// Error at most n M 2^-(kBits + 1) before the last rounding; and never worse than the plain sum's bound.
TYPED_TEST(ReproducibleTest, error_bound) {
  using F = Format<TypeParam>;
  const int size = 8;
  const Columns<TypeParam> in = draw_columns<TypeParam>(size, 4000, 99);
  const std::vector<TypeParam> out = all_reduce(in, ReduceOp::kSum);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i % 8 == 4 || i % 8 == 7) continue;  // overflow, and numbers that the exact oracle's double cannot subtract
    Exact difference;
    double largest = 0;
    for (const auto& rank : in) {
      difference.add(-F::wide(rank[i]));
      largest = std::max(largest, std::fabs(F::wide(rank[i])));
    }
    const double x = F::wide(out[i]);
    difference.add(x);
    const double last_rounding =
        std::max(std::fabs(x) * std::ldexp(1.0, -F::kPrecision), std::ldexp(1.0, F::kLeast - 1));
    const double bound = size * largest * std::ldexp(1.0, -F::kBits - 1) + last_rounding;
    ASSERT_LE(std::fabs(difference.rounded(53, -1190)), bound * (1 + 1e-12)) << "element " << i;
  }
}

TYPED_TEST(ReproducibleTest, memory_is_bounded_and_traffic_is_as_documented) {
  const std::size_t count = 100'000;
  const Columns<TypeParam> in(3, std::vector<TypeParam>(count, Format<TypeParam>::narrow(1)));
  Bus bus(3, 1);
  const Setting setting{1, 64 << 10, false};
  all_reduce(in, ReduceOp::kSum, setting, &bus);
  EXPECT_LE(bus.largest_call(), 64 << 10);
  const double factor = static_cast<double>(bus.bytes()) / static_cast<double>(count * sizeof(TypeParam));
  const double documented = std::is_same_v<TypeParam, Float16> ? 4 : std::is_same_v<TypeParam, Bfloat16> ? 4.5 : 2.25;
  EXPECT_NEAR(factor, documented, 0.001);
}

TEST(Reproducible, integers_are_plain) {
  EXPECT_FALSE(changes_bits(DataType::kInt32, ReduceOp::kSum));
  EXPECT_FALSE(changes_bits(DataType::kUint8, ReduceOp::kLxor));
  EXPECT_TRUE(changes_bits(DataType::kFloat16, ReduceOp::kSum));
  EXPECT_TRUE(changes_bits(DataType::kFloat64, ReduceOp::kProd));
  const Columns<std::int32_t> in = {{1, -2, 3, 4}, {10, 20, 30, 40}};
  Bus bus(2, 1);
  EXPECT_EQ(all_reduce(in, ReduceOp::kSum, {}, &bus), (std::vector<std::int32_t>{11, 18, 33, 44}));
  EXPECT_EQ(bus.bytes(), 16);
  EXPECT_EQ(reduce_scatter(in, ReduceOp::kMax), (std::vector<std::int32_t>{10, 20, 30, 40}));
}

TEST(Reproducible, nothing_is_sent_for_empty_vectors_and_too_many_ranks_are_refused) {
  const Columns<float> in(2);
  Bus bus(2, 1);
  EXPECT_TRUE(all_reduce(in, ReduceOp::kSum, {}, &bus).empty());
  EXPECT_EQ(bus.bytes(), 0);
  PlainCollectives plain;
  plain.size = kMaxReproducibleRanks + 1;
  float x = 0;
  EXPECT_THROW(run_reproducible(plain, {.in = &x, .out = &x, .count = 1}), InvalidArgument);
}

// 2^20 ranks with the largest numbers: their words add up without overflow.
TEST(Reproducible, has_room_for_the_promised_number_of_ranks) {
  const auto check = [](auto value, double expected) {
    using T = decltype(value);
    PlainCollectives plain;
    plain.size = kMaxReproducibleRanks;
    plain.run = [](const CollectiveCall& call) {
      if (call.op != ReduceOp::kSum) return;
      ASSERT_EQ(call.type, DataType::kInt64);
      for (std::int64_t i = 0; i < call.count; ++i) {
        std::int64_t& word = static_cast<std::int64_t*>(call.out)[i];
        ASSERT_FALSE(__builtin_mul_overflow(word, kMaxReproducibleRanks, &word));
      }
    };
    T out = value;
    run_reproducible(plain, {.in = &value, .out = &out, .count = 1, .type = data_type_of<T>()});
    EXPECT_EQ(Format<T>::wide(out), expected);
  };
  const float f = std::nextafter(2.0F, 0.0F);
  const double d = std::nextafter(2.0, 0.0);
  check(f, static_cast<double>(f) * 0x1p20);
  check(d, d * 0x1p20);
  check(-d, -d * 0x1p20);
  check(to_bfloat16(1.9921875F), 1.9921875 * 0x1p20);
  check(to_float16(65504), INFINITY);
  check(to_float16(0x1p-24F), 0x1p-4);
}

// A sum of 61 bits just above the middle between two floats: rounding it to double first would lose what is above.
TEST(Reproducible, rounds_once) {
  PlainCollectives plain;
  plain.size = 2;
  plain.run = [](const CollectiveCall& call) {
    if (call.type == DataType::kInt64)
      *static_cast<std::int64_t*>(call.out) = (((std::int64_t{1} << 24) + 1) << 36) + 1;
  };
  const float one = 1;
  float out = 0;
  run_reproducible(plain, {.in = &one, .out = &out, .count = 1});
  EXPECT_EQ(out, std::ldexp(static_cast<float>((1 << 24) + 2), 36 - 41));
}

}  // namespace
}  // namespace gar
