// Every mutation of a correct plan that changes the result, or leaves a message without its partner, is caught; those
// that change nothing are accepted. The judge is a naive run on contribution counts.
#include <gtest/gtest.h>

#include <map>

#include "gar/algorithms.hpp"
#include "gar/verify.hpp"
#include "support/mutate.hpp"
#include "support/naive_run.hpp"
#include "support/plans.hpp"

namespace gar {
namespace {

using test::Outcome;

std::vector<Plan> correct_plans() {
  std::vector<Plan> plans;
  for (const std::int64_t n : {2, 3, 5, 6, 8, 12}) {
    for (const Plan& plan :
         {ring(n), rhd(n), cps(n), reduce_broadcast(n), gather(n), recursive_doubling(n), binomial(n)}) {
      plans.push_back(plan);
    }
  }
  for (const Plan& plan :
       {hcps(6, {3, 2}), hcps(8, {2, 2, 2}), hcps(12, {4, 3}), hierarchical_ring(6, {2, 3}),
        hierarchical_ring(12, {3, 2, 2}), uneven_hcps(5, {3, 2}), uneven_hcps(7, {4, 2}), uneven_hcps(11, {4, 3}),
        acps({3, 2}), acps({4, 1, 3}), acps({5, 5, 2}), recursive_multiplying(9, {3, 3}),
        recursive_multiplying(11, {2, 3}), test::with_exchanges(hcps(12, {4, 3}), 1), test::with_exchanges(rhd(7), 1)})
    plans.push_back(plan);
  const std::size_t num_allreduce = plans.size();
  for (std::size_t i = 0; i < num_allreduce; ++i) {
    if (plans[i].num_ranks > 8 || !has_halves(plans[i])) continue;
    plans.push_back(as_reduce_scatter(plans[i]));
    plans.push_back(as_all_gather(plans[i]));
  }
  for (Plan& plan : plans) plan = make_explicit(plan);
  return plans;
}

TEST(Mutation, EveryChangeOfTheResultIsCaught) {
  constexpr int kChanges = 10'000;  // mutations that change the result or leave a message alone
  const std::vector<Plan> plans = correct_plans();
  for (const Plan& plan : plans) {
    ASSERT_EQ(test::naive_outcome(plan), Outcome::kRight) << plan.algorithm << " on " << plan.num_ranks;
    ASSERT_TRUE(verify(plan).ok) << plan.algorithm << " on " << plan.num_ranks << ": " << verify(plan).problem;
  }
  std::map<Outcome, int> seen;
  for (std::uint64_t i = 0; static_cast<int>(i) < kChanges + seen[Outcome::kRight]; ++i) {
    const std::uint64_t seed = i + 20'240'600;
    const Plan& plan = plans[i % plans.size()];
    const test::Mutation mutation = test::Mutator(seed).mutate(plan);
    const Outcome outcome = test::naive_outcome(mutation.plan);
    const VerifyReport report = verify(mutation.plan);
    ++seen[outcome];
    ASSERT_EQ(report.ok, outcome == Outcome::kRight)
        << "seed " << seed << ", " << plan.algorithm << " on " << plan.num_ranks << " ranks, " << mutation.what << "; "
        << report.problem;
    const VerifyReport by_chance = verify(mutation.plan, {.kind = ProofKind::kFingerprints, .seed = std::nullopt});
    ASSERT_EQ(by_chance.ok, report.ok) << "seed " << seed;
    ASSERT_EQ(report.problem.empty(), report.ok) << "seed " << seed;
    ASSERT_EQ(report.problem.find("do not match their receives"), std::string::npos) << "seed " << seed;
  }
  for (const Outcome outcome : {Outcome::kRight, Outcome::kWrongResult, Outcome::kUnmatched, Outcome::kAmbiguous})
    EXPECT_GT(seen[outcome], 20) << static_cast<int>(outcome);
}

}  // namespace
}  // namespace gar
