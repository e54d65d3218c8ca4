// What the documents claim about prices and about gentree+, on seeded random trees: plans that send the same messages
// have the same price however they are written, and no algorithm that can be named is cheaper than gentree+.
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
#include "support/collective_cases.hpp"
#include "support/random_topology.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

constexpr double kTie = 1e-12;
constexpr double kRounding = 1e-9;
constexpr double kChunks = 1e-3;  // chunks are counted to a thousandth

Topology draw(std::mt19937_64& random, std::int64_t most) {
  test::RandomTopologyOptions options;
  options.min_servers = 2;
  options.max_servers = most;
  options.max_levels = 3;
  options.uneven_probability = 0.25 * static_cast<double>(random() % 4);
  options.decades = 1;
  options.same_per_level = random() % 2 == 0;
  return test::random_topology(random, options);
}

double log_uniform_size(std::mt19937_64& random) {
  return std::floor(std::pow(10.0, 9 * static_cast<double>(random() >> 11) * 0x1.0p-53));
}

// hcps:4x6 writes two digits side by side, hcps:~4x6 groups inside each other.
TEST(Prices, DoNotDependOnHowPlansAreWritten) {
  int num_compared = 0;
  for (std::uint64_t seed = 1; seed <= test::in_slow_build(60U, 400U); ++seed) {
    std::mt19937_64 random(seed);
    const Topology topology = draw(random, 64);
    const std::int64_t n = topology.num_servers();
    const double size = log_uniform_size(random);
    ModelOptions options;
    options.overlap = true;
    for (const std::vector<std::int64_t>& factors : ordered_factorisations(n, 200)) {
      const PricedPlan side_by_side(hcps(n, factors), topology, options);
      const PricedPlan inside(uneven_hcps(n, factors), topology, options);
      const std::string words = "seed " + std::to_string(seed) + ": " + hcps(n, factors).algorithm;
      for (const std::int64_t chunks : {1, 7}) {
        const double seconds = side_by_side.pipelined_cost(size, chunks).total();
        ASSERT_NEAR(seconds, inside.pipelined_cost(size, chunks).total(), kRounding * seconds) << words;
      }
      const double seconds = side_by_side.own_cost(size).total();
      ASSERT_NEAR(seconds, side_by_side.cost(size).total(), kRounding * seconds) << words;
      num_compared += factors.size() > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(num_compared, 100);
}

/// Names with parameters: every ordered factorisation, every number of groups, and now and then three levels.
std::vector<AlgorithmSpec> with_parameters(std::int64_t n, bool has_three_levels) {
  std::vector<AlgorithmSpec> out;
  for (const auto& factors : ordered_factorisations(n, 60)) {
    out.push_back({"hcps", factors, false});
    out.push_back({"hring", factors, false});
  }
  for (std::int64_t groups = 2; groups <= n / 2; ++groups)
    out.push_back({"hcps", {(n + groups - 1) / groups, groups}, true});
  for (std::int64_t groups = 2; has_three_levels && groups <= n / 4; ++groups) {
    const std::int64_t of_one = (n + groups - 1) / groups;
    for (std::int64_t middle = 2; middle <= of_one / 2; ++middle) {
      out.push_back({"hcps", {(of_one + middle - 1) / middle, middle, groups}, true});
    }
  }
  return out;
}

/// Names without parameters. Where servers have no price for messages, plans that end in exchanges are not considered.
std::vector<AlgorithmSpec> without_parameters(bool with_exchanges) {
  std::vector<AlgorithmSpec> out;
  for (const char* name :
       {"cps", "ring", "rhd", "reduce-broadcast", "binomial", "hcps", "hring", "gentree", "gentree-norearrange"}) {
    out.push_back({name, {}, false});
  }
  if (!with_exchanges) return out;
  for (const char* name : {"gather", "recursive-doubling", "recursive-multiplying"}) out.push_back({name, {}, false});
  return out;
}

bool has_price_of_messages(const Topology& topology) {
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    if (topology.node(id).is_server() && topology.node(id).server.mu == 0) return false;
  }
  return true;
}

std::uint64_t num_trees() { return test::scale() == test::Scale::kFull ? 2000U : test::in_slow_build(20U, 300U); }

TEST(GentreePlus, IsNeverDearerThanAnyName) {
  for (std::uint64_t seed = 1; seed <= num_trees(); ++seed) {
    std::mt19937_64 random(seed);
    const Topology topology = draw(random, random() % 4 == 0 ? 48 : 20);
    const std::int64_t n = topology.num_servers();
    const double size = log_uniform_size(random);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + std::to_string(n) + " servers, " + std::to_string(size) +
                 " floats");
    const double best = plan({.topology = topology, .size_floats = size}).seconds();
    for (const AlgorithmSpec& spec : without_parameters(has_price_of_messages(topology))) {
      const PlanAnswer other = plan({.topology = topology, .size_floats = size, .algorithms = {spec}});
      EXPECT_LE(best, other.seconds() * (1 + kTie)) << to_string(other.spec);
    }
    for (const AlgorithmSpec& spec : with_parameters(n, seed % 8 == 0)) {
      const double other = PricedPlan(build_plan(spec, n), topology).cost(size).total();
      EXPECT_LE(best, other * (1 + kTie)) << to_string(spec);
    }
    ASSERT_FALSE(HasFailure());
  }
}

// What `gar predict` prints: plans in chunks may wait for each other, and gentree+ is not the only one that is told so.
TEST(Predict, HasNothingBeforeGentreePlus) {
  int num_chunked = 0;
  for (std::uint64_t seed = 1; seed <= num_trees() / 4; ++seed) {
    std::mt19937_64 random(seed);
    const Topology topology = draw(random, 16);
    const double size = 1e6 * std::sqrt(log_uniform_size(random));
    PredictRequest request{.topology = topology,
                           .size_floats = std::min(size, 1e9),
                           .algorithms = without_parameters(has_price_of_messages(topology))};
    request.algorithms.push_back(parse_algorithm("gentree+"));
    const PredictAnswer answer = predict(request);
    const auto ours = std::find_if(answer.results.begin(), answer.results.end(),
                                   [](const PredictRow& row) { return row.spec.name == "gentree+"; });
    ASSERT_NE(ours, answer.results.end());
    num_chunked += ours->best_chunks() > 1 ? 1 : 0;
    EXPECT_LE(ours->best_seconds(), answer.results.front().best_seconds() * (1 + kChunks))
        << "seed " << seed << ": " << topology.num_servers() << " servers, " << size << " floats, "
        << answer.results.front().algorithm();
  }
  EXPECT_GT(num_chunked, 0);
}

// The number of ordered factorisations of a million is beyond every limit: those with many small factors must be there.
TEST(Hcps, FindsFactorsOfAMillion) {
  const Topology star = make_tree({1'000'000});
  const double small =
      PricedPlan(build_plan(parse_algorithm("hcps:10x10x10x10x10x10"), 1'000'000), star).cost(1e8).total();
  EXPECT_LE(Predictor(star, {{"hcps", {}, false}}).at(1e8).front().seconds(), small);
}

// 4 KiB at least, where the price of a message is not known.
TEST(Chunks, AreNotAFewBytesLong) {
  for (const double mu : {0.0, 1e-9}) {
    Node server;
    server.name = "server";
    server.alpha = 1e-9;
    server.uplink = {1e-6, 0, 99};
    server.server = {1e-6, 1e-10, mu};  // adding takes a part of the time that chunks can hide
    Node root;
    root.name = "root";
    root.children = {{0, 8}};
    const Topology star("star", {server, root}, 1);
    constexpr double kSize = 1e5;
    const std::int64_t chunks = plan({.topology = star, .size_floats = kSize}).plan.num_chunks;
    EXPECT_GT(chunks, 1);
    if (mu == 0) {
      EXPECT_GE(kSize / static_cast<double>(chunks), 1024);
    } else {
      EXPECT_LT(kSize / static_cast<double>(chunks), 1024);
    }
  }
}

}  // namespace
}  // namespace gar
