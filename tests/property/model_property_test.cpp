// Properties of GenModel on seeded random trees: uneven, several levels, parameters over decades, every builder,
// groups that straddle switches.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/topology.hpp"
#include "support/naive_model.hpp"
#include "support/plans.hpp"
#include "support/random_topology.hpp"
#include "support/slow_build.hpp"
#include "support/terms.hpp"

namespace gar {
namespace {

constexpr double kTolerance = 1e-9;
constexpr double kSizes[] = {1, 1e5, 1e8};

Topology draw(std::mt19937_64& random, std::int64_t max_servers) {
  test::RandomTopologyOptions options;
  options.min_servers = 2;
  options.max_servers = max_servers;
  options.max_levels = 4;
  options.decades = 1.5;
  options.same_per_level = random() % 2 == 0;
  return test::random_topology(random, options);
}

std::string trace(std::uint64_t seed, const Plan& plan) {
  return "seed " + std::to_string(seed) + ", " + plan.algorithm + " on " + std::to_string(plan.num_ranks) + " servers";
}

// Calls check(topology, plan, options, seed) for every plan of every tree.
template <class Check>
void for_random_plans(std::uint64_t num_trees, std::int64_t max_servers, std::size_t most_per_kind, Check check) {
  for (std::uint64_t seed = 1; seed <= test::in_slow_build(num_trees / 6, num_trees); ++seed) {
    std::mt19937_64 random(seed);
    const Topology topology = draw(random, max_servers);
    const ModelOptions options{ModelKind::kGenModel,
                               seed % 2 == 0 ? IncastDegree::kSenders : IncastDegree::kParticipants};
    for (const Plan& plan : test::plans_of_all_builders(random, topology.num_servers(), most_per_kind)) {
      SCOPED_TRACE(trace(seed, plan));
      check(topology, plan, options);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(ModelProperty, ProgramsAgreeWithTheDefinition) {
  for_random_plans(300, 12, 2, [](const Topology& topology, const Plan& plan, const ModelOptions& options) {
    const test::NaiveModel naive(topology, options);
    for (const double size : {1e3, 1e8}) {
      EXPECT_TRUE(test::sums_close(cost_of_programs(plan, topology, size, options), naive.cost(plan, size)));
    }
    for (const ModelKind kind : {ModelKind::kPaper, ModelKind::kAbc}) {
      const ModelOptions other{kind, options.degree};
      EXPECT_TRUE(test::sums_close(cost_of_programs(plan, topology, 1e8, other),
                                   test::NaiveModel(topology, other).cost(plan, 1e8)));
    }
  });
}

// Sub-plans that do not wait for each other are never slower than all ranks in lockstep.
TEST(ModelProperty, CriticalPathIsAtMostLockstep) {
  for_random_plans(400, 40, 2, [](const Topology& topology, const Plan& plan, const ModelOptions& options) {
    const PricedPlan priced(plan, topology, options);
    const PricedPlan programs(make_explicit(plan), topology, options);
    for (const double size : kSizes) {
      EXPECT_LE(priced.cost(size).total(), programs.cost(size).total() * (1 + kTolerance)) << size << " floats";
    }
    EXPECT_EQ(priced.max_incast_excess(), programs.max_incast_excess());
  });
}

// With one stage there is nobody to wait for. Of several digits the groups wait for their own members only.
TEST(ModelProperty, OneStageEqualsItsPrograms) {
  for (std::uint64_t seed = 1; seed <= test::in_slow_build(50U, 300U); ++seed) {
    std::mt19937_64 random(seed);
    const Topology topology = draw(random, 48);
    const ModelOptions options{ModelKind::kGenModel,
                               seed % 2 == 0 ? IncastDegree::kSenders : IncastDegree::kParticipants};
    std::vector<Plan> plans = test::flat_digit_plans(random, topology.num_servers(), 4);
    plans.push_back(reduce_broadcast(topology.num_servers()));
    for (const Plan& plan : plans) {
      SCOPED_TRACE(trace(seed, plan));
      const PricedPlan priced(plan, topology, options);
      const PricedPlan programs(make_explicit(plan), topology, options);
      const std::vector<Stage>& stages = plan.subplans[static_cast<std::size_t>(plan.root)].stages;
      for (const double size : kSizes) {
        if (stages.size() == 1) {
          EXPECT_TRUE(test::sums_close(priced.cost(size), programs.cost(size)));
        } else {
          EXPECT_LE(priced.cost(size).total(), programs.cost(size).total() * (1 + kTolerance)) << size << " floats";
        }
      }
    }
    ASSERT_FALSE(HasFailure());
  }
}

// In lockstep every term is bounded: steps follow one another, so the longest walk, the strongest cut and the
// calculation of Theorem 1 all lie on the way. Sub-plans that run side by side may pay them in different branches, so
// the critical path alone need not reach each of the three; its total does, for the plans of all builders.
TEST(ModelProperty, NothingBeatsTheLowerBounds) {
  for_random_plans(300, 32, 3, [](const Topology& topology, const Plan& plan, const ModelOptions& options) {
    const PricedPlan priced(plan, topology, options);
    const PricedPlan programs(make_explicit(plan), topology, options);
    for (const double size : kSizes) {
      const LowerBound bound = lower_bound(topology, size);
      const Terms lockstep = programs.cost(size);
      EXPECT_GE(lockstep.alpha * (1 + kTolerance), bound.alpha);
      EXPECT_GE((lockstep.beta + lockstep.epsilon) * (1 + kTolerance), bound.bandwidth) << bound.cut;
      EXPECT_GE((lockstep.gamma + lockstep.delta) * (1 + kTolerance), bound.calculation);
      EXPECT_GE(lockstep.total() * (1 + kTolerance), bound.sequential_seconds());
      EXPECT_GE(priced.cost(size).total() * (1 + kTolerance), bound.sequential_seconds()) << bound.cut;
    }
  });
}

// A sub-plan's seconds are linear in the size; a maximum of such sums is convex and never falls.
TEST(ModelProperty, CostIsConvexAndNeverFalls) {
  for_random_plans(300, 48, 2, [](const Topology& topology, const Plan& plan, const ModelOptions& options) {
    const PricedPlan priced(plan, topology, options);
    double last = priced.cost(0).total();
    double last_slope = 0;
    EXPECT_EQ(priced.cost(0).beta + priced.cost(0).gamma + priced.cost(0).delta + priced.cost(0).epsilon, 0);
    double last_size = 0;
    for (double size = 1; size <= 1e10; size *= 10) {
      const double now = priced.cost(size).total();
      EXPECT_GE(now, last);
      const double slope = (now - last) / (size - last_size);
      EXPECT_GE(slope, last_slope - 1e-12 * now / (size - last_size)) << size << " floats";
      last = now;
      last_slope = slope;
      last_size = size;
    }
  });
}

// The stages that are named are the stages that are paid.
TEST(ModelProperty, CriticalStagesAddUp) {
  for_random_plans(100, 32, 2, [](const Topology& topology, const Plan& plan, const ModelOptions& options) {
    const PricedPlan priced(plan, topology, options);
    for (const double size : kSizes) {
      Terms sum;
      bool in_gather = false;
      for (const StageCost& stage : priced.critical_stages(size)) {
        EXPECT_TRUE(stage.is_gather || !in_gather) << "ReduceScatter stages come first";
        in_gather = stage.is_gather;
        EXPECT_FALSE(stage.label.empty());
        sum += stage.at(size);
      }
      EXPECT_TRUE(test::terms_close(sum, priced.cost(size)));
    }
  });
}

}  // namespace
}  // namespace gar
