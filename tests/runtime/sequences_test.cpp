// Seeded random sequences of operations on random communicators, compared step by step: kinds, types, sizes, places,
// blocking or not, several under way at once, barriers and reports in between, communicators that come and go.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "support/collective_cases.hpp"
#include "support/configurations.hpp"
#include "support/rank_groups.hpp"
#include "support/seed.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

using test::Case;
using test::Via;

struct UnderWay {
  std::unique_ptr<test::CaseRun> run;
  Request request;
};

/// The sequence is the same on every rank; in which order a rank completes what is under way is its own choice.
class Sequence {
 public:
  Sequence(test::Member& member, std::uint64_t seed)
      : member_(member), shared_(seed), own_(seed * 100 + static_cast<std::uint64_t>(member.rank)), dealer_(seed) {}

  void run(int num_steps) {
    const std::uint64_t seed = shared_();
    const std::vector<test::Configuration> all = test::configurations(member_.size, seed, 1);
    for (std::uint64_t i = 0, n = 1 + shared_() % 3; i < n; ++i) {
      communicators_.push_back(member_.communicator(all[shared_() % all.size()].options));
    }
    for (int i = 0; i < num_steps; ++i) step(communicators_[shared_() % communicators_.size()]);
    while (!under_way_.empty()) complete_one();
  }

 private:
  void step(Communicator& communicator) {
    const std::uint64_t choice = shared_() % 20;
    const std::uint64_t salt = shared_();
    if (choice == 0) return communicator.barrier();
    Case c = choice == 1 ? dealer_.deal_large(member_.size) : dealer_.deal(member_.size);
    if (shared_() % 3 == 0) c.count = static_cast<std::int64_t>(shared_() % 3000);
    auto run = std::make_unique<test::CaseRun>(c, member_.rank, member_.size, salt);
    if (choice < 10) {
      run->run(communicator);
      run->verify();
      return;
    }
    Request request = run->start(communicator);
    if (own_() % 4 == 0) request.test();
    under_way_.push_back({std::move(run), std::move(request)});
    while (under_way_.size() > 6) complete_one();
  }

  void complete_one() {
    const auto at = under_way_.begin() + static_cast<std::ptrdiff_t>(own_() % under_way_.size());
    at->request.wait();
    at->run->verify();
    under_way_.erase(at);
  }

  test::Member& member_;
  std::mt19937_64 shared_;
  std::mt19937_64 own_;
  test::CaseDealer dealer_;
  std::vector<Communicator> communicators_;
  std::deque<UnderWay> under_way_;
};

class Sequences : public ::testing::TestWithParam<Via> {};

TEST_P(Sequences, AreRight) {
  const std::uint64_t num_sequences = test::scaled<std::uint64_t>(test::kHasThreadSanitizer ? 6 : 15, 40, 2000);
  std::mt19937_64 random(test::seed(GetParam() == Via::kThreads ? 1 : 2));
  for (std::uint64_t i = 0; i < num_sequences; ++i) {
    const std::uint64_t seed = random();
    const int num_ranks = 1 + static_cast<int>(random() % (i % 10 == 0 ? 16 : 6));
    const auto body = [&](test::Member& member) { Sequence(member, seed).run(20); };
    ASSERT_EQ(test::failures(test::run_ranks(GetParam(), num_ranks, body)), "")
        << "seed " << seed << " on " << num_ranks << " ranks";
  }
}

// More sizes than any cache of plans keeps, and back to the first ones.
TEST_P(Sequences, ManySizes) {
  const auto body = [](test::Member& member) {
    CommunicatorOptions options;
    options.latency_bytes = 64;
    Communicator communicator = member.communicator(options);
    const std::int64_t num_sizes = test::scaled<std::int64_t>(100, 1000, 20'000);
    for (std::int64_t i = 0; i < num_sizes + 50; ++i) {
      const Case c{Collective::kAllReduce, test::Form::kInPlace,     DataType::kFloat32,
                   ReduceOp::kSum,         i % num_sizes * 7 % 4999, test::Call::kBlocking};
      test::run_case(communicator, c, static_cast<std::uint64_t>(i));
    }
  };
  EXPECT_EQ(test::failures(test::run_ranks(GetParam(), 3, body)), "");
}

// Counters of chunks wrap around somewhere; over a million of the smallest chunks go past 20 bits.
TEST_P(Sequences, AMillionChunks) {
  if (test::scale() != test::Scale::kFull) GTEST_SKIP() << "takes long; GAR_TEST_FULL=1 runs it";
  const auto body = [](test::Member& member) {
    CommunicatorOptions options;
    options.algorithm = "cps";
    options.staging_bytes = 1;
    Communicator communicator = member.communicator(options);
    constexpr std::int64_t kCount = 64 << 20;
    const PlanReport report = communicator.report(Collective::kAllReduce, kCount, DataType::kUint8);
    const std::int64_t rounds = (std::int64_t{1} << 20) / report.num_chunks + 2;
    test::check(rounds < 100, "only " + std::to_string(report.num_chunks) + " chunks");
    for (std::int64_t i = 0; i < rounds; ++i) {
      test::run_case(communicator,
                     {Collective::kAllReduce, test::Form::kInPlace, DataType::kUint8, ReduceOp::kSum, kCount},
                     static_cast<std::uint64_t>(i));
    }
  };
  EXPECT_EQ(test::failures(test::run_ranks(GetParam(), 2, body)), "");
}

INSTANTIATE_TEST_SUITE_P(Transports, Sequences, ::testing::Values(Via::kThreads, Via::kProcesses),
                         [](const auto& test_info) { return test::to_string(test_info.param); });

}  // namespace
}  // namespace gar
