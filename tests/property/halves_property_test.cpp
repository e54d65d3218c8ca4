// ReduceScatter and AllGather as what they are, on seeded random trees: their plans are proved, no named algorithm is
// cheaper, nothing beats their own bound, and that bound is reached where it can be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "gar/topology.hpp"
#include "gar/verify.hpp"
#include "support/random_topology.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

constexpr double kTie = 1e-12;
constexpr double kBound = 1e-9;
constexpr double kRivals = 1e-3;  // chunks are counted to a thousandth
const int kNumCases = test::drawn(40, 150, 300);

struct Input {
  Topology topology;
  double size;
};

Input draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  test::RandomTopologyOptions options;
  options.min_servers = 2;
  options.max_servers = random() % 2 == 0 ? 12 : 48;
  options.max_levels = static_cast<int>(1 + random() % 3);
  options.uneven_probability = 0.25 * static_cast<double>(random() % 4);
  options.decades = 1;
  options.same_per_level = random() % 2 == 0;
  Topology topology = test::random_topology(random, options);
  return {std::move(topology), std::floor(std::pow(10.0, 9 * static_cast<double>(random() >> 11) * 0x1.0p-53))};
}

/// Everything that can be named without parameters and has halves.
std::vector<AlgorithmSpec> named_algorithms() {
  std::vector<AlgorithmSpec> out;
  for (const AlgorithmInfo& info : algorithms()) {
    const AlgorithmSpec spec{std::string(info.name), {}, false};
    if (spec.name == "gentree+" || (info.parameters != AlgorithmParameters::kNone && !info.finds_factors)) continue;
    if (!info.needs_network()) {
      const AlgorithmSpec two{spec.name,
                              info.finds_factors ? std::vector<std::int64_t>{2} : std::vector<std::int64_t>{}, false};
      if (!has_halves(build_plan(two, 2))) continue;
    }
    out.push_back(spec);
  }
  return out;
}

class Halves : public ::testing::TestWithParam<Collective> {};

TEST_P(Halves, AreNeverDearerThanANamedAlgorithm) {
  const std::vector<AlgorithmSpec> named = named_algorithms();
  ASSERT_GE(named.size(), 8U);  // cps hcps ring rhd reduce-broadcast hring binomial and both forms of gentree
  for (int i = 0; i < kNumCases && !HasFailure(); ++i) {
    const Input input = draw(static_cast<std::uint64_t>(i) + 1);
    SCOPED_TRACE("seed " + std::to_string(i + 1) + ": " + std::to_string(input.topology.num_servers()) + " servers, " +
                 std::to_string(input.size) + " floats");
    PlanRequest request{.topology = input.topology, .size_floats = input.size, .collective = GetParam()};
    const PlanAnswer best = plan(request);
    EXPECT_EQ(best.plan.collective, GetParam());
    const VerifyReport report = verify(best.plan);
    EXPECT_TRUE(report.ok) << report.problem;
    const double price = PricedPlan(best.plan, input.topology).cost(input.size).total();
    EXPECT_NEAR(best.seconds(), price + best.priced->waiting() * input.size, 1e-12 * best.seconds());
    EXPECT_GE(best.seconds(), best.bound.seconds() * (1 - kBound));
    PlanRequest by_price = request;
    by_price.model.simulates = false;
    const double least = plan(by_price).seconds();
    EXPECT_LE(least, best.seconds() * (1 + kTie));
    for (const AlgorithmSpec& spec : named) {
      request.algorithms = {spec};
      const PlanAnswer other = plan(request);
      EXPECT_LE(least, other.seconds() * (1 + kTie)) << to_string(other.spec);
      EXPECT_GE(other.seconds(), other.bound.seconds() * (1 - kBound)) << to_string(other.spec);
    }
  }
}
// What stages of different ranks cost where they meet is part of what gentree+ predicts, so others are compared as it
// settles them.
TEST_P(Halves, AreFirstInPredictions) {
  for (int i = 0; i < kNumCases / 4 && !HasFailure(); ++i) {
    const Input input = draw(static_cast<std::uint64_t>(i) + 1);
    SCOPED_TRACE("seed " + std::to_string(i + 1) + ": " + std::to_string(input.topology.num_servers()) + " servers, " +
                 std::to_string(input.size) + " floats");
    PredictRequest request{.topology = input.topology, .size_floats = input.size, .algorithms = named_algorithms()};
    request.algorithms.push_back(parse_algorithm("gentree+"));
    request.model.collective = GetParam();
    const PredictAnswer answer = predict(request);
    const auto ours = std::find_if(answer.results.begin(), answer.results.end(),
                                   [](const PredictRow& row) { return row.spec.name == "gentree+"; });
    ASSERT_NE(ours, answer.results.end());
    EXPECT_LE(ours->best_seconds(), answer.results.front().best_seconds() * (1 + kRivals))
        << answer.results.front().algorithm();
  }
}
INSTANTIATE_TEST_SUITE_P(Collectives, Halves, ::testing::Values(Collective::kReduceScatter, Collective::kAllGather),
                         [](const auto& test) {
                           return test.param == Collective::kAllGather ? "AllGather" : "ReduceScatter";
                         });

// A star of 8 servers with 2 s/float each: 7/8 of the vector enters and leaves every one of them. A rack of 6 beside
// two servers: 6/8 leaves the rack for blocks outside (or comes in), so its cable of 4 s/float binds.
//
//        root                      root
//    8 x 2 s/float           4 /    | 2  \ 2
//                          rack     s     s
//                        6 x 2
TEST(HalfBounds, AreThoseOfEqualBlocks) {
  Node server;
  server.name = "server";
  server.uplink = {2, 0, 99};
  server.server = {8, 0};
  Node root;
  root.name = "root";
  root.children = {{0, 8}};
  const Topology star("star", {server, root}, 1);
  const LowerBound scatter = lower_bound(star, 64, Collective::kReduceScatter);
  EXPECT_DOUBLE_EQ(scatter.bandwidth, 2 * 56);
  EXPECT_DOUBLE_EQ(scatter.calculation, 7 * 64 * 8 / 8.0);
  const LowerBound gather = lower_bound(star, 64, Collective::kAllGather);
  EXPECT_DOUBLE_EQ(gather.bandwidth, 2 * 56);
  EXPECT_EQ(gather.calculation, 0);
  EXPECT_DOUBLE_EQ(lower_bound(star, 64).bandwidth, 2 * (2 * 56));

  Node rack;
  rack.name = "rack";
  rack.uplink = {4, 0, 99};
  rack.children = {{0, 6}};
  root.children = {{1, 1}, {0, 2}};
  const Topology uneven("uneven", {server, rack, root}, 2);
  EXPECT_DOUBLE_EQ(lower_bound(uneven, 64, Collective::kAllGather).bandwidth, 4 * 48);
}

// The model that does not know memory access has no bound that does.
TEST(Bounds, KnowWhatTheModelKnows) {
  Node server;
  server.name = "server";
  server.server = {8, 1000};
  Node root;
  root.name = "root";
  root.children = {{0, 8}};
  const Topology star("star", {server, root}, 1);
  EXPECT_DOUBLE_EQ(lower_bound(star, 64, Collective::kAllReduce, ModelKind::kAbc).calculation, 7 * 64 * 8 / 8.0);
  EXPECT_GT(lower_bound(star, 64, Collective::kAllReduce, ModelKind::kPaper).calculation, 7 * 64);
}

}  // namespace
}  // namespace gar
