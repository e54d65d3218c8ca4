// What PlaceSteps says of a rank is what its program says, to the last bit: of groups as even as possible, of groups of
// any size, and of pieces that go to anyone, whether they hold them or not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/plan.hpp"
#include "model/place_steps.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

int num_plans() { return test::drawn(60, 600, 6000); }

std::int64_t between(std::mt19937_64& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

/// Two or three levels of groups as even as possible.
Plan in_even_groups(std::mt19937_64& random) {
  const std::int64_t n = between(random, 5, 90);
  std::vector<std::int64_t> factors;  // outermost first
  std::int64_t size = n;
  for (std::int64_t level = between(random, 1, 2); level > 0 && size > 3; --level) {
    factors.push_back(between(random, 2, size / 2));
    size = (size + factors.back() - 1) / factors.back();
  }
  factors.push_back(size);
  return uneven_hcps(n, {factors.rbegin(), factors.rend()});
}

Plan in_any_groups(std::mt19937_64& random) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(between(random, 1, 9)));
  for (std::int64_t& size : sizes) size = random() % 3 == 0 ? 1 : between(random, 1, 12);
  return acps(sizes);
}

/// Gives pieces of any length to any rank.
void give_to_anyone(std::mt19937_64& random, Plan& plan) {
  std::vector<std::int64_t> borders{0, plan.num_units};
  for (std::int64_t i = between(random, 0, 40); i > 0; --i) borders.push_back(between(random, 0, plan.num_units));
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::vector<Piece> target;
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    target.push_back({borders[i], borders[i + 1], static_cast<std::int32_t>(between(random, 0, plan.num_ranks - 1))});
  }
  plan.subplans.back().stages = {{StageKind::kPlace, 1, 1, target}};
}

Plan draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Plan plan;
  switch (random() % 6) {
    case 0:
      return reduce_broadcast(between(random, 2, 40));
    case 1:
      return rhd(between(random, 3, 70));
    case 2:
      return in_any_groups(random);
    case 3:
      plan = in_any_groups(random);
      break;
    default:
      plan = in_even_groups(random);
  }
  if (plan.num_ranks > 1 && random() % 2 == 0) give_to_anyone(random, plan);
  return plan;
}

RankStep by_program(const Plan& plan, const PlanIndex& index, std::int64_t rank) {
  RankStep out;
  RankProgram program;
  const std::int64_t number = index.first_step(plan.root);
  index.scatter_program(rank, {number, number + 1}, program);
  const auto volume = [&](const Message& m) {
    return static_cast<double>(m.end - m.begin) / static_cast<double>(plan.num_units);
  };
  for (const Step& step : program.steps) {
    if (step.number != number) continue;
    for (const Message& m : step.sends) out.sent += volume(m);
    for (const Message& m : step.recvs) out.received += volume(m);
    out.messages = messages_of(step);
    out.num_parts = static_cast<std::int64_t>(step.sends.size() + step.recvs.size());
    out.calculation = calculation_of(step.recvs, plan.num_units);
  }
  return out;
}

TEST(PlaceSteps, AreWhatProgramsSay) {
  std::int64_t num_compared = 0;
  std::int64_t num_in_parts = 0;
  for (int i = 0; i < num_plans(); ++i) {
    const Plan whole = draw(static_cast<std::uint64_t>(i + 1));
    const PlanIndex sizes(whole);
    for (std::size_t id = 0; id < whole.subplans.size(); ++id) {
      const std::vector<Stage>& stages = whole.subplans[id].stages;
      if (stages.empty() || is_digit(stages.front())) continue;
      Plan plan = whole;  // of this sub-plan alone
      plan.root = static_cast<SubPlanId>(id);
      plan.num_ranks = sizes.num_ranks(plan.root);
      const PlanIndex index(plan);
      PlaceSteps steps(plan, index, plan.root);
      for (std::int64_t rank = 0; rank < plan.num_ranks; ++rank) {
        const RankStep expected = by_program(plan, index, rank);
        const RankStep found = steps.of(rank);
        const std::string where =
            "seed " + std::to_string(i + 1) + ", sub-plan " + std::to_string(id) + ", rank " + std::to_string(rank);
        EXPECT_EQ(found.sent, expected.sent) << where;
        EXPECT_EQ(found.received, expected.received) << where;
        EXPECT_EQ(found.messages.sent, expected.messages.sent) << where;
        EXPECT_EQ(found.messages.received, expected.messages.received) << where;
        EXPECT_EQ(found.num_parts, expected.num_parts) << where;
        EXPECT_EQ(found.calculation.adds, expected.calculation.adds) << where;
        EXPECT_EQ(found.calculation.accesses, expected.calculation.accesses) << where;
        EXPECT_EQ(found.calculation.fan_in, expected.calculation.fan_in) << where;
        ++num_compared;
        num_in_parts += found.num_parts > found.messages.sent + found.messages.received ? 1 : 0;
      }
    }
  }
  EXPECT_GT(num_compared, 0);
  EXPECT_GT(num_in_parts, 0) << "no rank sends or receives several parts at once";
}

}  // namespace
}  // namespace gar
