// The verifier on plans that are small enough to draw.
#include "gar/verify.hpp"

#include <gtest/gtest.h>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "support/explicit_plan.hpp"

namespace gar {
namespace {

using test::add_receive;
using test::add_send;
using test::add_transfer;
using test::idle_plan;
using test::plan_of;
using test::step_of;
using test::Transfer;

constexpr bool kAdd = true;
constexpr bool kReplace = false;

// Two ranks, two halves, 200 elements:
//
//   step 0    rank 0 --[1,2)--> rank 1    rank 1 --[0,1)--> rank 0     each adds what it gets
//   step 1    rank 0 --[0,1)--> rank 1    rank 1 --[1,2)--> rank 0     each replaces what it had
std::vector<Transfer> exchange() {
  return {{0, 0, 1, 1, 2, kAdd}, {0, 1, 0, 0, 1, kAdd}, {1, 0, 1, 0, 1, kReplace}, {1, 1, 0, 1, 2, kReplace}};
}

std::string problem_of(const Plan& plan) {
  const VerifyReport report = verify(plan);
  EXPECT_EQ(report.ok, report.problem.empty());
  return report.problem;
}

TEST(Verify, OneRankNeedsNothing) {
  Plan plan;
  EXPECT_TRUE(verify(plan).ok);
  EXPECT_EQ(verify(plan).num_messages, 0);
  EXPECT_TRUE(verify(idle_plan(1, 5)).ok);
  plan.collective = Collective::kAllGather;
  EXPECT_TRUE(verify(plan).ok);
}

TEST(Verify, ExchangeIsRightAndMeasured) {
  const VerifyReport report = verify(plan_of(2, 2, exchange()));
  EXPECT_TRUE(report.ok) << report.problem;
  EXPECT_EQ(report.num_steps, 2);
  EXPECT_EQ(report.num_messages, 4);
  EXPECT_EQ(report.volume_units, 4);
  EXPECT_EQ(report.max_fan_in, 2);
  EXPECT_EQ(report.buffer_units, 1);
}

// Both send out of the state before the step, so that both end with the sum:
//
//   step 0    rank 0 ==[0,1)==> rank 1,  rank 1 ==[0,1)==> rank 0, both add
TEST(Verify, SendsTakeTheStateBeforeTheStep) {
  const VerifyReport report = verify(plan_of(2, 1, {{0, 0, 1, 0, 1, kAdd}, {0, 1, 0, 0, 1, kAdd}}));
  EXPECT_TRUE(report.ok) << report.problem;
}

//   CPS on 4: rank r adds 3 blocks to its own at once: fan-in 4, buffer 3 of 4 units; 3 * 4 messages per half
TEST(Verify, FiguresOfCoLocatedPs) {
  const VerifyReport report = verify(cps(4));
  EXPECT_TRUE(report.ok) << report.problem;
  EXPECT_EQ(report.num_steps, 2);
  EXPECT_EQ(report.num_messages, 24);
  EXPECT_EQ(report.volume_units, 24);
  EXPECT_EQ(report.max_fan_in, 4);
  EXPECT_EQ(report.buffer_units, 3);
}

// Partly overlapping receives, as Asymmetric CPS has them: rank 0 becomes the sum of all.
//
//   units     0   1   2   3
//   rank 1    [-------)             1 and 2 hold [0,2) of two halves, 3 holds [0,3)
//   rank 2            [---)
//   rank 3    [-----------)
TEST(Verify, OverlappingReceives) {
  std::vector<Transfer> transfers = {
      {0, 2, 1, 0, 2, kAdd},      // rank 1 holds 1+2 in [0,2)
      {0, 1, 2, 2, 3, kAdd},      // rank 2 holds 1+2 in [2,3)
      {1, 1, 0, 0, 2, kAdd},      // fan-in 3 everywhere
      {1, 2, 0, 2, 3, kAdd},      //
      {1, 3, 0, 0, 3, kAdd},      //
      {2, 0, 1, 0, 3, kReplace},  //
      {2, 0, 2, 0, 3, kReplace},  //
      {2, 0, 3, 0, 3, kReplace},
  };
  const VerifyReport report = verify(plan_of(4, 3, transfers));
  EXPECT_TRUE(report.ok) << report.problem;
  EXPECT_EQ(report.max_fan_in, 3);
  EXPECT_EQ(report.buffer_units, 6);
  EXPECT_EQ(report.buffer_rank, 0);
}

// The exchange without the first arrow of step 0: rank 1 has only its own second half, and gives it to rank 0.
TEST(Verify, MissingContribution) {
  auto transfers = exchange();
  transfers.erase(transfers.begin());
  EXPECT_EQ(problem_of(plan_of(2, 2, transfers, 200)),
            "rank 0, elements [100,200): contribution of rank 0 missing after step 1");
  EXPECT_EQ(problem_of(plan_of(2, 2, transfers)),
            "rank 0, units [1,2) of 2: contribution of rank 0 missing after step 1");
}

TEST(Verify, NothingHappens) {
  EXPECT_EQ(problem_of(idle_plan(3, 6)),
            "rank 0, the whole vector: contribution of rank 1 missing; rank 0 never receives anything there");
}

//   step 0    rank 0 --> rank 1, which adds
//   step 1    rank 1 --> rank 0, which adds although rank 1's value has its own in it
TEST(Verify, CountedTwice) {
  EXPECT_EQ(problem_of(plan_of(2, 1, {{0, 0, 1, 0, 1, kAdd}, {1, 1, 0, 0, 1, kAdd}})),
            "rank 0, the whole vector: contribution of rank 0 counted twice; rank 0 adds it up in step 1 from its own "
            "value and rank 1");
}

//   step 0    rank 0 --> rank 1 twice; step 1 rank 1 --> rank 0. Followed back to step 0.
TEST(Verify, CountedTwiceIsFollowedToItsOrigin) {
  EXPECT_EQ(
      problem_of(plan_of(2, 1, {{0, 0, 1, 0, 1, kAdd}, {0, 0, 1, 0, 1, kAdd}, {1, 1, 0, 0, 1, kReplace}})),
      "rank 0, the whole vector: contribution of rank 0 counted twice; rank 1 adds it up in step 0 from rank 0 and "
      "rank 0 again");
}

// 62 exchanges of everything: both ranks end with 2^61 (x_0 + x_1), and 2^61 = 1 modulo 2^61 - 1. Only the exact counts
// see that.
TEST(Verify, ManyDoublingsDoNotVanishModuloThePrime) {
  std::vector<Transfer> transfers;
  for (std::int64_t step = 0; step < 62; ++step) {
    transfers.push_back({step, 0, 1, 0, 1, kAdd});
    transfers.push_back({step, 1, 0, 0, 1, kAdd});
  }
  EXPECT_NE(problem_of(plan_of(2, 1, transfers)).find("contribution of rank 0 counted 2305843009213693952 times"),
            std::string::npos)
      << problem_of(plan_of(2, 1, transfers));
}

TEST(Verify, ReceiveWithoutSend) {
  Plan plan = plan_of(2, 2, exchange(), 200);
  step_of(plan, 1, 1).sends.clear();
  EXPECT_EQ(problem_of(plan),
            "step 1: rank 0 waits for elements [100,200) from rank 1, which sends it nothing in that step");
  add_send(plan, {1, 1, 0, 0, 1});
  EXPECT_EQ(
      problem_of(plan),
      "step 1: rank 0 waits for elements [100,200) from rank 1, which sends it only elements [0,100) in that step");
}

TEST(Verify, SendWithoutReceive) {
  Plan plan = plan_of(3, 2, {});
  add_send(plan, {4, 2, 0, 0, 1});
  EXPECT_EQ(problem_of(plan), "step 4: rank 2 sends units [0,1) of 2 to rank 0, which expects nothing in that step");
}

TEST(Verify, RepeatedMessageIsCounted) {
  Plan plan = plan_of(2, 2, exchange());
  add_receive(plan, {0, 0, 1, 1, 2, kAdd});
  EXPECT_EQ(problem_of(plan),
            "step 0: rank 1 waits 2 times for units [1,2) of 2 from rank 0, which sends it only once in that step");
}

// The same message in step 0 on one side and in step 1 on the other: they would wait for each other.
TEST(Verify, MessageInDifferentSteps) {
  Plan plan = plan_of(2, 1, {});
  add_send(plan, {0, 0, 1, 0, 1});
  add_receive(plan, {1, 0, 1, 0, 1, kAdd});
  EXPECT_EQ(problem_of(plan), "step 0: rank 0 sends the whole vector to rank 1, which expects nothing in that step");
}

TEST(Verify, BadMessages) {
  const auto with = [](const Message& m) {
    Plan plan = idle_plan(3, 4);
    step_of(plan, 1, 7).sends.push_back(m);
    return problem_of(plan);
  };
  EXPECT_EQ(with({1, false, 0, 1}), "rank 1: step 7: sends to rank 1, which is itself");
  EXPECT_EQ(with({3, false, 0, 1}), "rank 1: step 7: sends to rank 3; there are ranks 0 to 2");
  EXPECT_EQ(with({-1, false, 0, 1}), "rank 1: step 7: sends to rank -1; there are ranks 0 to 2");
  EXPECT_EQ(with({0, false, 2, 2}), "rank 1: step 7: sends to rank 0 the empty interval of units [2,2)");
  EXPECT_EQ(with({0, false, 3, 2}), "rank 1: step 7: sends to rank 0 units [3,2); the vector has units [0,4)");
  EXPECT_EQ(with({0, false, -1, 2}), "rank 1: step 7: sends to rank 0 units [-1,2); the vector has units [0,4)");
  EXPECT_EQ(with({0, false, 0, 5}), "rank 1: step 7: sends to rank 0 units [0,5); the vector has units [0,4)");
  Plan plan = idle_plan(3, 4);
  step_of(plan, 2, 0).recvs = {{9, true, 0, 1}};
  EXPECT_EQ(problem_of(plan), "rank 2: step 0: receives from rank 9; there are ranks 0 to 2");
}

TEST(Verify, StepNumbersMustAscend) {
  Plan plan = plan_of(2, 2, exchange());
  std::swap(plan.programs[1].steps[0], plan.programs[1].steps[1]);
  EXPECT_EQ(problem_of(plan), "rank 1: step 0 comes after step 1; step numbers must ascend");
  plan.programs[1].steps[1].number = 1;
  EXPECT_EQ(problem_of(plan), "rank 1: step 1 comes after step 1; step numbers must ascend");
  plan.programs[0].steps[0].number = -1;
  EXPECT_EQ(problem_of(plan), "rank 0: step number -1; expected from 0");
}

TEST(Verify, MessagesMustBeSorted) {
  Plan plan = plan_of(3, 2, {{0, 0, 1, 0, 1, kAdd}, {0, 0, 2, 0, 1, kAdd}});
  std::swap(plan.programs[0].steps[0].sends[0], plan.programs[0].steps[0].sends[1]);
  EXPECT_EQ(problem_of(plan), "rank 0: step 0: sends are not sorted by (peer, begin, end)");
}

TEST(Verify, ReceivesMustAgreeOnAccumulate) {
  const Plan plan = plan_of(3, 4, {{0, 0, 2, 0, 3, kAdd}, {0, 1, 2, 2, 4, kReplace}}, 400);
  EXPECT_EQ(problem_of(plan),
            "rank 2: step 0: elements [200,300) from rank 0 are added to its own value (accumulate), from rank 1 they "
            "replace it; receives of one step that cover the same element must agree");
  // Disjoint receives need not agree.
  EXPECT_EQ(problem_of(plan_of(2, 2, {{0, 1, 0, 0, 1, kAdd}, {0, 1, 0, 1, 2, kReplace}}, 2)),
            "rank 0, elements [1,2): contribution of rank 0 missing after step 0");
}

// ReduceScatter: only the own block counts; the exchange's first step is one.
TEST(Verify, ReduceScatter) {
  Plan plan = plan_of(2, 2, {{0, 0, 1, 1, 2, kAdd}, {0, 1, 0, 0, 1, kAdd}});
  plan.collective = Collective::kReduceScatter;
  EXPECT_TRUE(verify(plan).ok) << verify(plan).problem;
  plan = plan_of(2, 2, {{0, 0, 1, 0, 1, kAdd}, {0, 1, 0, 1, 2, kAdd}});  // into the wrong blocks
  plan.collective = Collective::kReduceScatter;
  EXPECT_EQ(problem_of(plan),
            "rank 0, units [0,1) of 2: contribution of rank 1 missing; rank 0 never receives anything there");
}

// AllGather: rank r starts with block r only; the exchange's second step is one.
TEST(Verify, AllGather) {
  Plan plan = plan_of(2, 2, {{0, 0, 1, 0, 1, kReplace}, {0, 1, 0, 1, 2, kReplace}});
  plan.collective = Collective::kAllGather;
  EXPECT_TRUE(verify(plan).ok) << verify(plan).problem;
  plan = plan_of(2, 2, {{0, 0, 1, 0, 1, kAdd}, {0, 1, 0, 1, 2, kReplace}});
  plan.collective = Collective::kAllGather;
  EXPECT_EQ(
      problem_of(plan),
      "rank 1, units [0,1) of 2: must be the block of rank 0, but what rank 1 has there was mixed in after step 0");
}

TEST(Verify, HalvesNeedEqualBlocks) {
  Plan plan = idle_plan(2, 3);
  plan.collective = Collective::kReduceScatter;
  EXPECT_THROW(static_cast<void>(verify(plan)), PlanError);
}

TEST(Verify, MalformedPlans) {
  Plan plan = idle_plan(2, 3);
  plan.num_ranks = 3;
  EXPECT_THROW(static_cast<void>(verify(plan)), PlanError);
  plan = idle_plan(2, 0);
  EXPECT_THROW(static_cast<void>(verify(plan)), PlanError);
  plan = Plan{};
  plan.num_ranks = 2;  // nothing says what they do
  EXPECT_THROW(static_cast<void>(verify(plan)), PlanError);
}

//   HCPS 2x2: halves between neighbours, then quarters between pairs; the larger buffer is the first step's
TEST(Verify, FiguresOfHierarchicalCps) {
  const VerifyReport report = verify(hcps(4, {2, 2}));
  EXPECT_TRUE(report.ok) << report.problem;
  EXPECT_EQ(report.num_steps, 4);
  EXPECT_EQ(report.max_fan_in, 2);
  EXPECT_EQ(report.buffer_units, 2);
}

TEST(Verify, ManyRanksInBatchesOfColumns) {
  EXPECT_TRUE(verify(cps(1024)).ok);
  EXPECT_TRUE(verify(hcps(1024, {32, 32})).ok);
  Plan plan = make_explicit(hcps(256, {16, 16}));
  auto& recvs = plan.programs[200].steps.back().recvs;
  recvs.back().accumulate = true;
  EXPECT_NE(problem_of(plan).find("rank 200, units"), std::string::npos) << problem_of(plan);
  EXPECT_NE(problem_of(plan).find("contribution of rank 200 counted twice"), std::string::npos) << problem_of(plan);
}

TEST(Describe, ElementsUnitsOrTheWholeVector) {
  Plan plan;
  plan.num_units = 8;
  EXPECT_EQ(describe(plan, {2, 4}), "units [2,4) of 8");
  EXPECT_EQ(describe(plan, {0, 8}), "the whole vector");
  plan.count = 800;
  EXPECT_EQ(describe(plan, {2, 4}), "elements [200,400)");
  EXPECT_EQ(describe(plan, {0, 8}), "elements [0,800)");
  plan.count = 2;  // unit 2 to 3 holds no element
  EXPECT_EQ(describe(plan, {2, 3}), "units [2,3) of 8");
}

}  // namespace
}  // namespace gar
