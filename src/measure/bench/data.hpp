// Inputs whose results are known exactly, for every type, operator and number of ranks.
//
// Every rank has a table of kPeriod pseudo-random values; its vector is the tables' values in blocks of kPeriod
// elements, each block rotated by its own pseudo-random amount, the same on all ranks. So neighbours, ranks and blocks
// all differ, but the result is known from one table of kPeriod combined values, and filling and comparing run at the
// speed of memory. kPeriod is prime: no block or chunk of a plan falls into step with it.
//
// Values are chosen so that every order of combining them gives the same bits: for sums, whole numbers so small that no
// partial sum leaves the range in which the type is exact; for products, powers of two, of which only a few ranks have
// any but 1; bits and truth values with a share of ones such that the results are mixed too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gar/reduction.hpp"

namespace gar::measure {

class BenchData {
 public:
  static constexpr std::int64_t kPeriod = 4099;

  struct Setup {
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    int num_ranks = 1;
    std::uint64_t seed = 0;
  };
  /// O(kPeriod * num_ranks).
  explicit BenchData(const Setup& setup);

  /// Writes elements [first, first + count) of a rank's vector.
  void fill(int rank, std::int64_t first, std::byte* out, std::int64_t count) const;
  /// How many of `count` elements are not those of a rank's vector from `first` on.
  [[nodiscard]] std::int64_t num_wrong_of_input(int rank, std::int64_t first, const std::byte* data,
                                                std::int64_t count) const;
  /// The same for the combined vector.
  [[nodiscard]] std::int64_t num_wrong_of_result(std::int64_t first, const std::byte* data, std::int64_t count) const;

 private:
  using Table = std::vector<std::byte>;  ///< the values twice, so that every rotation is contiguous
  template <class F>
  void for_each_run(std::int64_t first, std::int64_t count, F f) const;
  [[nodiscard]] std::int64_t num_wrong(const Table& table, std::int64_t first, const std::byte* data,
                                       std::int64_t count) const;

  std::int64_t element_size_;
  std::uint64_t seed_;
  std::vector<Table> inputs_;
  Table result_;
};

}  // namespace gar::measure
