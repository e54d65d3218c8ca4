// Algorithm 1: which server holds which block before and after every switch.
#include "gar/basic_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gar/errors.hpp"
#include "support/random_topology.hpp"

namespace gar {
namespace {

// Racks of the given sizes below one root; a size of 1 is a server of the root's own.
Topology racks(const std::vector<std::int64_t>& sizes) {
  std::vector<Node> nodes{{"server", 1, {}, {}, {}}};
  Node root{"root", 1, {}, {}, {}};
  for (const std::int64_t size : sizes) {
    if (size == 1) {
      root.children.push_back({0, 1});
      continue;
    }
    nodes.push_back({"rack", 1, {}, {}, {{0, size}}});
    root.children.push_back({static_cast<NodeId>(nodes.size()) - 1, 1});
  }
  nodes.push_back(root);
  return Topology("racks", nodes, static_cast<NodeId>(nodes.size()) - 1);
}

void expect_partition(const BlockPlacement& place, std::int64_t num_blocks) {
  std::vector<int> times(static_cast<std::size_t>(num_blocks), 0);
  for (const auto& blocks : place) {
    for (const std::int32_t b : blocks) ++times[static_cast<std::size_t>(b)];
  }
  EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](int t) { return t == 1; }));
}

void expect_kept_not_moved(const BasicSubPlan& plan) {
  ASSERT_EQ(plan.initial_place.size(), plan.final_place.size());
  for (std::size_t s = 0; s < plan.final_place.size(); ++s) {
    const auto& held = plan.initial_place[s];
    for (const std::int32_t b : plan.final_place[s]) {
      EXPECT_NE(std::find(held.begin(), held.end(), b), held.end()) << "server " << s << ", block " << b;
    }
  }
}

//        root
//      /      \.
//   rack0    rack1
//   0 1 2    3 4 5
TEST(BasicPlan, ThreeAndThree) {
  const auto plans = generate_basic_plan(racks({3, 3}));
  ASSERT_EQ(plans.size(), 3U);
  EXPECT_EQ(plans[0].name, "rack0");
  EXPECT_EQ(plans[1].name, "rack1");
  EXPECT_EQ(plans[1].first_rank, 3);
  EXPECT_EQ(plans[2].name, "root");
  const BlockPlacement rack{{0, 1}, {2, 3}, {4, 5}};
  EXPECT_EQ(plans[0].final_place, rack);
  EXPECT_EQ(plans[1].final_place, rack);
  EXPECT_EQ(plans[0].initial_place, BlockPlacement(3, {0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(plans[2].initial_place, (BlockPlacement{{0, 1}, {2, 3}, {4, 5}, {0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(plans[2].final_place, (BlockPlacement{{0}, {2}, {4}, {1}, {3}, {5}}));
}

//         root
//       /      \.
//    rack0     rack1        7 = 4 * 1 + 3 = 3 * 2 + 1: floor and remainder
//   0 1 2 3    4 5 6
TEST(BasicPlan, FourAndThree) {
  const auto plans = generate_basic_plan(racks({4, 3}));
  ASSERT_EQ(plans.size(), 3U);
  EXPECT_EQ(plans[0].final_place, (BlockPlacement{{0, 1}, {2, 3}, {4, 5}, {6}}));
  EXPECT_EQ(plans[1].final_place, (BlockPlacement{{0, 1, 2}, {3, 4}, {5, 6}}));
  EXPECT_EQ(plans[2].final_place, (BlockPlacement{{0}, {2}, {4}, {6}, {1}, {3}, {5}}));
  for (const BasicSubPlan& p : plans) EXPECT_EQ(p.num_repaired, 0);
}

//      root          The rack leaves AB and CD. Dealt greedily, 0 takes A, 1 takes B, 2 finds neither free, 3 takes C,
//    /  |   \.       and D is with nobody. Its holders pass blocks on until 2 gets one of A and B.
//   0   1   rack
//           2  3
TEST(BasicPlan, GreedyDealingIsRepaired) {
  const auto plans = generate_basic_plan(racks({1, 1, 2}));
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_EQ(plans[0].num_repaired, 0);
  EXPECT_EQ(plans[1].num_repaired, 1);
  expect_partition(plans[1].final_place, 4);
  expect_kept_not_moved(plans[1]);
  for (const auto& blocks : plans[1].final_place) EXPECT_EQ(blocks.size(), 1U);
}

TEST(BasicPlan, OneSwitchAndOneServer) {
  const auto star = generate_basic_plan(racks({1, 1, 1}));
  ASSERT_EQ(star.size(), 1U);
  EXPECT_EQ(star[0].final_place, (BlockPlacement{{0}, {1}, {2}}));
  EXPECT_TRUE(generate_basic_plan(Topology("one", {{"server", 1, {}, {}, {}}}, 0)).empty());
}

TEST(BasicPlan, EveryBlockOnceOnRandomTrees) {
  std::mt19937_64 random(7);
  test::RandomTopologyOptions options;
  options.max_servers = 60;
  options.uneven_probability = 0.7;
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE("tree " + std::to_string(i));
    const Topology topology = test::random_topology(random, options);
    const auto plans = generate_basic_plan(topology);
    EXPECT_EQ(static_cast<std::int64_t>(plans.size()), topology.num_switches());
    for (const BasicSubPlan& plan : plans) {
      expect_partition(plan.final_place, topology.num_servers());
      expect_kept_not_moved(plan);
      if (plan.num_repaired > 0) continue;
      const auto [least, most] = std::minmax_element(plan.final_place.begin(), plan.final_place.end(),
                                                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
      EXPECT_LE(most->size() - least->size(), 1U);
    }
  }
}

TEST(BasicPlan, TooManyServers) {
  EXPECT_THROW(generate_basic_plan(make_tree({kMaxBasicServers + 1})), InvalidArgument);
}

}  // namespace
}  // namespace gar
