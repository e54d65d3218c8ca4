// What candidates cost at least, on seeded random trees: no bound of uneven groups is above the price, for all three
// collectives and models; and the predictor, which prices few candidates because of such bounds, finds what pricing all
// of them finds, to the last digit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/predict.hpp"
#include "gar/topology.hpp"
#include "model/groups_bound.hpp"
#include "support/random_topology.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

constexpr int kNumBatches = 6;
int num_trees() { return test::drawn(24, 150, 900); }

struct Input {
  Topology topology;
  double size;
  ModelOptions options;
};

Input draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  test::RandomTopologyOptions shape;
  shape.min_servers = 2;
  shape.max_servers = random() % 3 == 0 ? 72 : 28;
  shape.max_levels = static_cast<int>(1 + random() % 3);
  shape.uneven_probability = 0.5 * static_cast<double>(random() % 3);
  shape.decades = 1;
  shape.same_per_level = random() % 2 == 0;
  Topology topology = test::random_topology(random, shape);
  const double exponent = 9 * static_cast<double>(random() >> 11) * 0x1.0p-53;
  ModelOptions options;
  const ModelKind kinds[] = {ModelKind::kGenModel, ModelKind::kPaper, ModelKind::kAbc};
  options.kind = kinds[random() % 3];
  options.degree = random() % 2 == 0 ? IncastDegree::kSenders : IncastDegree::kParticipants;
  options.collective = kCollectives[random() % kCollectives.size()];
  return {std::move(topology), std::floor(std::pow(10.0, exponent)), options};
}

/// Two levels of uneven groups of m ranks, then what is around them: the fewest groups of each size, or all.
void add_two_levels(std::int64_t m, bool with_all, const std::vector<std::int64_t>& around,
                    std::set<std::vector<std::int64_t>>& out) {
  std::int64_t previous = 0;
  for (std::int64_t groups = 2; groups <= m / 2; ++groups) {
    const std::int64_t size = (m + groups - 1) / groups;
    if (size == previous && !with_all) continue;
    previous = size;
    std::vector<std::int64_t> factors{size, groups};
    factors.insert(factors.end(), around.begin(), around.end());
    out.insert(factors);
  }
}

/// The groupings that `hcps` stands for on so few servers, in two and three levels.
std::vector<AlgorithmSpec> groupings(std::int64_t n) {
  constexpr std::int64_t kEvery = 64;
  std::set<std::vector<std::int64_t>> uneven;
  add_two_levels(n, n <= kEvery, {}, uneven);
  std::int64_t previous = 0;
  for (std::int64_t groups = 2; groups <= n / 4; ++groups) {
    const std::int64_t size = (n + groups - 1) / groups;
    if (size != previous) add_two_levels(size, false, {groups}, uneven);
    previous = size;
  }
  std::vector<AlgorithmSpec> out;
  for (const auto& factors : uneven) {
    std::int64_t product = 1;
    for (const std::int64_t f : factors) product *= f;
    if (product != n) out.push_back({"hcps", factors, true});
  }
  return out;
}

double seconds_of(const AlgorithmSpec& spec, const Input& in) {
  const Plan plan = as_collective(build_plan(spec, in.topology.num_servers()), in.options.collective);
  return PricedPlan(plan, in.topology, in.options).cost(in.size).total();
}

/// The most favourable parameters of any server, and of any path.
OneSwitch best_parameters(const Topology& topology, const ModelOptions& options) {
  const double inf = std::numeric_limits<double>::infinity();
  OneSwitch p{inf, inf, inf, inf, inf, 0, options.degree, inf};
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    const Node& node = topology.node(id);
    if (!node.is_server()) continue;
    const ServerParams server = known_to(options.kind, node.server);
    p.beta = std::min(p.beta, node.uplink.beta);
    p.epsilon = std::min(p.epsilon, has_incast_and_memory(options.kind) ? node.uplink.epsilon : 0);
    p.incast_threshold = std::max(p.incast_threshold, node.uplink.incast_threshold);
    p.gamma = std::min(p.gamma, server.gamma);
    p.delta = std::min(p.delta, server.delta);
    p.mu = std::min(p.mu, server.mu);
  }
  return p;
}

/// The least latency between two servers at least so many ranks apart, by looking at all of them.
std::vector<double> least_paths(const Topology& topology) {
  const ExpandedTree tree = expand(topology, topology.root());
  const auto n = static_cast<std::size_t>(topology.num_servers());
  const auto way = [&](std::size_t rank) {
    std::vector<std::int32_t> up;
    for (std::int32_t i = tree.leaf[rank]; i >= 0; i = tree.parent[static_cast<std::size_t>(i)]) up.push_back(i);
    return up;
  };
  std::vector<double> least(n, std::numeric_limits<double>::infinity());
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = a + 1; b < n; ++b) {
      std::vector<std::int32_t> from = way(a);
      std::vector<std::int32_t> to = way(b);
      std::int32_t top = tree.leaf[a];
      while (!from.empty() && !to.empty() && from.back() == to.back()) {
        top = from.back();
        from.pop_back();
        to.pop_back();
      }
      double latency = 0;
      for (const auto& part : {from, to, {top}}) {
        for (const std::int32_t i : part) latency += topology.node(tree.node[static_cast<std::size_t>(i)]).alpha;
      }
      least[b - a] = std::min(least[b - a], latency);
    }
  }
  for (std::size_t d = n - 1; d-- > 0;) least[d] = std::min(least[d], least[d + 1]);
  return least;
}

/// Does every rank of every stage between groups own as much as the others?
bool shares_equally(const Plan& plan) {
  const PlanIndex index(plan);
  for (std::size_t id = 0; id < plan.subplans.size(); ++id) {
    for (const Stage& stage : plan.subplans[id].stages) {
      if (is_digit(stage)) continue;
      std::vector<double> owned(static_cast<std::size_t>(index.num_ranks(static_cast<SubPlanId>(id))), 0);
      for (const Piece& p : stage.target)
        owned[static_cast<std::size_t>(p.owner)] += static_cast<double>(p.end - p.begin);
      const auto [least, most] = std::minmax_element(owned.begin(), owned.end());
      if (*most > *least * (1 + 1e-9)) return false;
    }
  }
  return true;
}

class Bounds : public ::testing::TestWithParam<int> {};

TEST_P(Bounds, OfUnevenGroupsAreNotAboveThePrice) {
  double closest = 0;
  int num_equal = 0;
  int num_closer = 0;
  for (int i = GetParam(); i < num_trees(); i += kNumBatches) {
    const Input in = draw(static_cast<std::uint64_t>(i + 1));
    const OneSwitch best = best_parameters(in.topology, in.options);
    const std::vector<double> paths = least_paths(in.topology);
    const std::function<double(std::int64_t)> path = [&](std::int64_t distance) {
      return paths[static_cast<std::size_t>(distance)];
    };
    const GroupsBound groups(in.topology, in.options);
    std::vector<AlgorithmSpec> specs = groupings(in.topology.num_servers());
    if (specs.size() > 60) {  // some of them
      std::mt19937_64 random(static_cast<std::uint64_t>(i));
      std::shuffle(specs.begin(), specs.end(), random);
      specs.resize(60);
    }
    for (const AlgorithmSpec& spec : specs) {
      const double bound =
          uneven_hcps_bound(spec.factors, in.topology.num_servers(), in.size, best, in.options.collective, path);
      const double price = seconds_of(spec, in);
      EXPECT_LE(groups.seconds(spec.factors, in.size, path, false), price)
          << "seed " << i + 1 << ", " << to_string(spec) << ", in their places";
      if (shares_equally(build_plan(spec, in.topology.num_servers()))) {
        const double placed = groups.seconds(spec.factors, in.size, path, true);
        EXPECT_LE(placed, price) << "seed " << i + 1 << ", " << to_string(spec) << ", in their places, equal shares";
        num_closer += placed > 1.01 * bound ? 1 : 0;
        EXPECT_LE(uneven_hcps_bound(spec.factors, in.topology.num_servers(), in.size, best, in.options.collective, path,
                                    true),
                  price)
            << "seed " << i + 1 << ", " << to_string(spec) << " with equal shares";
        ++num_equal;
      }
      EXPECT_LE(bound, price) << "seed " << i + 1 << ", " << to_string(spec) << ", " << in.topology.num_servers()
                              << " servers, " << to_string(in.options.collective);
      closest = std::max(closest, bound / price);
    }
  }
  EXPECT_GT(closest, 0.5) << "these bounds bound nothing";
  EXPECT_GT(num_equal, 0);
  EXPECT_GT(num_closer, 0) << "places make no difference";
}

TEST_P(Bounds, OfDigitsAreNotAboveThePrice) {
  double closest = 0;
  for (int i = GetParam(); i < num_trees(); i += kNumBatches) {
    const Input in = draw(static_cast<std::uint64_t>(i + 2'000'001));
    const DigitsBound digits(in.topology, in.options);
    const std::vector<double> paths = least_paths(in.topology);
    const auto path = [&](std::int64_t distance) { return paths[static_cast<std::size_t>(distance)]; };
    for (const auto& factors : ordered_factorisations(in.topology.num_servers())) {
      const double bound = digits.seconds(factors, in.size, path);
      const double price = seconds_of({"hcps", factors, false}, in);
      EXPECT_LE(bound, price) << "seed " << i + 2'000'001 << ", " << to_string(AlgorithmSpec{"hcps", factors, false});
      closest = std::max(closest, bound / price);
    }
  }
  EXPECT_GT(closest, 0.99) << "these bounds bound nothing";
}

TEST_P(Bounds, LeaveThePredictorWhatIsBest) {
  for (int i = GetParam(); i < num_trees(); i += kNumBatches) {
    const Input in = draw(static_cast<std::uint64_t>(i + 1'000'001));
    const std::int64_t n = in.topology.num_servers();
    if (n > 32) continue;
    std::vector<AlgorithmSpec> specs = groupings(n);
    for (auto& factors : ordered_factorisations(n)) {
      if (factors.size() > 1 || n < 4) specs.push_back({"hcps", std::move(factors), false});
    }
    if (specs.empty()) continue;
    double least = std::numeric_limits<double>::infinity();
    for (const AlgorithmSpec& spec : specs) least = std::min(least, seconds_of(spec, in));
    const std::vector<Prediction> found = Predictor(in.topology, {{"hcps", {}, false}}, in.options).at(in.size);
    EXPECT_EQ(found.front().seconds(), least)
        << "seed " << i + 1'000'001 << ", " << n << " servers, " << found.front().algorithm();
    EXPECT_EQ(seconds_of(found.front().spec, in), found.front().seconds());
  }
}

INSTANTIATE_TEST_SUITE_P(Batches, Bounds, ::testing::Range(0, kNumBatches));

// On one switch of equal servers the bound is the price of two levels, where incast is the same in all groups.
TEST(BoundsOnOneSwitch, AreThePriceWhereGroupsDivide) {
  const Topology star = make_tree({60});
  const OneSwitch p = one_switch_params(star);
  const auto path = [&](std::int64_t) { return p.alpha; };
  for (const Collective collective : kCollectives) {
    ModelOptions options;
    options.collective = collective;
    const double bound = uneven_hcps_bound({10, 6}, 60, 1e8, p, collective, path);
    const double price = seconds_of({"hcps", {10, 6}, false}, {star, 1e8, options});
    EXPECT_NEAR(bound, price, 1e-11 * price);
  }
}

}  // namespace
}  // namespace gar
