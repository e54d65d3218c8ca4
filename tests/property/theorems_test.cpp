// The paper's optimalities (Sections 2.2 and 3.3) as properties of all plans that any builder makes.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/topology.hpp"
#include "support/plans.hpp"
#include "support/random_topology.hpp"

namespace gar {
namespace {

Topology star(std::int64_t n, double incast_threshold) {
  PaperParams params;
  params.server_link.incast_threshold = incast_threshold;
  return make_tree({n}, params);
}

std::vector<Plan> all_plans(std::int64_t n, std::size_t most_per_kind) {
  std::mt19937_64 random(static_cast<std::uint64_t>(n));
  return test::plans_of_all_builders(random, n, most_per_kind);
}

double as_double(std::int64_t n) { return static_cast<double>(n); }

// Theorem 1: no plan moves less than (N+1)/N of the vector through memory, and CPS moves just that.
TEST(Theorem1, MemoryAccessIsBoundedAndCpsReachesTheBound) {
  for (std::int64_t n = 2; n <= 40; ++n) {
    const Topology topology = star(n, 9);
    const double bound = as_double(n + 1) / as_double(n);
    for (const Plan& plan : all_plans(n, 8)) {
      const Optimality o = optimality(plan, topology);
      EXPECT_GE(o.max_memory_access, bound - 1e-12) << plan.algorithm << " on " << n;
      EXPECT_EQ(o.memory_access, o.max_memory_access <= bound + 1e-9) << plan.algorithm << " on " << n;
    }
    EXPECT_NEAR(optimality(cps(n), topology).max_memory_access, bound, 1e-12);
    EXPECT_TRUE(optimality(cps(n), topology).memory_access);
  }
}

// Theorem 2: for N > w_t nothing is both incast-optimal and memory-access-optimal; for N <= w_t CPS is both.
TEST(Theorem2, NoPlanIsOptimalInBoth) {
  for (std::int64_t n = 2; n <= 40; ++n) {
    const std::vector<Plan> plans = all_plans(n, 4);
    for (std::int64_t threshold = 2; threshold <= 12; ++threshold) {
      const Topology topology = star(n, as_double(threshold));
      if (n <= threshold) {
        const Optimality o = optimality(cps(n), topology);
        EXPECT_TRUE(o.incast && o.memory_access) << "cps on " << n << ", threshold " << threshold;
        continue;
      }
      for (const Plan& plan : plans) {
        const Optimality o = optimality(plan, topology);
        EXPECT_FALSE(o.incast && o.memory_access) << plan.algorithm << " on " << n << ", threshold " << threshold;
      }
    }
  }
}

// The same on trees: the reduction of all N blocks at once has N - 1 senders on one server's link, wherever it hangs.
TEST(Theorem2, HoldsOnTreesToo) {
  std::int64_t num_checked = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    test::RandomTopologyOptions options;
    options.min_servers = 3;
    options.max_servers = 30;
    const Topology topology = test::random_topology(random, options);
    double threshold = 0;
    for (NodeId id = 0; id < topology.num_nodes(); ++id) {
      if (topology.node(id).is_server()) threshold = std::max(threshold, topology.node(id).uplink.incast_threshold);
    }
    const std::int64_t n = topology.num_servers();
    if (as_double(n) <= threshold) continue;
    for (const Plan& plan : test::plans_of_all_builders(random, n, 2)) {
      const Optimality o = optimality(plan, topology);
      EXPECT_FALSE(o.incast && o.memory_access) << "seed " << seed << ", " << plan.algorithm << " on " << n;
      ++num_checked;
    }
  }
  EXPECT_GE(num_checked, 300);
}

// Section 2.2: CPS, Ring and (for powers of two only) RHD send and receive 2 (N-1)/N of the vector, and nothing less is
// possible; Reduce-Broadcast sends everything through one server.
TEST(BandwidthOptimality, OfTheClassicAlgorithms) {
  for (std::int64_t n = 2; n <= 40; ++n) {
    const Topology topology = star(n, 9);
    const bool is_power_of_two = std::has_single_bit(static_cast<std::uint64_t>(n));
    EXPECT_TRUE(optimality(cps(n), topology).bandwidth) << n;
    EXPECT_TRUE(optimality(ring(n), topology).bandwidth) << n;
    EXPECT_EQ(optimality(rhd(n), topology).bandwidth, is_power_of_two) << n;
    EXPECT_EQ(optimality(reduce_broadcast(n), topology).bandwidth, n == 2) << n;
    for (const auto& factors : ordered_factorisations(n)) {
      EXPECT_TRUE(optimality(hcps(n, factors), topology).bandwidth) << n;
      EXPECT_TRUE(optimality(hierarchical_ring(n, factors), topology).bandwidth) << n;
    }
    for (const Plan& plan : all_plans(n, 8)) {
      EXPECT_GE(optimality(plan, topology).max_traffic, 2 * as_double(n - 1) / as_double(n) - 1e-12)
          << plan.algorithm << " on " << n;
    }
  }
}

// CPS and Reduce-Broadcast need two steps; Ring 2 (N-1); RHD 2 ceil(log2 N).
TEST(LatencyOptimality, OfTheClassicAlgorithms) {
  for (std::int64_t n = 2; n <= 40; ++n) {
    const Topology topology = star(n, 9);
    EXPECT_TRUE(optimality(cps(n), topology).latency) << n;
    EXPECT_TRUE(optimality(reduce_broadcast(n), topology).latency) << n;
    EXPECT_EQ(optimality(ring(n), topology).latency, n == 2) << n;
    EXPECT_EQ(optimality(rhd(n), topology).latency, n == 2) << n;
    EXPECT_EQ(optimality(ring(n), topology).num_steps, 2 * (n - 1));
    EXPECT_EQ(optimality(rhd(n), topology).num_steps, 2 * std::bit_width(static_cast<std::uint64_t>(n - 1)));
    for (const auto& factors : ordered_factorisations(n)) {
      EXPECT_EQ(optimality(hcps(n, factors), topology).num_steps, 2 * static_cast<std::int64_t>(factors.size()));
    }
  }
}

// Definition 1: Ring never has incast, because nobody receives from more than one server; CPS has it beyond w_t.
TEST(IncastOptimality, OfRingAndCps) {
  for (std::int64_t n = 2; n <= 40; ++n) {
    for (std::int64_t threshold = 2; threshold <= 12; ++threshold) {
      const Topology topology = star(n, as_double(threshold));
      EXPECT_TRUE(optimality(ring(n), topology).incast);
      EXPECT_EQ(optimality(cps(n), topology).incast, n <= threshold);
      EXPECT_EQ(optimality(cps(n), topology, IncastDegree::kSenders).incast, n - 1 <= threshold);
    }
  }
}

}  // namespace
}  // namespace gar
