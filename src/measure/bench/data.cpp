// Inputs whose results are known exactly.
#include "measure/bench/data.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/hash.hpp"
#include "base/index.hpp"

namespace gar::measure {
namespace {

bool is_arithmetic(ReduceOp op) {
  return op == ReduceOp::kSum || op == ReduceOp::kProd || op == ReduceOp::kMin || op == ReduceOp::kMax;
}
bool is_logical(ReduceOp op) { return op == ReduceOp::kLand || op == ReduceOp::kLor || op == ReduceOp::kLxor; }
bool is_unsigned(DataType type) { return is_integer(type) && static_cast<int>(type) % 2 == 1; }

/// Whole numbers up to here are exact, and fit.
std::int64_t exact_limit(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return 127;
    case DataType::kUint8:
      return 255;
    case DataType::kInt16:
      return 32767;
    case DataType::kUint16:
      return 65535;
    case DataType::kFloat16:
      return 2048;
    case DataType::kBfloat16:
      return 256;
    case DataType::kFloat32:
      return std::int64_t{1} << 24;
    default:
      return (std::int64_t{1} << 31) - 1;
  }
}

/// One element of the tables; `common` is the same on all ranks, `own` is not.
struct Draw {
  std::uint64_t common;
  std::uint64_t own;
  int rank;
  int num_ranks;
  /// At most `most` ranks (of those that share `common`).
  [[nodiscard]] bool is_one_of(std::int64_t most) const {
    const std::int64_t stride = (num_ranks + most - 1) / most;
    return (rank + static_cast<std::int64_t>(common % static_cast<std::uint64_t>(stride))) % stride == 0;
  }
};

std::int64_t whole_number(const Draw& draw, std::int64_t largest, bool has_sign) {
  const auto range = static_cast<std::uint64_t>(has_sign ? 2 * largest + 1 : largest + 1);
  return static_cast<std::int64_t>(draw.own % range) - (has_sign ? largest : 0);
}

double arithmetic_value(const Draw& draw, DataType type, ReduceOp op) {
  const bool has_sign = !is_unsigned(type);
  if (op == ReduceOp::kSum) {
    const std::int64_t limit = exact_limit(type);
    const std::int64_t largest = std::min<std::int64_t>(limit / draw.num_ranks, 1000);
    if (largest >= 1) return static_cast<double>(whole_number(draw, largest, has_sign));
    return draw.is_one_of(limit) ? static_cast<double>(whole_number(draw, 1, has_sign)) : 0;
  }
  if (op == ReduceOp::kProd) {
    if (!draw.is_one_of(6)) return 1;
    const double sign = has_sign && (draw.own & 4U) != 0 ? -1 : 1;
    return sign * ((draw.own & 1U) != 0 ? 2 : !is_integer(type) && (draw.own & 2U) != 0 ? 0.5 : 1);
  }
  return static_cast<double>(whole_number(draw, 100, has_sign));
}

std::uint64_t bits_value(const Draw& draw, ReduceOp op) {
  const auto ranks = static_cast<std::uint64_t>(draw.num_ranks);
  if (is_logical(op)) {
    // Truth values other than 1, so that a bitwise operator would be noticed.
    const std::uint64_t truth = std::uint64_t{1} << (draw.own >> 32U) % 7U;
    if (op == ReduceOp::kLxor) return (draw.own & 1U) != 0 ? truth : 0;
    const bool is_rare = draw.own % (ranks + 1) == 0;
    return is_rare == (op == ReduceOp::kLor) ? truth : 0;
  }
  if (op == ReduceOp::kBxor) return draw.own;
  // A bit is rare with a chance of about one in num_ranks.
  std::uint64_t rare = draw.own;
  for (std::uint64_t share = 2; share < ranks; share *= 2) rare &= mix_in(draw.own, share);
  return op == ReduceOp::kBor ? rare : ~rare;
}

double combine(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    default:
      return a + b;
  }
}

std::uint64_t combine(ReduceOp op, std::uint64_t a, std::uint64_t b) {
  switch (op) {
    case ReduceOp::kBand:
      return a & b;
    case ReduceOp::kBor:
      return a | b;
    case ReduceOp::kBxor:
      return a ^ b;
    case ReduceOp::kLand:
      return a != 0 && b != 0 ? 1 : 0;
    case ReduceOp::kLor:
      return a != 0 || b != 0 ? 1 : 0;
    default:
      return (a != 0) != (b != 0) ? 1 : 0;
  }
}

/// The bits of a value that the type holds exactly.
std::uint64_t bits_of(DataType type, double value) {
  switch (type) {
    case DataType::kFloat16:
      return to_float16(static_cast<float>(value)).bits;
    case DataType::kBfloat16:
      return to_bfloat16(static_cast<float>(value)).bits;
    case DataType::kFloat32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case DataType::kFloat64:
      return std::bit_cast<std::uint64_t>(value);
    default:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}

static_assert(std::endian::native == std::endian::little, "the low bytes of a number come first");

}  // namespace

BenchData::BenchData(const Setup& setup) : element_size_(size_of(setup.type)), seed_(setup.seed) {
  const auto size = static_cast<std::size_t>(element_size_);
  const auto put = [&](Table& table, std::int64_t at, std::uint64_t bits) {
    for (const std::int64_t place : {at, at + kPeriod}) {
      std::memcpy(table.data() + static_cast<std::size_t>(place) * size, &bits, size);
    }
  };
  const auto bytes = 2 * static_cast<std::size_t>(kPeriod) * size;
  inputs_.assign(static_cast<std::size_t>(setup.num_ranks), Table(bytes));
  result_.resize(bytes);
  for (std::int64_t i = 0; i < kPeriod; ++i) {
    const std::uint64_t common = mix_in(setup.seed, i);
    double value = 0;
    std::uint64_t bits = 0;
    for (int rank = 0; rank < setup.num_ranks; ++rank) {
      const Draw draw{common, mix_in(common, rank), rank, setup.num_ranks};
      Table& table = inputs_[idx(rank)];
      if (is_arithmetic(setup.op)) {
        const double own = arithmetic_value(draw, setup.type, setup.op);
        value = rank == 0 ? own : combine(setup.op, value, own);
        put(table, i, bits_of(setup.type, own));
      } else {
        const std::uint64_t own = bits_value(draw, setup.op);
        bits = rank == 0 ? own : combine(setup.op, bits, own);
        put(table, i, own);
      }
    }
    // One rank: nothing is combined, and a truth value stays as it is.
    put(result_, i, is_arithmetic(setup.op) ? bits_of(setup.type, value) : bits);
  }
}

// Calls f(offset in the vector, offset in a table, length), in elements, for every part that lies in one block.
template <class F>
void BenchData::for_each_run(std::int64_t first, std::int64_t count, F f) const {
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t block = (first + done) / kPeriod;
    const std::int64_t offset = (first + done) % kPeriod;
    const std::int64_t length = std::min(kPeriod - offset, count - done);
    const auto rotation = static_cast<std::int64_t>(mix_in(~seed_, block) % std::uint64_t{kPeriod});
    f(done, rotation + offset, length);
    done += length;
  }
}

void BenchData::fill(int rank, std::int64_t first, std::byte* out, std::int64_t count) const {
  const Table& table = inputs_[idx(rank)];
  for_each_run(first, count, [&](std::int64_t to, std::int64_t from, std::int64_t length) {
    std::memcpy(out + to * element_size_, table.data() + from * element_size_,
                static_cast<std::size_t>(length * element_size_));
  });
}

std::int64_t BenchData::num_wrong(const Table& table, std::int64_t first, const std::byte* data,
                                  std::int64_t count) const {
  std::int64_t wrong = 0;
  const auto size = static_cast<std::size_t>(element_size_);
  for_each_run(first, count, [&](std::int64_t at, std::int64_t from, std::int64_t length) {
    const std::byte* actual = data + at * element_size_;
    const std::byte* expected = table.data() + from * element_size_;
    if (std::memcmp(actual, expected, static_cast<std::size_t>(length) * size) == 0) return;
    for (std::int64_t i = 0; i < length; ++i) {
      if (std::memcmp(actual + i * element_size_, expected + i * element_size_, size) != 0) ++wrong;
    }
  });
  return wrong;
}

std::int64_t BenchData::num_wrong_of_input(int rank, std::int64_t first, const std::byte* data,
                                           std::int64_t count) const {
  return num_wrong(inputs_[idx(rank)], first, data, count);
}

std::int64_t BenchData::num_wrong_of_result(std::int64_t first, const std::byte* data, std::int64_t count) const {
  return num_wrong(result_, first, data, count);
}

}  // namespace gar::measure
