// The same bits on every rank and in every run; in reproducible mode also for other numbers and orders of ranks,
// algorithms, transports and chunkings. The inputs are floating point numbers of very different sizes, whose sums
// depend on the order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "gar/communicator.hpp"
#include "support/collective_cases.hpp"
#include "support/configurations.hpp"
#include "support/rank_groups.hpp"
#include "support/seed.hpp"
#include "support/shared_array.hpp"

namespace gar {
namespace {

using test::Configuration;
using test::Via;

constexpr std::int64_t kCount = 20'011;

/// A number with a random sign, fraction and exponent, which fits the type.
float number(int contributor, std::int64_t index, int exponents) {
  const std::uint64_t h = test::mix(static_cast<std::uint64_t>(index) * 977 + static_cast<std::uint64_t>(contributor));
  const float fraction = 1 + static_cast<float>((h >> 8) % 8191) / 8192;
  const int exponent = static_cast<int>((h >> 40) % static_cast<std::uint64_t>(exponents)) - exponents / 2;
  return std::ldexp((h & 1) != 0 ? -fraction : fraction, exponent);
}

template <class T>
T element(int contributor, std::int64_t index) {
  if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(number(contributor, index, 14));
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return to_bfloat16(number(contributor, index, 40));
  } else if constexpr (std::is_same_v<T, float>) {
    return number(contributor, index, 40);
  } else {
    return static_cast<T>(number(contributor, index, 60)) * 1.000000123;
  }
}

/// The vector of a contributor; contributors below 0 bring zeros (or, for products, ones).
template <class T>
std::vector<T> vector_of(int contributor, ReduceOp op) {
  std::vector<T> out(static_cast<std::size_t>(kCount));
  for (std::int64_t i = 0; i < kCount; ++i) {
    T& value = out[static_cast<std::size_t>(i)];
    if (contributor >= 0) {
      value = element<T>(contributor, i);
      continue;
    }
    const float neutral = op == ReduceOp::kProd ? 1 : 0;
    if constexpr (std::is_same_v<T, Float16>) {
      value = to_float16(neutral);
    } else if constexpr (std::is_same_v<T, Bfloat16>) {
      value = to_bfloat16(neutral);
    } else {
      value = static_cast<T>(neutral);
    }
  }
  return out;
}

template <class T>
std::uint64_t reduce_once(Communicator& communicator, int contributor, ReduceOp op, bool in_place) {
  std::vector<T> in = vector_of<T>(contributor, op);
  std::vector<T> out(in_place ? 0 : in.size());
  if (in_place) {
    communicator.all_reduce(std::span(in), op);
  } else {
    communicator.all_reduce(std::span<const T>(in), std::span(out), op);
  }
  const std::vector<T>& result = in_place ? in : out;
  return test::digest(result.data(), result.size() * sizeof(T));
}

/// Digests for the four types.
std::vector<std::uint64_t> reduce_all_types(Communicator& communicator, int contributor, ReduceOp op, bool in_place) {
  return {reduce_once<Float16>(communicator, contributor, op, in_place),
          reduce_once<Bfloat16>(communicator, contributor, op, in_place),
          reduce_once<float>(communicator, contributor, op, in_place),
          reduce_once<double>(communicator, contributor, op, in_place)};
}

// --- same plan, same inputs ------------------------------------------------------------------------------------------

/// Runs a configuration in a group of its own; the digests of its types, for all ranks.
std::string digests(Via via, int num_ranks, const CommunicatorOptions& options, const std::vector<int>& contributors,
                    ReduceOp op, std::vector<std::uint64_t>& out) {
  test::SharedArray seen(static_cast<std::size_t>(num_ranks) * 4);
  const std::string problem = test::failures(test::run_ranks(via, num_ranks, [&](test::Member& member) {
    Communicator communicator = member.communicator(options);
    const int contributor = contributors[static_cast<std::size_t>(member.rank)];
    const std::vector<std::uint64_t> first = reduce_all_types(communicator, contributor, op, false);
    test::check(reduce_all_types(communicator, contributor, op, true) == first,
                "in place the bits are other ones than out of place");
    for (std::size_t t = 0; t < 4; ++t) seen[static_cast<std::size_t>(member.rank) * 4 + t] = first[t];
  }));
  out.clear();
  for (std::size_t i = 0; i < seen.size(); ++i) out.push_back(seen[i]);
  return problem;
}

std::vector<int> identity(int num_ranks) {
  std::vector<int> out(static_cast<std::size_t>(num_ranks));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

class SamePlan : public ::testing::TestWithParam<Via> {};

TEST_P(SamePlan, SameBitsOnEveryRankAndInEveryRun) {
  const std::vector<int> sizes = test::scaled<std::vector<int>>({3}, {3, 8}, {2, 3, 5, 8, 12, 16});
  for (const int num_ranks : sizes) {
    for (const Configuration& configuration : test::configurations(num_ranks, 5, 1)) {
      // What a measurement decides may be another plan in another run.
      if (configuration.name == "automatic") continue;
      SCOPED_TRACE(configuration.name + " on " + std::to_string(num_ranks));
      std::vector<std::uint64_t> first;
      std::vector<std::uint64_t> second;
      ASSERT_EQ(digests(GetParam(), num_ranks, configuration.options, identity(num_ranks), ReduceOp::kSum, first), "");
      ASSERT_EQ(digests(GetParam(), num_ranks, configuration.options, identity(num_ranks), ReduceOp::kSum, second), "");
      EXPECT_EQ(first, second) << "two runs differ";
      for (std::size_t i = 4; i < first.size(); ++i) {
        EXPECT_EQ(first[i], first[i % 4]) << "rank " << i / 4 << " differs from rank 0 in type " << i % 4;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, SamePlan, ::testing::Values(Via::kThreads, Via::kProcesses),
                         [](const auto& test_info) { return test::to_string(test_info.param); });

// The inputs are such that orders matter; otherwise the tests above and below prove nothing.
TEST(Inputs, TellOrdersApart) {
  CommunicatorOptions options;
  options.algorithm = "ring";
  std::vector<std::uint64_t> a;
  std::vector<std::uint64_t> b;
  std::vector<int> reversed = identity(5);
  std::reverse(reversed.begin(), reversed.end());
  ASSERT_EQ(digests(Via::kThreads, 5, options, identity(5), ReduceOp::kSum, a), "");
  ASSERT_EQ(digests(Via::kThreads, 5, options, reversed, ReduceOp::kSum, b), "");
  for (std::size_t t = 1; t < 4; ++t) EXPECT_NE(a[t], b[t]);
}

// --- reproducible ----------------------------------------------------------------------------------------------------

struct Variant {
  std::string name;
  Via via;
  int num_ranks;
  CommunicatorOptions options;
};

std::vector<Variant> reproducible_runs() {
  std::vector<Variant> out;
  const auto add = [&](Via via, int num_ranks, const std::string& algorithm, std::int64_t staging) {
    Variant run{
        algorithm + " on " + std::to_string(num_ranks) + " " + to_string(via) + ", staging " + std::to_string(staging),
        via,
        num_ranks,
        {}};
    run.options.reproducible = true;
    run.options.algorithm = algorithm;
    run.options.staging_bytes = staging;
    run.options.topology = make_tree({num_ranks});
    out.push_back(std::move(run));
  };
  for (const Via via : {Via::kThreads, Via::kProcesses}) {
    add(via, 5, "", 0);
    add(via, 5, "ring", 64 << 10);
    add(via, 6, "hcps:3x2", 0);
    if (test::scale() == test::Scale::kSmall) break;
    add(via, 5, "rhd", 1 << 20);
    add(via, 7, "cps", 64 << 10);
    add(via, 8, "reduce-broadcast", 0);
    add(via, 8, "hring:2x4", 1 << 20);
    if (via == Via::kProcesses && test::scale() != test::Scale::kFull) continue;
    add(via, 12, "gentree+", 0);
    add(via, 16, "", 64 << 10);
  }
  return out;
}

TEST(Reproducible, SumsDoNotDependOnAnything) {
  std::vector<std::uint64_t> expected;
  std::mt19937_64 random(test::seed(1));
  for (const Variant& run : reproducible_runs()) {
    SCOPED_TRACE(run.name);
    std::vector<int> contributors(static_cast<std::size_t>(run.num_ranks), -1);
    std::iota(contributors.begin(), contributors.begin() + 5, 0);
    std::shuffle(contributors.begin(), contributors.end(), random);
    std::vector<std::uint64_t> seen;
    ASSERT_EQ(digests(run.via, run.num_ranks, run.options, contributors, ReduceOp::kSum, seen), "");
    if (expected.empty()) expected.assign(seen.begin(), seen.begin() + 4);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      ASSERT_EQ(seen[i], expected[i % 4]) << "rank " << i / 4 << ", type " << i % 4;
    }
  }
}

// Products: the order of ranks stays, everything else varies.
TEST(Reproducible, ProductsDependOnTheOrderOfRanksAlone) {
  std::vector<std::uint64_t> expected;
  for (const Variant& run : reproducible_runs()) {
    SCOPED_TRACE(run.name);
    std::vector<int> contributors(static_cast<std::size_t>(run.num_ranks), -1);
    std::iota(contributors.begin(), contributors.begin() + 5, 0);
    std::vector<std::uint64_t> seen;
    ASSERT_EQ(digests(run.via, run.num_ranks, run.options, contributors, ReduceOp::kProd, seen), "");
    if (expected.empty()) expected.assign(seen.begin(), seen.begin() + 4);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      ASSERT_EQ(seen[i], expected[i % 4]) << "rank " << i / 4 << ", type " << i % 4;
    }
  }
}

// The whole range of exponents, subnormal numbers, sums that overflow in some orders and not in others.
template <class T>
std::vector<T> extremes(int contributor, std::size_t count) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t h = test::mix(i * 31 + static_cast<std::uint64_t>(contributor));
    const int range = Limits::max_exponent - Limits::min_exponent + Limits::digits;
    const int exponent =
        Limits::min_exponent - Limits::digits + static_cast<int>((h >> 12) % static_cast<unsigned>(range));
    const T size =
        i % 7 == 0 ? Limits::max() : std::ldexp(static_cast<T>(1) + static_cast<T>(h % 1000) / 999, exponent - 1);
    out[i] = (h >> 63) != 0 ? -size : size;
  }
  return out;
}

template <class T>
std::string reproducible_bits(Via via, const std::vector<int>& contributors, std::vector<std::uint64_t>& seen) {
  const int num_ranks = static_cast<int>(contributors.size());
  CommunicatorOptions options;
  options.reproducible = true;
  test::SharedArray digests(static_cast<std::size_t>(num_ranks));
  const std::string problem = test::failures(test::run_ranks(via, num_ranks, [&](test::Member& member) {
    Communicator communicator = member.communicator(options);
    const int contributor = contributors[static_cast<std::size_t>(member.rank)];
    constexpr std::size_t kNum = 5040;
    std::vector<T> values = contributor < 0 ? std::vector<T>(kNum) : extremes<T>(contributor, kNum);
    const std::vector<T> in = values;
    communicator.all_reduce(std::span(values));
    digests[static_cast<std::size_t>(member.rank)] = test::digest(values.data(), kNum * sizeof(T));
    // Whoever asks in another way gets the same bits.
    std::vector<T> again(kNum);
    communicator.start_all_reduce(in.data(), again.data(), kNum, data_type_of<T>()).wait();
    test::check(std::memcmp(again.data(), values.data(), kNum * sizeof(T)) == 0,
                "non-blocking, the bits are other ones");
    const std::size_t block = kNum / static_cast<std::size_t>(num_ranks);
    std::vector<T> mine(block);
    communicator.reduce_scatter(in.data(), mine.data(), static_cast<std::int64_t>(block), data_type_of<T>());
    test::check(
        std::memcmp(mine.data(), values.data() + block * static_cast<std::size_t>(member.rank), block * sizeof(T)) == 0,
        "reduce_scatter gives other bits than all_reduce");
  }));
  for (int r = 0; r < num_ranks; ++r) seen.push_back(digests[static_cast<std::size_t>(r)]);
  return problem;
}

TEST(Reproducible, Extremes) {
  std::mt19937_64 random(test::seed(9));
  std::vector<std::uint64_t> floats;
  std::vector<std::uint64_t> doubles;
  for (const int num_ranks : {6, 6, 6, 7, 9, 12}) {
    std::vector<int> contributors(static_cast<std::size_t>(num_ranks), -1);
    std::iota(contributors.begin(), contributors.begin() + 6, 0);
    std::shuffle(contributors.begin(), contributors.end(), random);
    const Via via = num_ranks % 2 == 0 ? Via::kThreads : Via::kProcesses;
    ASSERT_EQ(reproducible_bits<float>(via, contributors, floats), "") << num_ranks;
    ASSERT_EQ(reproducible_bits<double>(via, contributors, doubles), "") << num_ranks;
  }
  for (const std::uint64_t d : floats) EXPECT_EQ(d, floats[0]);
  for (const std::uint64_t d : doubles) EXPECT_EQ(d, doubles[0]);
}

// At least as near to the true sum as adding one after the other may be: n roundings of the largest partial sum.
TEST(Reproducible, SumsAreAccurate) {
  constexpr int kRanks = 7;
  CommunicatorOptions options;
  options.reproducible = true;
  const auto body = [&](test::Member& member) {
    Communicator communicator = member.communicator(options);
    std::vector<double> values = vector_of<double>(member.rank, ReduceOp::kSum);
    std::vector<float> floats = vector_of<float>(member.rank, ReduceOp::kSum);
    communicator.all_reduce(std::span(values));
    communicator.all_reduce(std::span(floats));
    for (std::int64_t i = 0; i < kCount; ++i) {
      long double exact = 0;
      long double sizes = 0;
      long double exact_float = 0;
      long double sizes_float = 0;
      for (int r = 0; r < kRanks; ++r) {
        exact += element<double>(r, i);
        sizes += std::fabs(element<double>(r, i));
        exact_float += element<float>(r, i);
        sizes_float += std::fabs(element<float>(r, i));
      }
      const auto at = static_cast<std::size_t>(i);
      test::check(std::fabs(values[at] - exact) <= kRanks * 0x1p-53L * sizes, "double " + std::to_string(i));
      test::check(std::fabs(floats[at] - exact_float) <= kRanks * 0x1p-24L * sizes_float, "float " + std::to_string(i));
    }
  };
  EXPECT_EQ(test::failures(test::run_threads(kRanks, body)), "");
}

// Infinities and NaNs come through, with and without reproducible mode; also where finite sums overflow.
TEST(Reproducible, SpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const bool reproducible : {false, true}) {
    CommunicatorOptions options;
    options.reproducible = reproducible;
    const auto body = [&](test::Member& member) {
      Communicator communicator = member.communicator(options);
      const int r = member.rank;
      const std::vector<float> in{r == 1 ? kInfinity : 1,
                                  r == 1 ? -kInfinity : 1,
                                  r == 0   ? kInfinity
                                  : r == 2 ? -kInfinity
                                           : 1,
                                  r == 2 ? kNan : 1,
                                  kMost,
                                  -kMost,
                                  r == 0 ? 0x1p-149F : 0.F,
                                  0x1p-149F};
      std::vector<float> out(in.size());
      communicator.all_reduce(std::span<const float>(in), std::span(out));
      test::check(out[0] == kInfinity && out[1] == -kInfinity, "infinities");
      test::check(std::isnan(out[2]) && std::isnan(out[3]), "NaN");
      test::check(out[4] == kInfinity && out[5] == -kInfinity, "overflow");
      test::check(out[6] == 0x1p-149F && out[7] == 3 * 0x1p-149F, "subnormal numbers");
      for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
        communicator.all_reduce(std::span<const float>(in), std::span(out), op);
        test::check(std::isnan(out[3]), "min and max with a NaN");
        test::check(out[0] == (op == ReduceOp::kMin ? 1 : kInfinity), "min and max with an infinity");
      }
    };
    EXPECT_EQ(test::failures(test::run_threads(3, body)), "") << (reproducible ? "reproducible" : "");
  }
}

}  // namespace
}  // namespace gar
