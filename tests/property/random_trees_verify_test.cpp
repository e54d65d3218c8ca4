// Every builder, on 1,000 seeded random trees: the plans that fit a tree are right, and have a price on it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/topology.hpp"
#include "gar/verify.hpp"
#include "support/plans.hpp"
#include "support/random_topology.hpp"

namespace gar {
namespace {

// Servers below each child of the first switch that has several.
test::Factors servers_per_child(const Topology& topology) {
  NodeId id = topology.root();
  while (topology.num_children(id) == 1) id = topology.node(id).children[0].node;
  test::Factors sizes;
  for (const ChildRun& run : topology.node(id).children) {
    sizes.insert(sizes.end(), static_cast<std::size_t>(run.count), topology.num_servers(run.node));
  }
  return sizes.empty() ? test::Factors{1} : sizes;
}

TEST(RandomTrees, EveryBuilderVerifiesAndHasAPrice) {
  std::int64_t num_plans = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    std::mt19937_64 random(seed);
    test::RandomTopologyOptions options;
    options.max_servers = seed % 50 == 0 ? 150 : 48;
    options.decades = 1;
    options.same_per_level = seed % 2 == 0;
    const Topology topology = test::random_topology(random, options);
    const std::int64_t n = topology.num_servers();
    std::vector<Plan> plans = test::plans_of_all_builders(random, n, 1);
    plans.push_back(acps(servers_per_child(topology)));
    for (const Plan& plan : plans) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + plan.algorithm + " on " + std::to_string(n) + " servers");
      const VerifyReport report = verify(plan);
      ASSERT_TRUE(report.ok) << report.problem;
      const PricedPlan priced(plan, topology);
      const double seconds = priced.cost(1e8).total();
      ASSERT_TRUE(std::isfinite(seconds));
      ASSERT_EQ(seconds > 0, n > 1);
      ++num_plans;
    }
  }
  EXPECT_GE(num_plans, 8000);
}

}  // namespace
}  // namespace gar
