// On one switch the general evaluator and the evaluator of per-rank programs equal the closed forms, term by term, for
// every algorithm, every number of servers from 2 to 64, all ordered factorisations and several sizes.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/topology.hpp"
#include "support/terms.hpp"

namespace gar {
namespace {

struct Case {
  Plan plan;
  Terms (*closed)(const Plan& plan, double size_floats, const OneSwitch& p);
};

std::vector<std::int64_t> radices(const Plan& plan) {
  std::vector<std::int64_t> out;
  for (const Stage& stage : plan.subplans.back().stages) out.push_back(stage.radix);
  return out;
}

std::vector<Case> all_cases(std::int64_t n) {
  std::vector<Case> cases;
  cases.push_back({reduce_broadcast(n), [](const Plan& plan, double s, const OneSwitch& p) {
                     return closed_reduce_broadcast(plan.num_ranks, s, p);
                   }});
  cases.push_back(
      {ring(n), [](const Plan& plan, double s, const OneSwitch& p) { return closed_ring(plan.num_ranks, s, p); }});
  cases.push_back(
      {rhd(n), [](const Plan& plan, double s, const OneSwitch& p) { return closed_rhd(plan.num_ranks, s, p); }});
  cases.push_back(
      {cps(n), [](const Plan& plan, double s, const OneSwitch& p) { return closed_cps(plan.num_ranks, s, p); }});
  for (const auto& factors : ordered_factorisations(n)) {
    cases.push_back({hcps(n, factors),
                     [](const Plan& plan, double s, const OneSwitch& p) { return closed_hcps(radices(plan), s, p); }});
    cases.push_back({hierarchical_ring(n, factors), [](const Plan& plan, double s, const OneSwitch& p) {
                       return closed_hierarchical_ring(radices(plan), s, p);
                     }});
  }
  return cases;
}

constexpr double kSizes[] = {1, 1e3, 12345678, 1e9};

class OnOneSwitch : public ::testing::TestWithParam<IncastDegree> {};

TEST_P(OnOneSwitch, EvaluatorsEqualClosedForms) {
  std::size_t num_cases = 0;
  for (std::int64_t n = 2; n <= 64; ++n) {
    const Topology star = make_tree({n});
    const OneSwitch params = one_switch_params(star, GetParam());
    const ModelOptions options{ModelKind::kGenModel, GetParam()};
    for (const Case& c : all_cases(n)) {
      SCOPED_TRACE(c.plan.algorithm + " on " + star.name());
      const PricedPlan priced(c.plan, star, options);
      const PricedPlan programs(make_explicit(c.plan), star, options);
      for (const double size : kSizes) {
        const Terms closed = c.closed(c.plan, size, params);
        EXPECT_TRUE(test::terms_close(priced.cost(size), closed)) << size << " floats";
        EXPECT_TRUE(test::terms_close(programs.cost(size), closed)) << size << " floats, per-rank programs";
      }
      EXPECT_TRUE(test::terms_close(cost_of_programs(c.plan, star, 1e6, options), c.closed(c.plan, 1e6, params)));
      ++num_cases;
    }
  }
  // 63 sizes of 4 algorithms, and twice the sum of the numbers of ordered factorisations of 2..64.
  std::size_t factorisations = 0;
  for (std::int64_t n = 2; n <= 64; ++n) factorisations += ordered_factorisations(n).size();
  EXPECT_EQ(num_cases, 63 * 4 + 2 * factorisations);
}

// Without incast and memory access GenModel is the (alpha, beta, gamma) model.
TEST_P(OnOneSwitch, WithoutTheNewTermsGenModelIsAbc) {
  PaperParams without;
  without.server_link.epsilon = 0;
  without.server.delta = 0;
  for (std::int64_t n = 2; n <= 64; ++n) {
    const Topology star = make_tree({n}, without);
    const Topology full = make_tree({n});
    for (const Case& c : all_cases(n)) {
      SCOPED_TRACE(c.plan.algorithm + " on " + star.name());
      const Terms gen = PricedPlan(c.plan, star, {ModelKind::kGenModel, GetParam()}).cost(1e8);
      EXPECT_EQ(gen.delta, 0);
      EXPECT_EQ(gen.epsilon, 0);
      EXPECT_EQ(gen, PricedPlan(c.plan, star, {ModelKind::kAbc, GetParam()}).cost(1e8));
      EXPECT_EQ(gen, PricedPlan(c.plan, full, {ModelKind::kAbc, GetParam()}).cost(1e8));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Degrees, OnOneSwitch, ::testing::Values(IncastDegree::kSenders, IncastDegree::kParticipants));

}  // namespace
}  // namespace gar
