// With a barrier after every step, what a plan takes on one switch is what the closed forms say, term by term, in both
// engines: every algorithm, every number of servers from 2 to 64, ordered factorisations, random parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"
#include "support/slow_build.hpp"
#include "support/terms.hpp"

namespace gar {
namespace {

constexpr double kTolerance = 1e-9;
constexpr std::int64_t kMostServers = 64;
constexpr std::size_t kMostFactorisations = test::in_slow_build<std::size_t>(1, 1000);  // of one number

struct Case {
  Plan plan;
  Terms closed;
};

std::vector<Case> all_cases(std::int64_t n, double size, const OneSwitch& p) {
  std::vector<Case> cases{
      {ring(n), closed_ring(n, size, p)},        {rhd(n), closed_rhd(n, size, p)},
      {cps(n), closed_cps(n, size, p)},          {reduce_broadcast(n), closed_reduce_broadcast(n, size, p)},
      {gather(n), closed_gather(n, size, p)},    {recursive_doubling(n), closed_recursive_doubling(n, size, p)},
      {binomial(n), closed_binomial(n, size, p)}};
  for (const auto& f : ordered_factorisations(n, kMostFactorisations)) {
    cases.push_back({hcps(n, f), closed_hcps(f, size, p)});
  }
  if (const auto some = ordered_factorisations(n, 3); some.size() > 1) {
    cases.push_back({hierarchical_ring(n, some[1]), closed_hierarchical_ring(some[1], size, p)});
    cases.push_back({recursive_multiplying(n, some[1]), closed_recursive_multiplying(n, some[1], size, p)});
  }
  return cases;
}

double log_uniform(std::mt19937_64& random, double low, double high) {
  const double u = static_cast<double>(random() >> 11) * 0x1.0p-53;
  return low * std::pow(high / low, u);
}

Topology random_star(std::mt19937_64& random, std::int64_t n, bool with_incast) {
  PaperParams p;
  p.alpha = log_uniform(random, 1e-4, 1e-1);
  p.server_link.beta = log_uniform(random, 1e-10, 1e-8);
  p.server_link.epsilon = with_incast ? log_uniform(random, 1e-11, 1e-8) : 0;
  p.server_link.incast_threshold = static_cast<double>(random() % 12);
  p.server = {log_uniform(random, 1e-11, 1e-8), log_uniform(random, 1e-11, 1e-8)};
  if (random() % 4 > 0) p.server.mu = log_uniform(random, 1e-6, 1e-1);
  return make_tree({n}, p);
}

struct Setting {
  const char* name;
  SimulationEngine engine;
  IncastDegree degree;
  bool with_incast;
  ModelKind model = ModelKind::kGenModel;
};

// Times are sums of all terms, so that their rounding sets a limit to small terms.
void expect_same_terms(const Simulation& s, const Terms& closed) {
  const auto expect_same = [&](double Terms::*term, const char* name) {
    EXPECT_NEAR(s.terms.*term, closed.*term, kTolerance * closed.*term + 1e-12 * s.seconds) << name;
  };
  expect_same(&Terms::alpha, "alpha");
  expect_same(&Terms::beta, "beta");
  expect_same(&Terms::gamma, "gamma");
  expect_same(&Terms::delta, "delta");
  expect_same(&Terms::epsilon, "epsilon");
  expect_same(&Terms::mu, "mu");
}

class BarrierOnOneSwitch : public ::testing::TestWithParam<Setting> {};

TEST_P(BarrierOnOneSwitch, EqualsTheClosedForms) {
  const Setting& setting = GetParam();
  std::mt19937_64 random(20);
  SimulationOptions options;
  options.barrier = true;
  options.engine = setting.engine;
  options.degree = setting.degree;
  options.model = setting.model;
  for (std::int64_t n = 2; n <= kMostServers; ++n) {
    const Topology star = random_star(random, n, setting.with_incast);
    const double size = std::floor(log_uniform(random, 1e3, 1e9));
    OneSwitch params = one_switch_params(star, setting.degree);
    if (setting.model == ModelKind::kAbc) params.epsilon = params.delta = 0;
    if (setting.model != ModelKind::kGenModel) params.mu = 0;
    for (const Case& c : all_cases(n, size, params)) {
      SCOPED_TRACE(c.plan.algorithm + " on " + std::to_string(n) + " servers, " + std::to_string(size) + " floats");
      const Simulation s = simulate(c.plan, star, size, options);
      EXPECT_TRUE(s.is_complete);
      EXPECT_TRUE(test::is_close(s.seconds, c.closed.total(), kTolerance)) << s.seconds << " " << c.closed.total();
      expect_same_terms(s, c.closed);
      EXPECT_EQ(s.engine, setting.engine);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Engines, BarrierOnOneSwitch,
    ::testing::Values(Setting{"flows", SimulationEngine::kFlows, IncastDegree::kSenders, true},
                      Setting{"flows_without_incast", SimulationEngine::kFlows, IncastDegree::kSenders, false},
                      Setting{"flows_participants", SimulationEngine::kFlows, IncastDegree::kParticipants, true},
                      Setting{"flows_abc", SimulationEngine::kFlows, IncastDegree::kSenders, true, ModelKind::kAbc},
                      Setting{"classes", SimulationEngine::kClasses, IncastDegree::kSenders, true},
                      Setting{"classes_without_incast", SimulationEngine::kClasses, IncastDegree::kSenders, false},
                      Setting{"classes_participants", SimulationEngine::kClasses, IncastDegree::kParticipants, true},
                      Setting{"classes_abc", SimulationEngine::kClasses, IncastDegree::kSenders, true,
                              ModelKind::kAbc}),
    [](const auto& tested) { return std::string(tested.param.name); });

// Where all ranks do the same a barrier changes nothing, and equal steps that are taken once add up to the same.
TEST(WithoutBarrier, RingsEqualTheClosedForms) {
  std::mt19937_64 random(22);
  for (std::int64_t n = 2; n <= kMostServers; ++n) {
    const Topology star = random_star(random, n, true);
    const double size = std::floor(log_uniform(random, 1e3, 1e9));
    const OneSwitch params = one_switch_params(star);
    std::vector<Case> cases{{ring(n), closed_ring(n, size, params)}};
    for (const auto& f : ordered_factorisations(n, 3)) {
      cases.push_back({hierarchical_ring(n, f), closed_hierarchical_ring(f, size, params)});
    }
    for (const Case& c : cases) {
      SCOPED_TRACE(c.plan.algorithm + " on " + std::to_string(n) + " servers, " + std::to_string(size) + " floats");
      SimulationOptions options;
      options.keep_path = false;
      options.engine = SimulationEngine::kFlows;
      const Simulation flows = simulate(c.plan, star, size, options);
      options.engine = SimulationEngine::kClasses;
      const Simulation classes = simulate(c.plan, star, size, options);
      for (const Simulation* s : {&flows, &classes}) {
        EXPECT_TRUE(test::is_close(s->seconds, c.closed.total(), kTolerance)) << s->seconds << " " << c.closed.total();
        expect_same_terms(*s, c.closed);
        EXPECT_EQ(s->flows_done, s->flows);
      }
      EXPECT_EQ(classes.flows, flows.flows);
      ASSERT_FALSE(classes.links.empty());
      EXPECT_TRUE(test::is_close(classes.links[0].floats, flows.links[0].floats, kTolerance));
      EXPECT_NEAR(classes.links[0].busy_seconds, flows.links[0].busy_seconds, 1e-12 * flows.seconds);
      ASSERT_EQ(classes.stages.size(), flows.stages.size());
      for (std::size_t i = 0; i < flows.stages.size(); ++i) {
        EXPECT_NEAR(classes.stages[i].begin, flows.stages[i].begin, kTolerance * flows.seconds);
        EXPECT_NEAR(classes.stages[i].end, flows.stages[i].end, kTolerance * flows.seconds);
        EXPECT_NEAR(classes.stages[i].busy_seconds, flows.stages[i].busy_seconds, kTolerance * flows.seconds);
      }
      if (n >= 8 && c.plan.algorithm == "ring") {
        EXPECT_GT(classes.memoised_steps, 0);
      }
    }
  }
}

// Chunks follow one another behind the barrier, each of them as if it were alone.
TEST(Barrier, ChunksComeOneByOne) {
  std::mt19937_64 random(21);
  for (const SimulationEngine engine : {SimulationEngine::kFlows, SimulationEngine::kClasses}) {
    for (std::int64_t n = 2; n <= 20; n += 3) {
      const Topology star = random_star(random, n, true);
      for (Plan plan : {ring(n), cps(n), rhd(n), gather(n), recursive_doubling(n)}) {
        SCOPED_TRACE(plan.algorithm + " on " + std::to_string(n) + " servers");
        SimulationOptions options;
        options.barrier = true;
        options.engine = engine;
        const double one = simulate(plan, star, 1e6, options).seconds;
        plan.num_chunks = 5;
        EXPECT_TRUE(test::is_close(simulate(plan, star, 5e6, options).seconds, 5 * one, kTolerance));
      }
    }
  }
}

}  // namespace
}  // namespace gar
