// Communicators that measure their own calls: results stay right and the same on all ranks while candidates take turns,
// all ranks come to the same verdict, and the next communicator starts with it. Which candidate wins is not looked at.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "gar/algorithms.hpp"
#include "gar/decisions.hpp"
#include "runtime/exploration.hpp"
#include "support/collective_cases.hpp"
#include "support/rank_groups.hpp"
#include "support/seed.hpp"
#include "support/temp_folder.hpp"

namespace gar::test {
namespace {

CommunicatorOptions exploring(double share = 1) {
  CommunicatorOptions out;
  out.explores = true;
  out.explore_share = share;
  out.timeout_s = kNoLimit;
  return out;
}

void expect_success(const std::vector<std::string>& outcomes) { EXPECT_EQ(failures(outcomes), ""); }

/// The same number on all ranks?
void check_same(Communicator& communicator, std::uint64_t value, const std::string& what) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::span<const std::uint64_t>(&value, 1), std::span(all));
  for (const std::uint64_t other : all) check(other == all.front(), what + " differs between ranks");
}

/// Calls until all ranks know that nothing is left to be measured.
std::int64_t run_until_settled(Communicator& communicator, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  constexpr std::int64_t kMost = 20'000;
  for (std::int64_t i = 0; i < kMost; ++i) {
    std::fill(values.begin(), values.end(), 1.0F);
    communicator.all_reduce(std::span(values));
    check(values.back() == static_cast<float>(communicator.size()), "a wrong sum in call " + std::to_string(i));
    if (communicator.is_settled(count, DataType::kFloat32)) return i + 1;
  }
  throw Failure("still not settled");
}

TEST(Word, TravelsWithEveryTypeAndOperator) {
  for (const auto& [type, op] : typed_ops()) {
    for (const unsigned word : {0U, 1U, 0x5aU, 0x80U, 0xffU}) {
      const auto bytes = static_cast<std::size_t>(kTurnBits * size_of(type));
      for (int speaker = 0; speaker < 3; ++speaker) {  // whoever's operand comes first
        std::vector<std::vector<std::byte>> operands(3, std::vector<std::byte>(bytes));
        std::vector<const void*> inputs;
        for (int i = 0; i < 3; ++i) {
          auto& operand = operands[static_cast<std::size_t>(i)];
          write_word(operand.data(), type, op, i == speaker ? std::optional<unsigned>(word) : std::nullopt);
          inputs.push_back(operand.data());
        }
        std::vector<std::byte> out(bytes);
        reduce(type, op, out.data(), inputs, kTurnBits);
        EXPECT_EQ(read_word(out.data(), type), word) << to_string(type) << " " << to_string(op);
      }
    }
  }
}

class Exploring : public testing::TestWithParam<std::tuple<Via, int>> {
 protected:
  [[nodiscard]] static Via via() { return std::get<0>(GetParam()); }
  [[nodiscard]] static int size() { return std::get<1>(GetParam()); }
};

TEST_P(Exploring, KeepsResultsRight) {
  const int rounds = scaled(20, 60, 300);
  expect_success(run_ranks(via(), size(), [&](Member& member) {
    Communicator communicator = member.communicator(exploring());
    CaseDealer dealer(seed(21));
    std::mt19937_64 random(seed(22));
    for (int i = 0; i < rounds; ++i) {
      Case c = dealer.deal(member.size);
      c.count = std::min<std::int64_t>(c.count, 40'000);
      // Several times, so that every call is also a first, a middle and a last one of a turn.
      const int times = 1 + static_cast<int>(random() % 8);
      for (int k = 0; k < times; ++k) run_case(communicator, c, static_cast<std::uint64_t>(100 * i + k));
    }
  }));
}

TEST_P(Exploring, GivesAllRanksTheSameBits) {
  expect_success(run_ranks(via(), size(), [&](Member& member) {
    Communicator communicator = member.communicator(exploring());
    std::mt19937_64 random(static_cast<std::uint64_t>(member.rank) + 1);
    std::normal_distribution<float> normal;
    for (const std::size_t count : {3U, 1000U, 30'000U}) {
      std::vector<float> values(count);
      for (int i = 0; i < 60; ++i) {
        for (float& value : values) value = normal(random);
        communicator.all_reduce(std::span(values));
        std::uint64_t hash = 1;
        for (const float value : values) hash = hash * 31 + std::bit_cast<std::uint32_t>(value);
        check_same(communicator, hash, "the result of call " + std::to_string(i));
      }
    }
  }));
}

TEST_P(Exploring, ComesToAVerdictThatAllRanksKnow) {
  expect_success(run_ranks(via(), size(), [&](Member& member) {
    Communicator communicator = member.communicator(exploring());
    for (const std::int64_t count : {2, 700, 20'000}) {
      const std::int64_t calls = run_until_settled(communicator, count);
      check_same(communicator, static_cast<std::uint64_t>(calls), "the call that settled it");
    }
    const std::vector<Decision> decisions = communicator.decisions().decisions;
    check(decisions.size() == (member.rank == 0 ? 3U : 0U), "decisions on the wrong rank");
    for (const Decision& decision : decisions) {
      check(decision.is_settled && decision.candidates.size() >= 2, "too few candidates");
      for (const DecisionCandidate& candidate : decision.candidates) {
        check(candidate.seconds > 0 && candidate.num_calls > 0, candidate.name + " was not tried");
      }
      check(decision.find(decision.winner) != nullptr, "the winner is no candidate");
    }
  }));
}

TEST_P(Exploring, WorksForRequestsInAnyOrder) {
  expect_success(run_ranks(via(), size(), [&](Member& member) {
    Communicator first = member.communicator(exploring());
    Communicator second = member.communicator(exploring());
    std::mt19937_64 random(static_cast<std::uint64_t>(member.rank) + 5);
    const Case persistent{Collective::kAllReduce, Form::kOutOfPlace, DataType::kInt32, ReduceOp::kMax, 900, {}};
    for (int round = 0; round < scaled(3, 12, 40); ++round) {
      std::vector<std::unique_ptr<CaseRun>> runs;
      std::vector<Request> requests;
      for (int i = 0; i < 12; ++i) {
        const std::int64_t count = i % 3 == 0 ? 5 : i % 3 == 1 ? 1000 : 20'000;
        const Case c{Collective::kAllReduce,
                     i % 2 == 0 ? Form::kInPlace : Form::kOutOfPlace,
                     DataType::kFloat64,
                     ReduceOp::kSum,
                     count,
                     {}};
        runs.push_back(std::make_unique<CaseRun>(c, member.rank, member.size, static_cast<std::uint64_t>(i)));
        requests.push_back(runs.back()->start(i % 4 < 2 ? first : second));
      }
      runs.push_back(std::make_unique<CaseRun>(persistent, member.rank, member.size, 77U));
      requests.push_back(runs.back()->prepare(first));
      requests.back().start();
      // A blocking call behind those that are under way.
      run_case(second, {Collective::kAllReduce, Form::kInPlace, DataType::kFloat32, ReduceOp::kSum, 1000, {}}, 5);
      std::vector<std::size_t> order(requests.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t i : order) {
        requests[i].wait();
        runs[i]->verify();
      }
    }
  }));
}

TEST_P(Exploring, TellsTheNextCommunicator) {
  const TempFolder folder;
  setenv("GAR_DECISIONS", folder.path().c_str(), 1);
  const auto outcomes = run_ranks(via(), size(), [&](Member& member) {
    {
      Communicator communicator = member.communicator(exploring());
      run_until_settled(communicator, 5000);
      communicator.barrier();
    }
    // The file is there when rank 0's communicator has gone; the next one is made by all ranks together.
    const KeptDecisions kept =
        load_decisions(folder.path(), place_on_this_host({}, via() == Via::kThreads ? "threads" : "shm", member.size));
    check(member.rank != 0 || (kept.problem.empty() && kept.decisions.size() == 1), "nothing is kept: " + kept.problem);
    Communicator again = member.communicator(exploring());
    std::vector<float> values(5000, 1.0F);
    again.all_reduce(std::span(values));
    check(again.is_settled(5000, DataType::kFloat32), "what was found is not believed");
    if (member.rank == 0) {
      const std::vector<Decision> decisions = again.decisions().decisions;
      check(decisions.size() == 1 && decisions[0].winner == kept.decisions[0].winner, "another winner");
    }
    again.barrier();
    // One that is made, called and freed has nothing to tell: the file, which is always replaced, stays the same one.
    const std::string file = folder.file(
        decisions_file_name(place_on_this_host({}, via() == Via::kThreads ? "threads" : "shm", member.size)));
    struct stat before {};
    check(member.rank != 0 || stat(file.c_str(), &before) == 0, "the file is gone");
    {
      Communicator brief = member.communicator(exploring(0.02));
      brief.all_reduce(std::span(values));
    }
    struct stat after {};
    check(member.rank != 0 || (stat(file.c_str(), &after) == 0 && after.st_ino == before.st_ino), "written again");
  });
  setenv("GAR_DECISIONS", "0", 1);
  expect_success(outcomes);
}

TEST_P(Exploring, SaysThatGarbageIsNotUsed) {
  const TempFolder folder;
  setenv("GAR_DECISIONS", folder.path().c_str(), 1);
  const DecisionPlace place = place_on_this_host({}, via() == Via::kThreads ? "threads" : "shm", size());
  std::ofstream(folder.file(decisions_file_name(place))) << "{\"schema\": \"gar.decisions/1\", ";
  const auto outcomes = run_ranks(via(), size(), [&](Member& member) {
    std::mutex mutex;
    std::string notes;
    CommunicatorOptions options = exploring();
    if (via() == Via::kProcesses) {  // threads share the options of whoever comes last
      options.log = [&](std::string_view line) {
        const std::lock_guard lock(mutex);
        notes += std::string(line) + "\n";
      };
    }
    Communicator communicator = member.communicator(options);
    if (member.rank == 0 && via() == Via::kProcesses) {
      check(notes.find("decisions of earlier jobs are not used") != std::string::npos, "silent: " + notes);
    }
    run_until_settled(communicator, 100);
    communicator.barrier();
  });
  setenv("GAR_DECISIONS", "0", 1);
  expect_success(outcomes);
  EXPECT_EQ(load_decisions(folder.path(), place).decisions.size(), 1U);  // replaced by what is right
}

TEST_P(Exploring, IsOffWhereRunsMustBeTheSame) {
  expect_success(run_ranks(via(), size(), [&](Member& member) {
    for (int kind = 0; kind < 4; ++kind) {
      CommunicatorOptions options = exploring();
      if (kind == 0) options.algorithm = "ring";
      if (kind == 1) options.reproducible = true;
      if (kind == 2) options.explores = false;
      if (kind == 3) options.plan = build_plan(parse_algorithm("cps"), member.size);
      Communicator communicator = member.communicator(options);
      std::vector<float> values(100, 1.0F);
      for (int i = 0; i < 30; ++i) communicator.all_reduce(std::span(values), ReduceOp::kMax);
      check(communicator.decisions().decisions.empty(), "explores, kind " + std::to_string(kind));
      check(communicator.is_settled(100, DataType::kFloat32), "not settled, kind " + std::to_string(kind));
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(All, Exploring,
                         testing::Combine(testing::Values(Via::kThreads, Via::kProcesses), testing::Values(2, 3)),
                         [](const auto& instance) {
                           return std::string(to_string(std::get<0>(instance.param))) +
                                  std::to_string(std::get<1>(instance.param));
                         });

}  // namespace
}  // namespace gar::test
