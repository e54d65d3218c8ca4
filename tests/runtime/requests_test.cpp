// Non-blocking and persistent operations: every order of start, test, wait, move and destruction that is allowed, and
// errors for those that are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gar/communicator.hpp"
#include "support/collective_cases.hpp"
#include "support/rank_groups.hpp"
#include "support/seed.hpp"
#include "support/shared_array.hpp"

namespace gar {
namespace {

using test::check;
using test::Via;

class Requests : public ::testing::TestWithParam<Via> {
 protected:
  static void run(int num_ranks, const test::Body& body) {
    EXPECT_EQ(test::failures(test::run_ranks(GetParam(), num_ranks, body)), "");
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, Requests, ::testing::Values(Via::kThreads, Via::kProcesses),
                         [](const auto& test_info) { return test::to_string(test_info.param); });

/// Does the call throw InvalidArgument with something to read?
template <class F>
bool is_refused(F call) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return std::string(error.what()).size() > 10;
  }
  return false;
}

// The sum over ranks of rank * factor + i.
std::vector<float> values_of(int rank, std::size_t count, int factor) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(rank * factor + static_cast<int>(i % 1000));
  return out;
}
std::vector<float> sum_of(int num_ranks, std::size_t count, int factor) {
  std::vector<float> out(count);
  const int ranks = num_ranks * (num_ranks - 1) / 2;
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(ranks * factor + num_ranks * static_cast<int>(i % 1000));
  }
  return out;
}

TEST_P(Requests, TestAndWaitInAnyOrder) {
  run(4, [](test::Member& member) {
    Communicator communicator = member.communicator({});
    for (const std::size_t count : {std::size_t{0}, std::size_t{3}, std::size_t{100'000}}) {
      for (int way = 0; way < 6; ++way) {
        std::vector<float> values = values_of(member.rank, count, way);
        Request request = communicator.start_all_reduce(std::span(values));
        switch ((way + member.rank) % 6) {
          case 0:
            request.wait();
            break;
          case 1:
            while (!request.test()) std::this_thread::yield();
            break;
          case 2:
            request.test();
            request.wait();
            break;
          case 3:
            request.wait();
            check(request.test() && request.test(), "test after wait");
            request.wait();
            break;
          case 4: {
            const Request dies = std::move(request);
          } break;
          default: {
            Request other = std::move(request);
            Request third;
            third = std::move(other);
            third.wait();
          }
        }
        check(values == sum_of(4, count, way), "way " + std::to_string(way));
      }
    }
  });
}

TEST_P(Requests, PersistentOperationsRunAgainWithWhatIsInTheBuffer) {
  run(3, [](test::Member& member) {
    Communicator communicator = member.communicator({});
    std::vector<float> in(5000);
    std::vector<float> out(5000);
    std::vector<float> block(700);
    std::vector<float> gathered(2100);
    Request reduce = communicator.prepare_all_reduce(in.data(), out.data(), 5000, DataType::kFloat32);
    Request scatter = communicator.prepare_reduce_scatter(in.data(), block.data(), 700, DataType::kFloat32);
    Request gather = communicator.prepare_all_gather(block.data(), gathered.data(), 700, DataType::kFloat32);
    for (int round = 0; round < 200; ++round) {
      const std::vector<float> fresh = values_of(member.rank, in.size(), round);
      std::copy(fresh.begin(), fresh.end(), in.begin());
      const std::vector<float> sum = sum_of(3, in.size(), round);
      reduce.start();
      scatter.start();
      scatter.wait();
      if (round % 3 == 0) reduce.wait();
      check(std::equal(block.begin(), block.end(), sum.begin() + 700 * member.rank), "reduce_scatter");
      gather.start();
      if (round % 3 == 1) reduce.wait();
      gather.wait();
      check(std::equal(gathered.begin(), gathered.end(), sum.begin()), "all_gather");
      reduce.wait();
      check(out == sum, "all_reduce, round " + std::to_string(round));
    }
  });
}

TEST_P(Requests, APreparedOperationNeedNotBeStarted) {
  run(2, [](test::Member& member) {
    Communicator communicator = member.communicator({});
    std::vector<float> values = values_of(member.rank, 100, 1);
    { const Request never = communicator.prepare_all_reduce(std::span(values)); }
    check(values == values_of(member.rank, 100, 1), "an operation that was not started has run");
    communicator.all_reduce(std::span(values));
    check(values == sum_of(2, 100, 1), "the operation after it");
  });
}

// Rank 1 starts only when rank 0 has tried everything that is not allowed while an operation runs.
TEST_P(Requests, StartWhileRunningIsRefused) {
  test::SharedArray flags(1);
  run(2, [&](test::Member& member) {
    Communicator communicator = member.communicator({});
    std::vector<float> values = values_of(member.rank, 100'000, 7);
    Request request = communicator.prepare_all_reduce(std::span(values));
    if (member.rank == 1) flags.await(0, 1);
    request.start();
    if (member.rank == 0) {
      check(!request.test(), "complete before the other rank has started");
      check(is_refused([&] { request.start(); }), "start while running was not refused");
      flags[0] = 1;
    }
    request.wait();
    check(values == sum_of(2, values.size(), 7), "the result");
    request.start();  // All is well again.
    request.wait();
  });
}

TEST_P(Requests, OnlyPersistentOperationsCanBeStarted) {
  run(2, [](test::Member& member) {
    Communicator communicator = member.communicator({});
    std::vector<float> values = values_of(member.rank, 10, 1);
    Request request = communicator.start_all_reduce(std::span(values));
    request.wait();
    check(is_refused([&] { request.start(); }), "start of a non-blocking operation");
    Request empty;
    check(is_refused([&] { empty.start(); }), "start of nothing");
    Request taken = std::move(request);
    check(is_refused([&] { request.start(); }), "start of what was moved from");  // NOLINT(bugprone-use-after-move)
  });
}

// A request that is assigned to, or that dies, completes first.
TEST_P(Requests, AssignmentCompletesWhatWasThere) {
  run(3, [](test::Member& member) {
    Communicator communicator = member.communicator({});
    std::vector<float> a = values_of(member.rank, 70'001, 1);
    std::vector<float> b = values_of(member.rank, 70'001, 2);
    Request request = communicator.start_all_reduce(std::span(a));
    request = communicator.start_all_reduce(std::span(b));
    check(a == sum_of(3, a.size(), 1), "the first operation");
    request = Request();
    check(b == sum_of(3, b.size(), 2), "the second operation");
  });
}

TEST_P(Requests, ACommunicatorCompletesWhatIsUnderWayBeforeItDies) {
  run(3, [](test::Member& member) {
    std::vector<float> a = values_of(member.rank, 300'007, 1);
    std::vector<float> b = values_of(member.rank, 10, 2);
    Request first;
    Request second;
    {
      Communicator communicator = member.communicator({});
      first = communicator.start_all_reduce(std::span(a));
      second = communicator.start_all_reduce(std::span(b));
      const Communicator moved = std::move(communicator);
    }
    check(a == sum_of(3, a.size(), 1) && b == sum_of(3, b.size(), 2), "not complete");
    check(first.test(), "test after the communicator's end");
    second.wait();
  });
}

TEST_P(Requests, BlockingCallsBetweenNonBlockingOnes) {
  run(4, [](test::Member& member) {
    Communicator communicator = member.communicator({});
    for (int round = 0; round < 10; ++round) {
      std::vector<std::vector<float>> values;
      std::vector<Request> requests;
      for (int i = 0; i < 12; ++i)
        values.push_back(values_of(member.rank, static_cast<std::size_t>(i * i * i * 20), i));
      for (int i = 0; i < 12; ++i) {
        auto& mine = values[static_cast<std::size_t>(i)];
        if (i % 3 == 2) {
          communicator.all_reduce(std::span(mine));
          if (round % 2 == 0) communicator.barrier();
          check(mine == sum_of(4, mine.size(), i), "blocking call " + std::to_string(i));
        } else {
          requests.push_back(communicator.start_all_reduce(std::span(mine)));
        }
      }
      std::mt19937_64 random(test::seed(static_cast<std::uint64_t>(member.rank + round)));
      std::shuffle(requests.begin(), requests.end(), random);
      for (Request& request : requests) request.wait();
      for (int i = 0; i < 12; ++i) {
        check(values[static_cast<std::size_t>(i)] == sum_of(4, values[static_cast<std::size_t>(i)].size(), i),
              "operation " + std::to_string(i));
      }
    }
  });
}

// 100 operations of all kinds on 4 communicators; every rank waits in an order of its own.
TEST_P(Requests, AHundredAtOnceOnFourCommunicators) {
  run(5, [](test::Member& member) {
    std::vector<Communicator> communicators;
    for (const char* algorithm : {"", "ring", "cps", "rhd"}) {
      CommunicatorOptions options;
      options.algorithm = algorithm;
      options.staging_bytes = *algorithm == 'r' ? 64 << 10 : 0;
      communicators.push_back(member.communicator(options));
    }
    std::mt19937_64 own(test::seed(static_cast<std::uint64_t>(member.rank) + 1));
    for (std::uint64_t round = 0; round < test::scaled<std::uint64_t>(1, 3, 30); ++round) {
      test::CaseDealer dealer(test::seed(round));
      std::vector<std::unique_ptr<test::CaseRun>> runs;
      std::vector<Request> requests;
      for (std::uint64_t i = 0; i < 100; ++i) {
        test::Case c = i % 25 == 0 ? dealer.deal_large(member.size) : dealer.deal(member.size);
        runs.push_back(std::make_unique<test::CaseRun>(c, member.rank, member.size, round * 100 + i));
        requests.push_back(runs.back()->start(communicators[i % 4]));
      }
      std::vector<std::size_t> order(100);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), own);
      for (const std::size_t i : order) {
        if (own() % 4 == 0) {
          while (!requests[i].test()) std::this_thread::yield();
        } else {
          requests[i].wait();
        }
        runs[i]->verify();
      }
    }
  });
}

// Each communicator is used by a thread of its own, blocking.
TEST_P(Requests, CommunicatorsOfOneProcessAreIndependent) {
  run(3, [](test::Member& member) {
    std::vector<Communicator> communicators;
    for (int i = 0; i < 3; ++i) communicators.push_back(member.communicator({}));
    std::vector<std::string> problems(3);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        try {
          test::CaseDealer dealer(t);
          for (std::uint64_t i = 0; i < test::scaled<std::uint64_t>(20, 100, 1000); ++i) {
            test::run_case(communicators[t], dealer.deal(member.size), 1000 * t + i);
          }
        } catch (const std::exception& error) {
          problems[t] = test::text_of(error);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& problem : problems) check(problem.empty(), problem);
  });
}

CollectiveCall all_reduce_of(std::vector<float>& values) {
  return {.in = values.data(), .out = values.data(), .count = static_cast<std::int64_t>(values.size())};
}

/// Waits for a condition, without the library.
template <class Condition>
void await(const Condition& condition) {
  const auto start = test::Clock::now();
  while (!condition()) {
    check(test::seconds_since(start) < 60, "a condition did not become true");
    std::this_thread::yield();
  }
}

// The result is in the buffer when the function is called, and that happens once for each start.
TEST_P(Requests, CompletionIsCalledOnceForEachStart) {
  run(3, [](test::Member& member) {
    Communicator communicator = member.communicator({});
    for (const std::size_t count : {std::size_t{0}, std::size_t{3}, std::size_t{100'000}}) {
      std::vector<float> values = values_of(member.rank, count, 2);
      std::atomic<int> num_calls = 0;
      std::atomic<bool> is_right = false;
      const Completion on_complete = [&](const std::exception_ptr& error) {
        is_right = error == nullptr && values == sum_of(3, count, 2);
        ++num_calls;
      };
      Request once = communicator.start(all_reduce_of(values), on_complete);
      once.wait();
      check(num_calls == 1 && is_right, "a non-blocking operation");
      Request again = communicator.prepare(all_reduce_of(values), on_complete);
      for (int round = 1; round <= 5; ++round) {
        const std::vector<float> fresh = values_of(member.rank, count, 2);
        std::copy(fresh.begin(), fresh.end(), values.begin());
        again.start();
        while (!again.test()) std::this_thread::yield();
        check(num_calls == 1 + round && is_right, "a persistent operation");
      }
    }
  });
}

// The ranks call different things; the function gets what wait throws. The operation after that fails at once, and that
// is reported in the same way.
TEST_P(Requests, CompletionGetsTheError) {
  run(2, [](test::Member& member) {
    Communicator communicator = member.communicator({});
    std::vector<float> values(member.rank == 0 ? 10'000 : 20'000);
    for (int round = 0; round < 2; ++round) {
      std::exception_ptr seen;
      int num_calls = 0;
      Request request = communicator.start(all_reduce_of(values), [&](const std::exception_ptr& error) {
        seen = error;
        ++num_calls;
      });
      std::string thrown;
      try {
        request.wait();
      } catch (const TransportError& error) {
        thrown = error.what();
      }
      check(num_calls == 1 && seen != nullptr, "the function was not called with an error");
      try {
        std::rethrow_exception(seen);
      } catch (const TransportError& error) {
        check(!thrown.empty() && thrown == error.what(), "wait and the function know different errors");
      }
    }
  });
}

TEST_P(Requests, ACallThatIsRefusedHasNoCompletion) {
  run(2, [](test::Member& member) {
    Communicator communicator = member.communicator({});
    std::vector<float> values = values_of(member.rank, 10, 1);
    CollectiveCall wrong = all_reduce_of(values);
    wrong.count = -1;
    int num_calls = 0;
    const Completion on_complete = [&](const std::exception_ptr&) { ++num_calls; };
    check(is_refused([&] { communicator.start(wrong, on_complete).wait(); }), "a negative count");
    communicator.start(all_reduce_of(values), on_complete).wait();
    check(num_calls == 1, "the call that was refused was completed");
  });
}

// Nothing waits for these requests: the communicator completes them before it dies.
TEST_P(Requests, DetachedOperationsAreCompletedBeforeTheCommunicatorDies) {
  run(3, [](test::Member& member) {
    std::vector<std::vector<float>> values;
    for (int i = 0; i < 8; ++i) values.push_back(values_of(member.rank, static_cast<std::size_t>(i * 20'000), i));
    std::vector<int> completed;
    {
      Communicator communicator = member.communicator({});
      for (int i = 0; i < 8; ++i) {
        Request request = communicator.start(all_reduce_of(values[static_cast<std::size_t>(i)]),
                                             [&completed, i](const std::exception_ptr& error) {
                                               if (error == nullptr) completed.push_back(i);
                                             });
        request.detach();
        check(request.test(), "a request that was detached belongs to no operation");
      }
    }
    check(completed == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}, "not all were completed, or in another order");
    for (int i = 0; i < 8; ++i) {
      const std::vector<float>& sum = values[static_cast<std::size_t>(i)];
      check(sum == sum_of(3, sum.size(), i), "operation " + std::to_string(i));
    }
  });
}

// While the function runs the operation is not complete, but nothing is locked: the communicator answers, another one
// works.
TEST_P(Requests, CompletionHoldsNoLock) {
  run(2, [](test::Member& member) {
    Communicator communicator = member.communicator({});
    Communicator other = member.communicator({});
    std::vector<float> values = values_of(member.rank, 1000, 1);
    std::vector<float> more = values_of(member.rank, 1000, 2);
    std::atomic<bool> has_entered = false;
    std::atomic<bool> may_leave = false;
    std::thread::id thread;
    Request request = communicator.start(all_reduce_of(values), [&](const std::exception_ptr&) {
      thread = std::this_thread::get_id();
      has_entered = true;
      await([&] { return may_leave.load(); });
    });
    await([&] { return has_entered.load(); });
    check(thread != std::this_thread::get_id(), "these transports have a thread of their own");
    check(!request.test(), "complete before its function has returned");
    check(!communicator.report(Collective::kAllReduce, 12'345, DataType::kFloat64).algorithm.empty(), "a report");
    Request next = communicator.start(all_reduce_of(more));
    other.barrier();
    may_leave = true;
    request.wait();
    next.wait();
    check(values == sum_of(2, 1000, 1) && more == sum_of(2, 1000, 2), "the results");
  });
}

// Every operation is started by the one before; meanwhile no other thread uses the communicator.
TEST_P(Requests, CompletionMayStartTheNextOperation) {
  run(3, [](test::Member& member) {
    constexpr int kRounds = 50;
    std::vector<float> values(5000, 1.0F);
    std::atomic<int> num_rounds = 0;
    std::atomic<bool> has_failed = false;
    Communicator communicator = member.communicator({});
    Completion go_on;
    const auto start_next = [&] { communicator.start(all_reduce_of(values), go_on).detach(); };
    go_on = [&](const std::exception_ptr& error) {
      has_failed = has_failed || error != nullptr || values.front() != 3 || values.back() != 3;
      std::fill(values.begin(), values.end(), 1.0F);
      if (num_rounds + 1 < kRounds) start_next();
      ++num_rounds;
    };
    start_next();
    await([&] { return num_rounds == kRounds; });
    check(!has_failed, "an operation of the chain");
  });
}

/// Computes for this long without calling the library; the result keeps the compiler from leaving it out.
double compute(double seconds) {
  const auto start = test::Clock::now();
  double x = 0.5;
  while (test::seconds_since(start) < seconds) {
    for (int i = 0; i < 10'000; ++i) x = std::sqrt(x + 1);
  }
  return x;
}

// Rank 0 computes and then calls test() once; the others stay away from the library until rank 0 has seen the result.
// Progress inside test and wait alone could therefore never complete it. The time to compute grows until it is enough
// on this machine.
TEST_P(Requests, OperationsProgressWhileTheCallerComputes) {
  constexpr std::size_t kCount = (std::size_t{64} << 20) / sizeof(float);
  test::SharedArray shared(2);  // rounds that rank 0 has looked at; 1 when complete at first sight
  run(2, [&](test::Member& member) {
    Communicator communicator = member.communicator({});
    const std::size_t count = test::scaled(kCount / 16, kCount, kCount);
    std::vector<float> values(count);
    double seconds = 0.25;
    for (std::uint64_t round = 1; seconds < 60 && shared[1] == 0; ++round, seconds *= 2) {
      std::fill(values.begin(), values.end(), static_cast<float>(member.rank + 1));
      Request request = communicator.start_all_reduce(std::span(values));
      if (member.rank == 0) {
        check(compute(seconds) > 1, "the computation");
        if (request.test()) shared[1] = 1;
        shared[0] = round;
      } else {
        shared.await(0, round);
      }
      request.wait();
      check(std::all_of(values.begin(), values.end(), [](float x) { return x == 3; }), "the sum");
    }
    check(shared[1] == 1, "not complete after a minute of computation");
  });
}

}  // namespace
}  // namespace gar
