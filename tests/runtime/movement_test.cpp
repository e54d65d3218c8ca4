// Broadcast, reduce, scatter, gather, all_to_all and transfers between threads and between processes, against the
// serial oracle; then what ranks are told that do not ask for the same, and what is refused.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "support/movement_cases.hpp"
#include "support/rank_groups.hpp"
#include "support/seed.hpp"

namespace gar {
namespace {

using test::check;
using test::Member;
using test::MoveCase;
using test::Via;

CommunicatorOptions options_of(std::int64_t staging_bytes = 0) {
  CommunicatorOptions out;
  out.timeout_s = test::kNoLimit;
  out.staging_bytes = staging_bytes;
  return out;
}

class Movements : public ::testing::TestWithParam<std::tuple<Via, int>> {
 protected:
  static Via via() { return std::get<0>(GetParam()); }
  static int size() { return std::get<1>(GetParam()); }
  static std::string run(const test::Body& body) { return test::failures(test::run_ranks(via(), size(), body)); }
};
class MovementFaults : public Movements {};

std::string name_of(const ::testing::TestParamInfo<std::tuple<Via, int>>& info) {
  return std::string(test::to_string(std::get<0>(info.param))) + "_" + std::to_string(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Ranks, Movements,
                         ::testing::Combine(::testing::Values(Via::kThreads, Via::kProcesses),
                                            ::testing::Values(1, 2, 3, 5, 8)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Ranks, MovementFaults,
                         ::testing::Combine(::testing::Values(Via::kThreads, Via::kProcesses), ::testing::Values(3)),
                         name_of);

TEST_P(Movements, AreRight) {
  EXPECT_EQ(run([&](Member& member) {
              Communicator communicator = member.communicator(options_of());
              std::uint64_t salt = 0;
              for (const MoveCase& c : test::move_cases(size(), test::seed(static_cast<std::uint64_t>(size())))) {
                test::run_move(communicator, c, ++salt);
              }
            }),
            "");
}

// Little room to stage data in: everything is cut into many chunks.
TEST_P(Movements, AreRightInManyChunks) {
  EXPECT_EQ(run([&](Member& member) {
              Communicator communicator = member.communicator(options_of(24'000));
              std::uint64_t salt = 100;
              for (MoveCase c : test::move_cases(size(), test::seed(7))) {
                if (c.count > 100'000) continue;
                test::run_move(communicator, c, ++salt);
              }
            }),
            "");
}

// They take their turn among collectives, blocking or not.
TEST_P(Movements, KeepTheOrderOfCalls) {
  EXPECT_EQ(run([&](Member& member) {
              Communicator communicator = member.communicator(options_of());
              const int last = member.size - 1;
              std::vector<std::int64_t> sums(1000, member.rank + 1);
              std::vector<std::int64_t> told(1000, -1);
              Request first = communicator.start_all_reduce(sums);
              MovementCall call;
              call.in = call.out = sums.data();  // what the AllReduce leaves, from the last rank
              call.count = 1000;
              call.type = DataType::kInt64;
              call.root = last;
              Request second = communicator.start_move(call);
              communicator.reduce(sums.data(), told.data(), 1000, DataType::kInt64, ReduceOp::kSum, 0);
              first.wait();
              second.wait();
              const std::int64_t sum = member.size * (member.size + 1) / 2;
              for (const std::int64_t value : sums) check(value == sum, "a wrong sum");
              for (const std::int64_t value : told)
                check(value == (member.rank == 0 ? sum * member.size : -1), "a wrong reduction");
              communicator.barrier();
            }),
            "");
}

TEST_P(Movements, CallTheirCompletion) {
  EXPECT_EQ(run([&](Member& member) {
              Communicator communicator = member.communicator(options_of());
              std::array<double, 3> values{};
              if (member.rank == 0) values = {1, 2, 3};
              std::atomic<int> num_calls = 0;
              MovementCall call;
              call.in = call.out = values.data();
              call.count = 3;
              call.type = DataType::kFloat64;
              Request request =
                  communicator.start_move(call, [&](const std::exception_ptr& error) { num_calls += error ? 100 : 1; });
              request.wait();
              check(num_calls == 1 && values[2] == 3,
                    "the completion was called " + std::to_string(num_calls) + " times");
            }),
            "");
}

// --- ranks that do not ask for the same ------------------------------------------------------------------------------

struct Differing {
  std::string name;
  MoveCase usual;
  MoveCase other;  ///< asked for by one of the ranks
  std::vector<std::string> words;
};

std::vector<Differing> all_differing() {
  using M = Movement;
  const auto f32 = DataType::kFloat32;
  const auto sum = ReduceOp::kSum;
  return {
      {"root of a broadcast",
       {M::kBroadcast, f32, sum, 100, 0},
       {M::kBroadcast, f32, sum, 100, 1},
       {"broadcast of 100 float32 from rank 0", "from rank 1"}},
      {"root of a reduction",
       {M::kReduce, f32, sum, 50'000, 2},
       {M::kReduce, f32, sum, 50'000, 0},
       {"to rank 2", "to rank 0"}},
      {"operator", {M::kReduce, f32, sum, 10, 1}, {M::kReduce, f32, ReduceOp::kMax, 10, 1}, {"sum", "max"}},
      {"count", {M::kScatter, f32, sum, 100, 0}, {M::kScatter, f32, sum, 101, 0}, {"scatter of 100 ", "101"}},
      {"nothing and something", {M::kGather, f32, sum, 0, 0}, {M::kGather, f32, sum, 5, 0}, {"gather of 0 ", "of 5 "}},
      {"type", {M::kAllToAll, f32, sum, 9, 0}, {M::kAllToAll, DataType::kInt32, sum, 9, 0}, {"float32", "int32"}},
      {"movement", {M::kScatter, f32, sum, 100, 0}, {M::kGather, f32, sum, 100, 0}, {"scatter", "gather"}},
      {"equal and different blocks",
       {M::kAllToAll, f32, sum, 9, 0},
       {M::kAllToAll, f32, sum, 9, 0, false, true},
       {"different lengths"}},
  };
}

std::string error_of(const std::function<void()>& operation) {
  try {
    operation();
  } catch (const TransportError& error) {
    return error.what();
  }
  throw test::Failure("no error");
}

TEST_P(MovementFaults, TellEveryRankWhoAskedForWhat) {
  for (const Differing& differing : all_differing()) {
    SCOPED_TRACE(differing.name);
    EXPECT_EQ(run([&](Member& member) {
                Communicator communicator = member.communicator(options_of());
                test::MoveRun mine(member.rank == 1 ? differing.other : differing.usual, member.rank, member.size, 5);
                const std::string text = error_of([&] { mine.run(communicator); });
                for (const std::string& word : differing.words) {
                  check(text.find(word) != std::string::npos, "no '" + word + "' in: " + text);
                }
                check(text.find("rank 1") != std::string::npos, "rank 1 is not named: " + text);
                error_of([&] { communicator.barrier(); });
              }),
              "");
  }
}

TEST_P(MovementFaults, TellABroadcastFromAReduction) {
  EXPECT_EQ(run([&](Member& member) {
              Communicator communicator = member.communicator(options_of());
              std::vector<float> values(70'000, 1);
              const std::string text = error_of([&] {
                if (member.rank == 1) {
                  communicator.all_reduce(values);
                } else {
                  communicator.broadcast(values.data(), 70'000, DataType::kFloat32, 0);
                }
              });
              check(text.find("all_reduce of 70000") != std::string::npos, text);
              check(text.find("broadcast of 70000") != std::string::npos, text);
            }),
            "");
}

// Each of two ranks says what it has and what it expects; all of them find the pair that does not fit.
TEST_P(MovementFaults, TellWhichBlocksDiffer) {
  EXPECT_EQ(run([&](Member& member) {
              Communicator communicator = member.communicator(options_of());
              std::vector<float> in(100);
              std::vector<float> out(100);
              MovementCall call;
              call.movement = Movement::kAllToAll;
              call.in = in.data();
              call.out = out.data();
              call.in_counts.assign(static_cast<std::size_t>(member.size), 2);
              call.out_counts = call.in_counts;
              if (member.rank == 1) call.in_counts[0] = 3;
              const std::string text = error_of([&] { communicator.move(call); });
              check(text.find("rank 1 has 3 elements for rank 0, which expects 2") != std::string::npos, text);
            }),
            "");
}

TEST_P(MovementFaults, NoticeARankThatLeaves) {
  EXPECT_EQ(run([&](Member& member) {
              Communicator communicator = member.communicator(options_of());
              communicator.barrier();
              if (member.rank == 1) return;
              std::vector<float> values(1000);
              const std::string text =
                  error_of([&] { communicator.broadcast(values.data(), 1000, DataType::kFloat32, 0); });
              check(text.find("rank 1 has left") != std::string::npos, text);
            }),
            "");
}

// --- what is refused -------------------------------------------------------------------------------------------------

void expect_refused(Communicator& communicator, const MovementCall& call, const std::string& words) {
  try {
    communicator.move(call);
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    return;
  }
  ADD_FAILURE() << "not refused: " << words;
}

TEST(MovementChecks, RefuseWhatMakesNoSense) {
  std::vector<Communicator> ranks = thread_communicators(3);
  Communicator& one = ranks.front();
  std::vector<float> values(30);
  float* data = values.data();
  using M = Movement;
  const auto f32 = DataType::kFloat32;
  const auto sum = ReduceOp::kSum;
  expect_refused(one, {M::kBroadcast, data, data, 5, f32, sum, 3}, "root = 3; expected a rank from 0 to 2");
  expect_refused(one, {M::kBroadcast, data, data, -1, f32, sum, 0}, "count = -1");
  expect_refused(one, {M::kBroadcast, data, data + 1, 5, f32, sum, 0}, "`in` and `out` differ; expected one vector");
  expect_refused(one, {M::kBroadcast, data, data + 15, 5, f32, sum, 0}, "`in` and `out` differ");
  expect_refused(one, {M::kBroadcast, data, nullptr, 5, f32, sum, 0}, "`in` and `out` differ");
  expect_refused(one, {M::kBroadcast, nullptr, data, 5, f32, sum, 1}, "`in` and `out` differ");
  expect_refused(one, {M::kBroadcast, nullptr, nullptr, 5, f32, sum, 0}, "`in` is null");
  expect_refused(one, {M::kReduce, data, nullptr, 5, f32, sum, 0}, "`out` is null on rank 0");
  expect_refused(one, {M::kReduce, data, data + 1, 5, f32, sum, 0}, "overlap");
  expect_refused(one, {M::kReduce, data, data, 5, f32, ReduceOp::kBxor, 0}, "bxor of float32");
  expect_refused(one, {M::kScatter, data, data + 1, 5, f32, sum, 0}, "this rank's block of `in`");
  expect_refused(one, {M::kGather, data + 5, data, 5, f32, sum, 0}, "this rank's block of `out`");
  expect_refused(one, {M::kAllToAll, data, data, 5, f32, sum, 0}, "separate buffers");
  expect_refused(one, {M::kAllToAll, data, data + 15, 0, f32, sum, 0, {1, 2}, {1, 2}}, "one for each of the 3 ranks");
  expect_refused(one, {M::kAllToAll, data, data + 15, 0, f32, sum, 0, {1, -2, 3}, {1, 2, 3}}, "a block of -2");
  expect_refused(one, {M::kAllToAll, data, data + 15, 0, f32, sum, 0, {1, 2, 3}, {2, 2, 3}}, "1 elements for itself");
  expect_refused(one, {M::kScatter, data, data + 15, 0, f32, sum, 0, {1, 2, 3}, {1, 2, 3}}, "for all_to_all alone");
  expect_refused(one, {M::kTransfer, data, nullptr, 5, f32, sum, 0}, "a communicator of 3 ranks; expected one of 2");
}

}  // namespace
}  // namespace gar
