// On one switch the general evaluator and the evaluator of per-rank programs equal the closed forms, term by term, for
// every algorithm of the registry that has one, every number of servers from 2 to 64, all ordered factorisations and
// several sizes.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/topology.hpp"
#include "support/terms.hpp"

namespace gar {
namespace {

struct Case {
  AlgorithmSpec spec;
  Plan plan;
};

/// Every algorithm that has a closed form, with all factors for n servers.
std::vector<Case> all_cases(std::int64_t n) {
  std::vector<Case> cases;
  const auto add = [&](AlgorithmSpec spec) {
    if (!closed_form(spec, n, 1, {})) return;
    Plan plan = build_plan(spec, n);
    cases.push_back({std::move(spec), std::move(plan)});
  };
  for (const AlgorithmInfo& info : algorithms()) {
    const std::string name(info.name);
    if (info.parameters == AlgorithmParameters::kNone) add({name, {}, false});
    if (info.parameters != AlgorithmParameters::kFactors) continue;
    for (const auto& factors : ordered_factorisations(n)) add({name, factors, false});
    if (!info.folds) continue;
    for (const std::int64_t p : {n / 3, n / 2, n - 1}) {
      for (const auto& factors : ordered_factorisations(p, 10)) add({name, factors, false});
    }
  }
  return cases;
}

constexpr double kSizes[] = {1, 1e3, 12345678, 1e9};

class OnOneSwitch : public ::testing::TestWithParam<IncastDegree> {};

TEST_P(OnOneSwitch, EvaluatorsEqualClosedForms) {
  std::size_t num_cases = 0;
  for (std::int64_t n = 2; n <= 64; ++n) {
    PaperParams parameters;
    if (n % 3 > 0) parameters.server.mu = 1e-4 * static_cast<double>(n);
    const Topology star = make_tree({n}, parameters);
    const OneSwitch params = one_switch_params(star, GetParam());
    const ModelOptions options{ModelKind::kGenModel, GetParam()};
    for (const Case& c : all_cases(n)) {
      SCOPED_TRACE(c.plan.algorithm + " on " + star.name());
      const PricedPlan priced(c.plan, star, options);
      const PricedPlan programs(make_explicit(c.plan), star, options);
      for (const double size : kSizes) {
        const Terms closed = closed_form(c.spec, n, size, params).value();
        EXPECT_TRUE(test::terms_close(priced.cost(size), closed)) << size << " floats";
        EXPECT_TRUE(test::terms_close(programs.cost(size), closed)) << size << " floats, per-rank programs";
      }
      EXPECT_TRUE(
          test::terms_close(cost_of_programs(c.plan, star, 1e6, options), closed_form(c.spec, n, 1e6, params).value()));
      ++num_cases;
    }
  }
  // At least 63 sizes of 7 algorithms, and three times the sum of the numbers of ordered factorisations of 2..64.
  std::size_t factorisations = 0;
  for (std::int64_t n = 2; n <= 64; ++n) factorisations += ordered_factorisations(n).size();
  EXPECT_GE(num_cases, 63 * 7 + 3 * factorisations);
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

// The paper's model is GenModel on servers that handle messages for nothing, to the last digit.
TEST_P(OnOneSwitch, WithoutMuGenModelIsThePapers) {
  PaperParams with;
  with.server.mu = 1e-3;
  for (std::int64_t n = 2; n <= 64; ++n) {
    const Topology star = make_tree({n});
    const Topology full = make_tree({n}, with);
    for (const Case& c : all_cases(n)) {
      SCOPED_TRACE(c.plan.algorithm + " on " + star.name());
      const Terms gen = PricedPlan(c.plan, star, {ModelKind::kGenModel, GetParam()}).cost(1e8);
      EXPECT_EQ(gen.mu, 0);
      EXPECT_EQ(gen, PricedPlan(c.plan, full, {ModelKind::kPaper, GetParam()}).cost(1e8));
      Terms handled = PricedPlan(c.plan, full, {ModelKind::kGenModel, GetParam()}).cost(1e8);
      EXPECT_GT(handled.mu, 0);
      handled.mu = 0;
      EXPECT_EQ(gen, handled);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Degrees, OnOneSwitch, ::testing::Values(IncastDegree::kSenders, IncastDegree::kParticipants));

}  // namespace
}  // namespace gar
