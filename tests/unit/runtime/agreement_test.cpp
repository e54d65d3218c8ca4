// The agreement of survivors, in thousands of simulated groups (support/simulated_group.hpp), and its letters.
#include "runtime/survival/agreement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/survival/letters.hpp"
#include "support/seed.hpp"
#include "support/simulated_group.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

using test::Hazards;
using test::Life;
using test::Participant;
using test::SimulatedGroup;

int num_in(const SimulatedGroup& group, Life life) {
  return static_cast<int>(std::count_if(group.nodes().begin(), group.nodes().end(),
                                        [&](const Participant& node) { return node.life == life; }));
}

/// Runs many cases of 2 to 8 members; `check` looks at each of them.
template <class Check>
void run_cases(Hazards world, int num_cases, const Check& check) {
  num_cases = test::in_slow_build(num_cases / 8, num_cases);
  const std::uint64_t first = test::seed(1) % 1'000'000'007;
  for (int i = 0; i < num_cases; ++i) {
    world.size = 2 + i % 7;
    SimulatedGroup group(world, first + static_cast<std::uint64_t>(i));
    const std::string problem = group.run();
    ASSERT_EQ(problem, "") << world.size << " members, seed " << first + static_cast<std::uint64_t>(i);
    check(group, first + static_cast<std::uint64_t>(i));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Agreement, WithoutFaultsAllFinish) {
  run_cases({}, 200, [](const SimulatedGroup& group, std::uint64_t seed) {
    EXPECT_EQ(num_in(group, Life::kFinished), static_cast<int>(group.nodes().size())) << "seed " << seed;
    for (const Participant& node : group.nodes()) EXPECT_EQ(node.agreement.generation(), 0U);
  });
}

TEST(Agreement, AMajorityGoesOnAfterDeaths) {
  int num_shrunk = 0;
  run_cases({.death = 0.02, .most_deaths = 7}, 6000, [&](const SimulatedGroup& group, std::uint64_t seed) {
    const auto size = static_cast<int>(group.nodes().size());
    const int num_finished = num_in(group, Life::kFinished);
    if (2 * group.num_deaths() < size) {
      EXPECT_EQ(num_finished + num_in(group, Life::kDead), size) << "seed " << seed;
    }
    for (const Participant& node : group.nodes()) num_shrunk += node.agreement.generation() > 0 ? 1 : 0;
  });
  EXPECT_GT(num_shrunk, 150);
}

TEST(Agreement, OnOneHostAllWhoLiveGoOn) {
  run_cases({.closing_is_death = true, .death = 0.03, .most_deaths = 7}, 6000,
            [](const SimulatedGroup& group, std::uint64_t seed) {
              const auto size = static_cast<int>(group.nodes().size());
              EXPECT_EQ(num_in(group, Life::kFinished) + num_in(group, Life::kDead), size) << "seed " << seed;
            });
}

TEST(Agreement, MembersThatAreWronglyHeldForLostDisturbNobody) {
  run_cases({.death = 0.01, .suspicion = 0.02, .rebuild_failure = 0.1, .most_deaths = 2}, 6000,
            [](const SimulatedGroup&, std::uint64_t) {});
  run_cases({.closing_is_death = true, .death = 0.01, .suspicion = 0.02, .rebuild_failure = 0.1, .most_deaths = 2},
            3000, [](const SimulatedGroup&, std::uint64_t) {});
}

TEST(Agreement, MembersThatStopAreLeftOut) {
  run_cases({.death = 0.005, .stop = 0.02, .most_deaths = 1}, 4000, [](const SimulatedGroup&, std::uint64_t) {});
  run_cases({.closing_is_death = true, .death = 0.005, .stop = 0.02, .most_deaths = 1}, 4000,
            [](const SimulatedGroup&, std::uint64_t) {});
}

TEST(Agreement, OfASplitNetworkOnePartGoesOn) {
  int num_finished = 0;
  run_cases({.death = 0.003, .split = 0.01, .most_deaths = 1}, 6000,
            [&](const SimulatedGroup& group, std::uint64_t) { num_finished += num_in(group, Life::kFinished); });
  EXPECT_GT(num_finished, 150);
}

TEST(Agreement, EverythingAtOnce) {
  run_cases({.death = 0.01, .stop = 0.01, .suspicion = 0.01, .split = 0.003, .rebuild_failure = 0.1, .most_deaths = 3},
            8000, [](const SimulatedGroup&, std::uint64_t) {});
}

TEST(Letters, NothingElseIsRead) {
  Letter letter{.kind = LetterKind::kReport, .generation = 3, .ballot = 7};
  letter.report = {.num_done = 9,
                   .address = "10.0.0.1:5",
                   .gone = {5},
                   .silent = {1, 4},
                   .accepted = 2,
                   .outcome = {{0, 2}, 8, {"a", "b"}}};
  const std::string bytes = write_letter(letter);
  const std::optional<Letter> read = read_letter(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(write_letter(*read), bytes);
  EXPECT_EQ(read->report.silent, letter.report.silent);
  EXPECT_EQ(read->report.outcome, letter.report.outcome);
  for (std::size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(read_letter(bytes.substr(0, length)));
  EXPECT_FALSE(read_letter(bytes + "x"));
  std::mt19937_64 dice(test::seed(5));
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = bytes;
    for (int k = 0; k < 3; ++k) damaged[dice() % damaged.size()] = static_cast<char>(dice());
    static_cast<void>(read_letter(damaged));
  }
}

}  // namespace
}  // namespace gar
