// Derived facts about plans, per-rank programs, and the rules that a plan must keep.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/plan.hpp"
#include "gar/topology.hpp"
#include "support/plans.hpp"

namespace gar {
namespace {

// Units are boundaries rounded to the nearest element: 0 -> 0, all -> count, never falling.
TEST(ElementOfUnit, CoversAndAscends) {
  const std::vector<std::pair<std::int64_t, std::int64_t>> cases{
      {1, 0}, {1, 1}, {7, 3}, {3, 7}, {24, 100}, {std::int64_t{1} << 60, 5}, {5, std::int64_t{1} << 60}};
  for (const auto& [units, count] : cases) {
    EXPECT_EQ(element_of_unit(0, units, count), 0);
    EXPECT_EQ(element_of_unit(units, units, count), count);
    const std::int64_t stride = std::max<std::int64_t>(1, units / 100);
    for (std::int64_t u = stride; u <= units && u > 0; u += stride) {
      EXPECT_LE(element_of_unit(u - stride, units, count), element_of_unit(u, units, count));
      if (units - u < stride) break;
    }
  }
  // 3 units over 7 elements: boundaries at 0, 2.33, 4.67, 7.
  EXPECT_EQ(element_of_unit(1, 3, 7), 2);
  EXPECT_EQ(element_of_unit(2, 3, 7), 5);
}

// CPS on 3: rank 1 gives block 0 to rank 0 and block 2 to rank 2, gets block 1 from both; then the way back.
TEST(Program, CpsOfThree) {
  const Plan plan = cps(3);
  const RankProgram p = PlanIndex(plan).program(1);
  ASSERT_EQ(p.steps.size(), 2U);
  EXPECT_EQ(p.steps[0], (Step{0, {{0, false, 0, 1}, {2, false, 2, 3}}, {{0, true, 1, 2}, {2, true, 1, 2}}}));
  EXPECT_EQ(p.steps[1], (Step{1, {{0, false, 1, 2}, {2, false, 1, 2}}, {{0, false, 0, 1}, {2, false, 2, 3}}}));
}

// Ring on 3: rank 0 passes block 2, then block 1, to rank 1; block 0 arrives complete in the last step.
TEST(Program, RingOfThree) {
  const Plan plan = ring(3);
  const RankProgram p = PlanIndex(plan).program(0);
  ASSERT_EQ(p.steps.size(), 4U);
  EXPECT_EQ(p.steps[0], (Step{0, {{1, false, 2, 3}}, {{2, true, 1, 2}}}));
  EXPECT_EQ(p.steps[1], (Step{1, {{1, false, 1, 2}}, {{2, true, 0, 1}}}));
  EXPECT_EQ(p.steps[2], (Step{2, {{2, false, 0, 1}}, {{1, false, 1, 2}}}));
  EXPECT_EQ(p.steps[3], (Step{3, {{2, false, 1, 2}}, {{1, false, 2, 3}}}));
}

// RHD on 3: rank 1 folds into 0, which halves with rank 2.
TEST(Program, RhdOfThree) {
  const Plan plan = rhd(3);
  const PlanIndex index(plan);
  const RankProgram folded = index.program(1);
  ASSERT_EQ(folded.steps.size(), 2U);
  EXPECT_EQ(folded.steps[0], (Step{0, {{0, false, 0, 2}}, {}}));
  EXPECT_EQ(folded.steps[1], (Step{3, {}, {{0, false, 0, 2}}}));
  const RankProgram last = index.program(2);
  ASSERT_EQ(last.steps.size(), 2U);
  EXPECT_EQ(last.steps[0], (Step{1, {{0, false, 0, 1}}, {{0, true, 1, 2}}}));
}

TEST(Program, MirrorImage) {
  const RankProgram scatter{{{0, {{1, false, 0, 4}}, {{1, true, 4, 8}}}}};
  const RankProgram expected{{{5, {{1, false, 4, 8}}, {{1, false, 0, 4}}}}};
  EXPECT_EQ(mirrored(scatter, 6), expected);
}

// Every send has its receive, programs derived one by one are those of the whole, and what the ranks hold at the end of
// the ReduceScatter is a partition.
TEST(Program, MatchesTheWhole) {
  for (std::int64_t n = 2; n <= 24; ++n) {
    std::mt19937_64 random(static_cast<std::uint64_t>(n));
    for (const Plan& plan : test::plans_of_all_builders(random, n, 3)) {
      SCOPED_TRACE(plan.algorithm + " on " + std::to_string(n));
      const PlanIndex index(plan);
      const Plan whole = make_explicit(plan);
      using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
      std::vector<Key> sent, received;
      std::vector<Piece> held;
      for (std::int64_t r = 0; r < n; ++r) {
        const RankProgram p = index.program(r);
        EXPECT_EQ(p, whole.programs[static_cast<std::size_t>(r)]);
        std::int64_t last = -1;
        for (const Step& step : p.steps) {
          EXPECT_GT(step.number, last);
          last = step.number;
          EXPECT_LT(step.number, index.num_steps());
          for (const Message& m : step.sends) sent.emplace_back(step.number, r, m.peer, m.begin, m.end);
          for (const Message& m : step.recvs) received.emplace_back(step.number, m.peer, r, m.begin, m.end);
        }
        for (const Interval& i : index.held_after(plan.root, r)) {
          held.push_back({i.begin, i.end, static_cast<std::int32_t>(r)});
        }
      }
      std::sort(sent.begin(), sent.end());
      std::sort(received.begin(), received.end());
      EXPECT_EQ(sent, received);
      std::sort(held.begin(), held.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
      EXPECT_EQ(held, index.placement_after(plan.root));
      if (!has_halves(plan)) continue;  // exchanges leave copies
      std::int64_t reached = 0;
      for (const Piece& p : held) {
        EXPECT_EQ(p.begin, reached);
        reached = p.end;
      }
      EXPECT_EQ(reached, plan.num_units);
    }
  }
}

TEST(Program, ActiveRanksAreNumberedInRankOrder) {
  const Plan plan = rhd(13);  // 8 + 5
  const PlanIndex index(plan);
  ASSERT_EQ(index.num_active_before(plan.root), 8);
  for (std::int64_t k = 0; k < 8; ++k) {
    EXPECT_EQ(index.active_before_rank(plan.root, index.rank_of_active(plan.root, k)), k);
  }
  EXPECT_EQ(index.active_before_rank(plan.root, 13), 8);
  EXPECT_EQ(index.first_step(plan.root), 1);
  EXPECT_EQ(index.end_step(plan.root), 4);
}

// One rank among a million is derived without the others: 3 steps each way, 99 peers in each, sends and receives.
TEST(Program, OfOneRankAmongAMillion) {
  const Plan plan = hcps(1'000'000, {100, 100, 100});
  EXPECT_EQ(plan.subplans.size(), 1U);
  const PlanIndex index(plan);
  const RankProgram p = index.program(765'432);
  EXPECT_EQ(p.steps.size(), 6U);
  std::size_t messages = 0;
  for (const Step& s : p.steps) messages += s.sends.size() + s.recvs.size();
  EXPECT_EQ(messages, 6U * 2 * 99);
  EXPECT_EQ(index.held_after(plan.root, 765'432), (std::vector<Interval>{{325'476, 325'477}}))
      << "rank 765432 has the digits 32, 54, 76 (the first one cuts first)";
}

TEST(PlanIndex, CanBeMoved) {
  const Plan plan = cps(4);
  PlanIndex first(plan);
  const PlanIndex second(std::move(first));
  EXPECT_EQ(second.num_steps(), 2);
  EXPECT_EQ(&second.plan(), &plan);
}

// The rules, each broken once.
class Rules : public ::testing::Test {
 protected:
  static void expect_rejected(const Plan& plan, const std::string& part) {
    try {
      const PlanIndex index(plan);
      ADD_FAILURE() << "accepted, although: " << part;
    } catch (const PlanError& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  }
  // Ranks in one sub-plan with the given stages.
  static Plan flat(std::int64_t n, std::int64_t units, std::vector<Stage> stages) {
    Plan plan;
    plan.num_ranks = n;
    plan.num_units = units;
    plan.subplans.push_back({{{kLeaf, n}}, std::move(stages), ""});
    plan.root = 0;
    return plan;
  }
};

TEST_F(Rules, Counts) {
  Plan plan = cps(4);
  plan.num_ranks = 0;
  expect_rejected(plan, "num_ranks is 0; expected 1..100000000");
  plan.num_ranks = kMaxServers + 1;
  expect_rejected(plan, "num_ranks is 100000001");
  plan.num_ranks = 5;
  expect_rejected(plan, "num_ranks is 5, but the root sub-plan has 4 ranks");
  plan = cps(4);
  plan.num_units = 0;
  expect_rejected(plan, "num_units is 0; expected 1..");
  plan.num_units = std::numeric_limits<std::int64_t>::max();
  expect_rejected(plan, "num_units is 9223372036854775807");
  plan = cps(4);
  plan.root = 1;
  expect_rejected(plan, "root 1 is not a rank (-1) or a sub-plan (0..0)");
  plan.root = -2;
  expect_rejected(plan, "root -2 is not");
}

TEST_F(Rules, Children) {
  Plan plan = cps(4);
  plan.subplans[0].children.clear();
  expect_rejected(plan, "sub-plan 0: has no children");
  plan.subplans[0].children = {{0, 4}};
  expect_rejected(plan, "sub-plan 0: child 0 is not a rank (-1) or an earlier sub-plan");
  plan.subplans[0].children = {{-2, 4}};
  expect_rejected(plan, "child -2 is not");
  plan.subplans[0].children = {{kLeaf, 0}};
  expect_rejected(plan, "sub-plan 0: a child count of 0 is not in 1..");
  plan.subplans[0].children = {{kLeaf, kMaxServers}, {kLeaf, 1}};
  expect_rejected(plan, "sub-plan 0: more than 100000000 ranks");
  plan = cps(4);
  plan.subplans.push_back({{{0, kMaxServers}}, {}, ""});
  expect_rejected(plan, "sub-plan 1: more than 100000000 ranks");
  plan = cps(4);
  for (SubPlanId i = 0; i <= kMaxDepth; ++i) plan.subplans.push_back({{{i, 1}}, {}, ""});
  expect_rejected(plan, "nested deeper than 64 levels");
}

TEST_F(Rules, Digits) {
  expect_rejected(flat(4, 4, {}), "sub-plan 0: 4 children but no stage that combines them");
  expect_rejected(flat(4, 4, {{StageKind::kDirect, 0, 4, {}}}), "stage 0: stride 0 and radix 4 must be at least 1");
  expect_rejected(flat(4, 4, {{StageKind::kRing, 1, -1, {}}}), "radix -1 must be at least 1");
  expect_rejected(flat(4, 4, {{StageKind::kDirect, 2, 2, {}}}), "stride 2 and radix 2 does not fit; expected stride 1");
  expect_rejected(flat(4, 4, {{StageKind::kDirect, 1, 5, {}}}), "radix 5 does not fit");
  expect_rejected(flat(4, 4, {{StageKind::kDirect, 1, 2, {}}}), "its digits number 2 of 4 active ranks");
  expect_rejected(flat(4, 4, {{StageKind::kPlace, 1, 1, {{0, 4, 0}}}, {StageKind::kDirect, 1, 4, {}}}),
                  "stage 1: a digit stage cannot follow a 'place' stage");
  Plan plan = cps(3);  // children of 3 ranks and of 1
  plan.subplans.push_back({{{0, 1}, {kLeaf, 1}}, {{StageKind::kDirect, 3, 2, {}}}, ""});
  plan.root = 1;
  plan.num_ranks = 4;
  expect_rejected(plan, "sub-plan 1: its children hold different intervals; only a 'place' stage");
}

TEST_F(Rules, Exchanges) {
  const Stage exchange{StageKind::kExchange, 2, 2, {}};
  EXPECT_NO_THROW((void)PlanIndex(flat(4, 4, {{StageKind::kDirect, 1, 2, {}}, exchange})));
  expect_rejected(flat(4, 4, {exchange, {StageKind::kDirect, 1, 2, {}}}),
                  "sub-plan 0, stage 0: an exchange, which only other exchanges may follow");
  expect_rejected(flat(4, 4, {{StageKind::kExchange, 1, 4, {}}, {StageKind::kPlace, 1, 1, {{0, 4, 0}}}}),
                  "sub-plan 0, stage 0: an exchange, which only other exchanges may follow");
  Plan plan = recursive_doubling(4);
  plan.subplans.push_back({{{0, 2}}, {{StageKind::kDirect, 4, 2, {}}}, ""});
  plan.root = 1;
  plan.num_ranks = 8;
  expect_rejected(plan, "sub-plan 0, stage 0: an exchange; accepted only in the root, which is sub-plan 1");
  plan = flat(4, 4, {{StageKind::kDirect, 1, 2, {}}, exchange});
  plan.collective = Collective::kReduceScatter;
  expect_rejected(plan, "sub-plan 0, stage 1: an exchange in a plan for reduce-scatter; accepted only for allreduce");
}

TEST_F(Rules, Targets) {
  const auto place = [](std::vector<Piece> target) {
    return flat(2, 4, {{StageKind::kPlace, 1, 1, std::move(target)}});
  };
  EXPECT_NO_THROW((void)PlanIndex(place({{0, 3, 1}, {3, 4, 0}})));
  expect_rejected(place({}), "target ends at 0 of 4 units");
  expect_rejected(place({{0, 3, 1}}), "target ends at 3 of 4 units");
  expect_rejected(place({{0, 2, 1}, {3, 4, 0}}), "target piece [3,4) does not continue at 2; pieces must cover [0,4)");
  expect_rejected(place({{0, 0, 1}, {0, 4, 0}}), "target piece [0,0) does not continue");
  expect_rejected(place({{0, 5, 1}}), "target piece [0,5)");
  expect_rejected(place({{0, 4, 2}}), "stage 0: owner 2 is not a rank of it (0..1)");
  expect_rejected(place({{0, 4, -1}}), "owner -1");
}

TEST_F(Rules, Halves) {
  Plan plan = rhd(3);
  plan.collective = Collective::kReduceScatter;
  expect_rejected(plan, "needs num_units (2) divisible by num_ranks (3)");
  plan = reduce_broadcast(3);
  plan.num_units = 3;
  plan.subplans[0].stages[0].target[0].end = 3;
  plan.collective = Collective::kAllGather;
  expect_rejected(plan, "rank 0 ends with 3 of 3 units; a ReduceScatter or AllGather plan gives every rank 1");
}

// The outline has a ring's steps once; spelt out again it is the program, but for the place of each step's piece.
TEST(Program, OutlineStandsForAllSteps) {
  for (const Plan& plan : {ring(7), hierarchical_ring(12, {4, 3}), hcps(12, {3, 4}), rhd(11), acps({3, 2}),
                           as_reduce_scatter(ring(6)), make_explicit(ring(5))}) {
    const PlanIndex index(plan);
    for (std::int64_t rank = 0; rank < plan.num_ranks; ++rank) {
      RankProgram program;
      RankProgram outline;
      std::vector<std::int64_t> repeats;
      index.scatter_program(rank, program);
      index.scatter_outline(rank, outline, repeats);
      ASSERT_EQ(repeats.size(), outline.steps.size());
      std::size_t at = 0;
      for (std::size_t i = 0; i < outline.steps.size(); ++i) {
        for (std::int64_t k = 0; k < repeats[i]; ++k, ++at) {
          ASSERT_LT(at, program.steps.size());
          const Step& step = program.steps[at];
          EXPECT_EQ(step.number, outline.steps[i].number + k);
          for (const bool is_send : {true, false}) {
            const std::vector<Message>& all = is_send ? step.sends : step.recvs;
            const std::vector<Message>& once = is_send ? outline.steps[i].sends : outline.steps[i].recvs;
            ASSERT_EQ(all.size(), once.size());
            for (std::size_t m = 0; m < all.size(); ++m) {
              EXPECT_EQ(all[m].peer, once[m].peer);
              EXPECT_EQ(all[m].accumulate, once[m].accumulate);
              EXPECT_EQ(all[m].end - all[m].begin, once[m].end - once[m].begin);
            }
          }
        }
      }
      EXPECT_EQ(at, program.steps.size()) << plan.algorithm << " rank " << rank;
    }
  }
  RankProgram outline;
  std::vector<std::int64_t> repeats;
  const Plan plan = ring(7);
  PlanIndex(plan).scatter_outline(3, outline, repeats);
  EXPECT_EQ(repeats, std::vector<std::int64_t>{6});
}

TEST_F(Rules, ExplicitPrograms) {
  const Plan good = make_explicit(cps(3));
  EXPECT_EQ(PlanIndex(good).num_steps(), 2);
  Plan plan = good;
  plan.programs.pop_back();
  expect_rejected(plan, "2 programs for 3 ranks; one per rank is needed");
  plan = good;
  plan.subplans = cps(3).subplans;
  expect_rejected(plan, "both sub-plans and explicit programs");
  plan = good;
  plan.programs[1].steps[0].sends[0].peer = 3;
  expect_rejected(plan, "rank 1, step 0: peer 3 is not a rank (0..2)");
  plan = good;
  plan.programs[2].steps[1].recvs[1].end = 4;
  expect_rejected(plan, "rank 2, step 1: [1,4) is not an interval inside [0,3)");
  plan = good;
  plan.programs[0].steps[1].number = 0;
  expect_rejected(plan, "rank 0: step 0 after step 0; step numbers must ascend");
  plan = good;
  plan.programs[0].steps[1].number = std::numeric_limits<std::int64_t>::max();
  expect_rejected(plan, "step numbers must ascend from 0 to at most");
}

}  // namespace
}  // namespace gar
