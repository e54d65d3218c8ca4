// Ranks that do not ask for the same: every rank is told which rank asked for what, and nothing hangs or crashes. The
// time limit is never reached, so that a rank that waits for it hangs here and is found out.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/communicator.hpp"
#include "support/collective_cases.hpp"
#include "support/rank_groups.hpp"
#include "support/shared_array.hpp"

namespace gar {
namespace {

using test::check;
using test::Via;

class Mismatch : public ::testing::TestWithParam<Via> {
 protected:
  static CommunicatorOptions options() {
    CommunicatorOptions out;
    out.timeout_s = test::kNoLimit;
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, Mismatch, ::testing::Values(Via::kThreads, Via::kProcesses),
                         [](const auto& test_info) { return test::to_string(test_info.param); });

/// What the operation throws on this rank; it must throw.
std::string error_of(const std::function<void()>& operation) {
  try {
    operation();
  } catch (const TransportError& error) {
    return error.what();
  }
  throw test::Failure("no error");
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) check(text.find(word) != std::string::npos, "no '" + word + "' in: " + text);
}

struct Asked {
  std::string name;
  test::Case usual;
  test::Case other;                ///< asked for by one of the ranks
  std::vector<std::string> words;  ///< what the error must say
};

test::Case all_reduce_of(std::int64_t count, DataType type = DataType::kFloat32, ReduceOp op = ReduceOp::kSum) {
  return {Collective::kAllReduce, test::Form::kOutOfPlace, type, op, count, test::Call::kBlocking};
}

std::vector<Asked> all_asked() {
  using C = Collective;
  const test::Case scatter{C::kReduceScatter, test::Form::kOutOfPlace, DataType::kFloat32, ReduceOp::kSum, 25'000};
  const test::Case gather{C::kAllGather, test::Form::kOutOfPlace, DataType::kFloat32, ReduceOp::kSum, 25'000};
  return {
      {"count", all_reduce_of(100'000), all_reduce_of(100'001), {"100000", "100001"}},
      {"count of small vectors", all_reduce_of(7), all_reduce_of(8), {"all_reduce of 7", "all_reduce of 8"}},
      {"small and large", all_reduce_of(10), all_reduce_of(3'000'000), {"of 10 ", "3000000"}},
      {"large and small", all_reduce_of(3'000'000), all_reduce_of(10), {"of 10 ", "3000000"}},
      {"nothing and something", all_reduce_of(0), all_reduce_of(1000), {"of 0 ", "1000"}},
      {"something and nothing", all_reduce_of(1000), all_reduce_of(0), {"of 0 ", "1000"}},
      {"type of the same size", all_reduce_of(50'000), all_reduce_of(50'000, DataType::kInt32), {"float32", "int32"}},
      {"type", all_reduce_of(50'000, DataType::kFloat64), all_reduce_of(50'000), {"float64", "float32"}},
      {"type of small vectors", all_reduce_of(2), all_reduce_of(2, DataType::kUint32), {"float32", "uint32"}},
      {"operator", all_reduce_of(50'000), all_reduce_of(50'000, DataType::kFloat32, ReduceOp::kMax), {"sum", "max"}},
      {"operator of small vectors",
       all_reduce_of(3),
       all_reduce_of(3, DataType::kFloat32, ReduceOp::kProd),
       {"sum", "prod"}},
      {"collective", all_reduce_of(100'000), scatter, {"all_reduce", "reduce_scatter"}},
      {"reduce_scatter and all_gather", scatter, gather, {"reduce_scatter", "all_gather"}},
  };
}

// Before and after: a good operation works before, and nothing works afterwards.
void run_mismatch(Communicator& communicator, const Asked& asked, int odd_rank) {
  test::run_case(communicator, all_reduce_of(1000), 1);
  const test::Case& mine = communicator.rank() == odd_rank ? asked.other : asked.usual;
  test::CaseRun run(mine, communicator.rank(), communicator.size(), 2);
  const std::string text = error_of([&] { run.run(communicator); });
  expect_words(text, asked.words);
  expect_words(text, {"rank " + std::to_string(odd_rank)});
  const std::string later = error_of([&] { test::run_case(communicator, all_reduce_of(1000), 3); });
  check(later.size() > 15, "the later error says nothing: " + later);
  error_of([&] { communicator.barrier(); });
}

TEST_P(Mismatch, EveryRankIsToldWhoAskedForWhat) {
  int odd_rank = 0;
  for (const char* algorithm : {"", "ring"}) {
    for (const Asked& asked : all_asked()) {
      SCOPED_TRACE(asked.name + (*algorithm == '\0' ? "" : std::string(" with ") + algorithm));
      CommunicatorOptions with = options();
      with.algorithm = algorithm;
      odd_rank = (odd_rank + 1) % 4;
      EXPECT_EQ(test::failures(test::run_ranks(GetParam(), 4,
                                               [&](test::Member& member) {
                                                 Communicator communicator = member.communicator(with);
                                                 run_mismatch(communicator, asked, odd_rank);
                                               })),
                "");
    }
  }
}

// One rank is a call behind: it calls barrier where the others reduce.
TEST_P(Mismatch, ABarrierAgainstAnOperation) {
  EXPECT_EQ(test::failures(test::run_ranks(GetParam(), 3,
                                           [&](test::Member& member) {
                                             Communicator communicator = member.communicator(options());
                                             std::vector<float> values(70'000);
                                             error_of([&] {
                                               if (member.rank == 2) communicator.barrier();
                                               communicator.all_reduce(std::span(values));
                                               communicator.barrier();
                                               communicator.barrier();
                                             });
                                           })),
            "");
}

// The odd one is among many that are under way: what came before it is right, everything from it on fails.
TEST_P(Mismatch, AmongNonBlockingOperations) {
  EXPECT_EQ(test::failures(
                test::run_ranks(GetParam(), 4,
                                [&](test::Member& member) {
                                  Communicator communicator = member.communicator(options());
                                  std::vector<std::vector<float>> values(10, std::vector<float>(20'000, 1));
                                  std::vector<Request> requests;
                                  for (std::size_t i = 0; i < values.size(); ++i) {
                                    const std::int64_t count = i == 5 && member.rank == 1 ? 19'999 : 20'000;
                                    try {
                                      requests.push_back(communicator.start_all_reduce(
                                          values[i].data(), values[i].data(), count, DataType::kFloat32));
                                    } catch (const TransportError&) {
                                      check(i > 5, "operation " + std::to_string(i) + " could not be started");
                                      break;
                                    }
                                  }
                                  for (std::size_t i = 0; i < 5; ++i) {
                                    requests[i].wait();
                                    check(values[i] == std::vector<float>(20'000, 4), "operation " + std::to_string(i));
                                  }
                                  for (std::size_t i = requests.size(); i-- > 5;) error_of([&] { requests[i].wait(); });
                                })),
            "");
}

// Other communicators of the same ranks are not touched by it.
TEST_P(Mismatch, OtherCommunicatorsGoOn) {
  EXPECT_EQ(test::failures(test::run_ranks(GetParam(), 3,
                                           [&](test::Member& member) {
                                             Communicator good = member.communicator(options());
                                             Communicator bad = member.communicator(options());
                                             run_mismatch(bad, all_asked()[0], 1);
                                             for (std::uint64_t i = 0; i < 20; ++i) {
                                               test::run_case(good, all_reduce_of(5000), i);
                                             }
                                           })),
            "");
}

// In reproducible mode an operation is made of several; who asks for something else is found out all the same.
TEST_P(Mismatch, InReproducibleMode) {
  CommunicatorOptions with = options();
  with.reproducible = true;
  const std::vector<std::pair<test::Case, test::Case>> pairs{
      {all_reduce_of(5000), all_reduce_of(5001)},
      {all_reduce_of(5000), all_reduce_of(5000, DataType::kFloat64)},
      {all_reduce_of(5000), all_reduce_of(5000, DataType::kFloat32, ReduceOp::kProd)},
      {all_reduce_of(5000), all_reduce_of(5000, DataType::kFloat32, ReduceOp::kMin)},
      {all_reduce_of(5000, DataType::kFloat16), all_reduce_of(5000, DataType::kBfloat16)},
      {all_reduce_of(3), all_reduce_of(3, DataType::kFloat32, ReduceOp::kProd)}};
  for (const auto& [usual, other] : pairs) {
    SCOPED_TRACE(test::to_string(usual) + " and " + test::to_string(other));
    const auto body = [&, usual = usual, other = other](test::Member& member) {
      Communicator communicator = member.communicator(with);
      test::CaseRun run(member.rank == 1 ? other : usual, member.rank, member.size, 2);
      const std::string text = error_of([&] { run.run(communicator); });
      expect_words(text, {"rank 1"});
    };
    EXPECT_EQ(test::failures(test::run_ranks(GetParam(), 3, body)), "");
  }
}

/// Ranks that were set up differently either agree on something or say so; they do not compute nonsense.
void expect_agreement_or_errors(const std::function<CommunicatorOptions(int)>& options_of) {
  test::SharedArray right(1);
  const auto outcomes = test::run_processes(5, [&](test::Member& member) {
    try {
      Communicator communicator = member.communicator(options_of(member.rank));
      test::run_case(communicator, all_reduce_of(100'003), 1);
      ++right[0];
    } catch (const TransportError& error) {
      check(std::string(error.what()).find("rank") != std::string::npos, error.what());
    }
  });
  EXPECT_EQ(test::failures(outcomes), "");
  EXPECT_TRUE(right[0] == 0 || right[0] == 5) << right[0] << " of 5 ranks had a result";
}

TEST(DifferentOptions, AreNoticed_shm) {
  const auto all_but_one = [](const auto& usual, const auto& other) {
    return [=](int rank) {
      CommunicatorOptions options;
      options.timeout_s = test::kNoLimit;
      (rank == 2 ? other : usual)(options);
      return options;
    };
  };
  const auto with_algorithm = [](const char* name) { return [=](CommunicatorOptions& o) { o.algorithm = name; }; };
  const auto with_plan = [](Plan plan) {
    plan.algorithm = "mine";  // A name proves nothing.
    return [=](CommunicatorOptions& o) { o.plan = plan; };
  };
  const auto nothing = [](CommunicatorOptions&) {};
  expect_agreement_or_errors(all_but_one(with_algorithm("cps"), with_algorithm("ring")));
  expect_agreement_or_errors(all_but_one(with_plan(acps({3, 2})), with_plan(acps({2, 3}))));
  expect_agreement_or_errors(all_but_one(with_plan(ring(5)), with_plan(cps(5))));
  expect_agreement_or_errors(all_but_one(nothing, [](CommunicatorOptions& o) { o.staging_bytes = 10'000; }));
  expect_agreement_or_errors(all_but_one(nothing, [](CommunicatorOptions& o) { o.latency_bytes = 1 << 28; }));
  expect_agreement_or_errors(all_but_one(nothing, [](CommunicatorOptions& o) { o.topology = make_tree({5}); }));
  expect_agreement_or_errors(all_but_one(nothing, [](CommunicatorOptions& o) { o.reproducible = true; }));
}

// A rank that leaves while others call: they hear at once who it was.
TEST_P(Mismatch, ARankThatLeaves) {
  for (const std::int64_t count : {1, 100'000, 5'000'000}) {
    const auto body = [&](test::Member& member) {
      Communicator communicator = member.communicator(options());
      test::run_case(communicator, all_reduce_of(count), 1);
      if (member.rank == 1) return;
      const std::string text = error_of([&] { test::run_case(communicator, all_reduce_of(count), 1); });
      expect_words(text, {"rank 1", "left"});
    };
    EXPECT_EQ(test::failures(test::run_ranks(GetParam(), 4, body)), "") << count;
  }
}

// What has failed stays failed: a request goes on to say so.
TEST_P(Mismatch, ARequestGoesOnToReportItsFailure) {
  const auto body = [&](test::Member& member) {
    Communicator communicator = member.communicator(options());
    std::vector<float> values(1000);
    Request request =
        communicator.start_all_reduce(values.data(), values.data(), 1000 - member.rank, DataType::kFloat32);
    error_of([&] {
      while (!request.test()) std::this_thread::yield();
    });
    error_of([&] { request.wait(); });
    error_of([&] { request.test(); });
  };
  EXPECT_EQ(test::failures(test::run_ranks(GetParam(), 2, body)), "");
}

}  // namespace
}  // namespace gar
