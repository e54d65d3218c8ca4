// The oracle of these tests can be trusted: known values, and it notices what it must notice.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "support/collective_cases.hpp"
#include "support/collective_oracle.hpp"
#include "support/seed.hpp"

namespace gar {
namespace {

TEST(Oracle, EncodesSixteenBitFloats) {
  EXPECT_EQ(test::exact_bits(1.0, 5, 10), 0x3C00);
  EXPECT_EQ(test::exact_bits(-2.5, 5, 10), 0xC100);
  EXPECT_EQ(test::exact_bits(2047, 5, 10), 0x67FF);
  EXPECT_EQ(test::exact_bits(1.0, 8, 7), 0x3F80);
  EXPECT_EQ(test::exact_bits(-0.5, 8, 7), 0xBF00);
  EXPECT_THROW(test::exact_bits(2049, 5, 10), std::logic_error);
  EXPECT_THROW(test::exact_bits(257, 8, 7), std::logic_error);
  for (int i = -256; i <= 256; ++i) {
    EXPECT_EQ(test::value_of_bits(test::exact_bits(i, 5, 10), 5, 10), i);
    EXPECT_EQ(test::value_of_bits(test::exact_bits(i, 8, 7), 8, 7), i);
  }
}

// Any order of the ranks and any grouping gives the same bits: here with operands combined pairwise in random order.
TEST(Oracle, ReductionsAreTheSameInEveryOrder) {
  constexpr std::int64_t kCount = 200;
  for (const test::TypedOp& typed : test::typed_ops()) {
    test::Oracle oracle(typed.type, typed.op, 16, 7, kCount);
    std::mt19937_64 random(test::seed(3));
    std::vector<std::vector<std::byte>> operands(16);
    for (int r = 0; r < 16; ++r) {
      operands[static_cast<std::size_t>(r)].resize(static_cast<std::size_t>(kCount * oracle.size()));
      oracle.fill(r, 0, kCount, operands[static_cast<std::size_t>(r)].data());
    }
    while (operands.size() > 1) {
      std::shuffle(operands.begin(), operands.end(), random);
      const std::vector<std::byte> last = operands.back();
      operands.pop_back();
      for (std::int64_t i = 0; i < kCount; ++i) {
        test::combine_element(typed.type, typed.op, operands.back().data() + i * oracle.size(),
                              last.data() + i * oracle.size());
      }
    }
    EXPECT_EQ(oracle.find_other_than_result(0, kCount, operands[0].data()), -1)
        << to_string(typed.type) << " " << to_string(typed.op);
  }
}

TEST(Oracle, FindsTheFirstWrongElement) {
  constexpr std::int64_t kCount = 3 * test::kPeriod + 17;
  for (const test::TypedOp& typed : test::typed_ops()) {
    test::Oracle oracle(typed.type, typed.op, 3, 11, kCount);
    std::vector<std::byte> data(static_cast<std::size_t>(kCount * oracle.size()));
    oracle.fill(2, 5, kCount, data.data());
    EXPECT_EQ(oracle.find_other_than_input(2, 5, kCount, data.data()), -1);
    data[static_cast<std::size_t>(9000 * oracle.size())] ^= std::byte{0x10};
    EXPECT_EQ(oracle.find_other_than_input(2, 5, kCount, data.data()), 9000);
  }
}

// Inputs of different ranks, and results with and without one of the operands, differ somewhere for every operator.
TEST(Oracle, LosingAnOperandIsNoticed) {
  for (const test::TypedOp& typed : test::typed_ops()) {
    for (const int ranks : {2, 8, 16}) {
      test::Oracle oracle(typed.type, typed.op, ranks, 5, 500);
      std::vector<std::byte> partial(static_cast<std::size_t>(500 * oracle.size()));
      std::vector<std::byte> next(partial.size());
      oracle.fill(1, 0, 500, partial.data());
      for (int r = 2; r < ranks; ++r) {
        oracle.fill(r, 0, 500, next.data());
        for (std::int64_t i = 0; i < 500; ++i) {
          test::combine_element(typed.type, typed.op, partial.data() + i * oracle.size(),
                                next.data() + i * oracle.size());
        }
      }
      EXPECT_GE(oracle.find_other_than_result(0, 500, partial.data()), 0)
          << to_string(typed.type) << " " << to_string(typed.op) << " on " << ranks << " ranks without rank 0";
    }
  }
}

TEST(Guards, NoticeATouch) {
  test::GuardedBuffer buffer(100, 4, 1);
  EXPECT_TRUE(buffer.is_intact());
  std::memset(buffer.data(), 0, 100);
  EXPECT_TRUE(buffer.is_intact());
  buffer.data()[100] = std::byte{0};
  EXPECT_FALSE(buffer.is_intact());
  buffer.reset(50, 8, 2);
  buffer.data()[-1] = std::byte{0};
  EXPECT_FALSE(buffer.is_intact());
}

}  // namespace
}  // namespace gar
