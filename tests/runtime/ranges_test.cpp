// Collectives on contiguous ranges: vectors, arrays, spans; what fits is computed, what does not is refused, by the
// compiler or in words.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gar/gar.hpp"

namespace gar {
namespace {

constexpr int kNumRanks = 3;

/// Runs body(communicator, rank) on every rank.
template <class Body>
void on_ranks(const Body& body) {
  std::vector<Communicator> ranks = thread_communicators(kNumRanks);
  std::vector<std::thread> threads;
  for (int r = 0; r < kNumRanks; ++r) threads.emplace_back([&, r] { body(ranks[static_cast<std::size_t>(r)], r); });
  for (std::thread& thread : threads) thread.join();
}

template <class F>
std::string words_of_refusal(F call) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Ranges, AllReduceTakesWhateverIsContiguous) {
  on_ranks([](Communicator& comm, int rank) {
    const auto value = static_cast<float>(rank + 1);
    std::vector<float> vector(5, value);
    std::array<double, 2> array{value, 10.0 * value};
    std::int32_t plain[3] = {rank, rank + 1, rank + 2};  // NOLINT(modernize-avoid-c-arrays): they are taken, too
    comm.all_reduce(vector);
    EXPECT_EQ(vector, std::vector<float>(5, 6));
    comm.all_reduce(array, ReduceOp::kMax);
    EXPECT_EQ(array, (std::array<double, 2>{3, 30}));
    comm.all_reduce(plain);
    EXPECT_EQ(plain[2], 0 + 1 + 2 + 3 * 2);
    comm.all_reduce(std::span(vector).first(2), ReduceOp::kMin);
    EXPECT_EQ(vector, std::vector<float>(5, 6));

    const std::vector<float> in(4, value);
    std::vector<float> out(4);
    comm.all_reduce(in, out);
    EXPECT_EQ(out, std::vector<float>(4, 6));
    comm.all_reduce(std::span<const float>(in), std::span(out), ReduceOp::kProd);
    EXPECT_EQ(out, std::vector<float>(4, 6));
    comm.all_reduce(std::span(in), out, ReduceOp::kMax);
    EXPECT_EQ(out, std::vector<float>(4, 3));
  });
}

TEST(Ranges, BlocksAndRequests) {
  on_ranks([](Communicator& comm, int rank) {
    const std::vector<std::int64_t> whole{rank, rank + 1, rank + 2};
    std::array<std::int64_t, 1> block{};
    comm.reduce_scatter(whole, block);
    EXPECT_EQ(block[0], 3 + 3 * rank);
    std::vector<std::int64_t> all(kNumRanks);
    comm.all_gather(block, all);
    EXPECT_EQ(all, (std::vector<std::int64_t>{3, 6, 9}));

    std::vector<std::int64_t> sum(kNumRanks);
    comm.start_all_reduce(whole, sum).wait();
    EXPECT_EQ(sum, (std::vector<std::int64_t>{3, 6, 9}));
    comm.start_all_reduce(sum, ReduceOp::kMin).wait();
    comm.start_reduce_scatter(whole, block, ReduceOp::kMax).wait();
    EXPECT_EQ(block[0], 2 + rank);
    comm.start_all_gather(block, std::span(all)).wait();
    EXPECT_EQ(all, (std::vector<std::int64_t>{2, 3, 4}));

    Request to_all = comm.prepare_all_reduce(whole, sum);
    Request in_place = comm.prepare_all_reduce(all, ReduceOp::kMax);
    Request to_blocks = comm.prepare_reduce_scatter(whole, block);
    Request gather = comm.prepare_all_gather(block, all);
    for (Request* request : {&to_all, &in_place, &to_blocks, &gather}) {
      request->start();
      request->wait();
    }
    EXPECT_EQ(sum, all);
  });
}

TEST(Ranges, SizesThatDoNotFitAreRefusedInWords) {
  on_ranks([](Communicator& comm, int /*rank*/) {
    const std::vector<float> four(4);
    std::vector<float> three(3);
    EXPECT_EQ(words_of_refusal([&] { comm.all_reduce(four, three); }),
              "all_reduce: `in` has 4 elements and `out` has 3; expected the same number");
    EXPECT_EQ(words_of_refusal([&] { comm.reduce_scatter(four, three); }),
              "reduce_scatter: `in` has 4 elements and `out` has 3; expected 9 in `in`, 3 for each of the 3 ranks");
    EXPECT_EQ(words_of_refusal([&] { static_cast<void>(comm.prepare_all_gather(four, three)); }),
              "all_gather: `in` has 4 elements and `out` has 3; expected 12 in `out`, 4 from each of the 3 ranks");
  });
}

// What would be read after its end, or is not contiguous, does not compile.
template <class Range>
concept CanBeStarted = requires(Communicator& comm, Range&& range) {
  comm.start_all_reduce(static_cast<Range&&>(range));
};
template <class Range>
concept CanRun = requires(Communicator& comm, Range&& range) {
  comm.all_reduce(static_cast<Range&&>(range));
};
static_assert(CanBeStarted<std::vector<float>&> && CanBeStarted<std::span<float>> && CanRun<std::vector<float>&>);
static_assert(!CanBeStarted<std::vector<float>> && !CanRun<std::list<float>&> && !CanRun<std::vector<bool>&>);

TEST(Ranges, NamesOfSharedMemorySayWhichCharacterIsWrong) {
  const std::string words = words_of_refusal([] { static_cast<void>(shared_memory_communicator("a/b", 0, 1)); });
  EXPECT_EQ(words,
            "shared_memory_communicator: the name 'a/b' has a '/', its character 2; expected 1 to 100 letters, digits, "
            "'-', '_' and '.'");
  EXPECT_NE(words_of_refusal([] {
              static_cast<void>(shared_memory_communicator(std::string(101, 'a'), 0, 1));
            }).find("has 101 characters"),
            std::string::npos);
}

}  // namespace
}  // namespace gar
