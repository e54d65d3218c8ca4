// On small trees gentree+ finds the best plan of the space that it documents, as plain enumeration does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "gar/topology.hpp"
#include "gar/verify.hpp"
#include "support/plan_space.hpp"
#include "support/random_topology.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

constexpr double kTolerance = 1e-9;
constexpr std::int64_t kMaxServersTried = 6;
constexpr std::int64_t kMaxChunks = 1 << 14;
const ModelOptions kOverlap{ModelKind::kGenModel, IncastDegree::kSenders, true};

double log_uniform_size(std::mt19937_64& random) {
  return std::floor(std::pow(10.0, 9 * static_cast<double>(random() >> 11) * 0x1.0p-53));
}

/// A chunk has 1024 floats at least where some server has no price for handling messages, else one.
std::int64_t chunk_limit(const Topology& topology, double size) {
  double least = 1;
  for (NodeId id = 0; id < topology.num_nodes(); ++id) {
    if (topology.node(id).is_server() && topology.node(id).server.mu == 0) least = 1024;
  }
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(size / least, static_cast<double>(kMaxChunks))));
}

/// "{ -1 -1: direct2 } { 0 -1: place3 }": sub-plans with their children and stages.
std::string words(const Plan& plan) {
  std::string out;
  for (const SubPlan& sp : plan.subplans) {
    out += "{";
    for (const SubPlanRun& run : sp.children) {
      for (std::int64_t i = 0; i < run.count; ++i) out += " " + std::to_string(run.subplan);
    }
    out += ":";
    for (const Stage& s : sp.stages) {
      const char* kind = s.kind == StageKind::kPlace      ? " place"
                         : s.kind == StageKind::kExchange ? " exchange"
                         : s.kind == StageKind::kRing     ? " ring"
                                                          : " direct";
      out += kind + std::to_string(s.kind == StageKind::kPlace ? static_cast<std::int64_t>(s.target.size()) : s.radix);
    }
    out += " } ";
  }
  return out;
}

std::string words(const Topology& t) {
  return std::to_string(t.num_servers()) + " servers, " + std::to_string(t.height(t.root())) + " levels";
}

/// The flat plans; of hcps and hring those that are best in one piece.
std::vector<Plan> flat_plans(const Topology& topology, double size) {
  const std::int64_t n = topology.num_servers();
  std::vector<Plan> out{reduce_broadcast(n), ring(n), rhd(n), cps(n)};
  for (const Prediction& p : Predictor(topology, {{"hcps", {}, false}, {"hring", {}, false}}).at(size)) {
    out.push_back(build_plan(p.spec, n));
  }
  return out;
}

/// Those for short vectors; of recursive-multiplying the one that is best in one piece.
std::vector<Plan> short_plans(const Topology& topology, double size) {
  const std::int64_t n = topology.num_servers();
  std::vector<Plan> out{recursive_doubling(n), binomial(n), gather(n)};
  for (const Prediction& p : Predictor(topology, {{"recursive-multiplying", {}, false}}).at(size)) {
    out.push_back(build_plan(p.spec, n));
  }
  return out;
}

/// The best plan of the whole space, each of them in the number of chunks that gentree+ takes.
struct Best {
  double seconds = std::numeric_limits<double>::infinity();
  Plan plan;
};

Best best_of_space(const Topology& topology, double size) {
  test::PlanSpace space(topology);
  Best best;
  const auto offer = [&](std::vector<Plan> plans) {
    for (Plan& plan : plans) {
      const PricedPlan priced(plan, topology, kOverlap);
      plan.num_chunks = priced.few_chunks(size, chunk_limit(topology, size));
      const double seconds = priced.pipelined_cost(size, plan.num_chunks).total();
      if (seconds < best.seconds) best = {seconds, std::move(plan)};
    }
  };
  offer(space.plans());
  offer(flat_plans(topology, size));
  for (const bool rearrange : {true, false}) offer({gentree(topology, size, {rearrange, {}}).plan});
  if (best.plan.num_chunks == 1) offer(space.ending_in_exchanges());
  offer(short_plans(topology, size));
  return best;
}

/// Every number of chunks, one by one.
double least_by_scan(const PricedPlan& priced, const Topology& topology, double size) {
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t k = 1; k <= chunk_limit(topology, size); ++k)
    least = std::min(least, priced.pipelined_cost(size, k).total());
  return least;
}

/// Fewer chunks than few_chunks() says cost more than a thousandth more than the best number of them.
void expect_few(const PricedPlan& priced, const Topology& topology, double size, double best) {
  constexpr double kAllowed = 1.001;
  constexpr std::int64_t kMostTried = 1000;
  const std::int64_t few = priced.few_chunks(size, chunk_limit(topology, size));
  EXPECT_LE(priced.pipelined_cost(size, few).total(), kAllowed * best * (1 + kTolerance));
  for (std::int64_t k = 1; k < std::min(few, kMostTried); ++k) {
    ASSERT_GT(priced.pipelined_cost(size, k).total(), kAllowed * best * (1 - kTolerance)) << k << " of " << few;
  }
}

void check(const Topology& topology, double size) {
  ModelOptions equal;  // shares of other sizes have a test of their own
  equal.shares = false;
  equal.simulates = false;  // the space is searched by price
  const Plan plus = gentree_plus(topology, size, equal).plan;
  const VerifyReport report = verify(plus);
  EXPECT_TRUE(report.ok) << report.problem;
  const double seconds = PricedPlan(plus, topology).cost(size).total();
  const Best best = best_of_space(topology, size);
  EXPECT_NEAR(seconds, best.seconds, kTolerance * best.seconds)
      << "gentree+: " << words(plus) << "in " << plus.num_chunks << " chunks\nbest: " << words(best.plan) << "in "
      << best.plan.num_chunks << " chunks";
}

TEST(PlannerExhaustive, RandomTrees) {
  const std::uint64_t num_trees = test::drawn<std::uint64_t>(250, 250, 1000);
  for (std::uint64_t seed = 1; seed <= num_trees; ++seed) {
    std::mt19937_64 random(seed);
    test::RandomTopologyOptions options;
    options.min_servers = 2;
    options.max_servers = kMaxServersTried;
    options.max_levels = static_cast<int>(1 + random() % 3);
    options.decades = 2;
    options.same_per_level = random() % 2 == 0;
    const Topology topology = test::random_topology(random, options);
    const double size = log_uniform_size(random);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + words(topology) + ", " + std::to_string(size) + " floats");
    check(topology, size);
    if (HasFailure()) return;
  }
}

// --- All shapes ------------------------------------------------------------------------------------------------------

/// A switch as the list of its children, larger ones first; a server has none.
struct Shape {
  std::vector<Shape> children;
  [[nodiscard]] std::int64_t num_servers() const {
    std::int64_t n = children.empty() ? 1 : 0;
    for (const Shape& c : children) n += c.num_servers();
    return n;
  }
};

std::vector<Shape> shapes_of(std::int64_t servers, int levels);

/// Appends to `out` the shape with every choice of further children that have `left` servers, none more than `most`.
void add_children(const Shape& shape, std::int64_t left, std::int64_t most, int levels, std::vector<Shape>& out) {
  if (left == 0 && shape.children.size() > 1) out.push_back(shape);
  for (std::int64_t part = std::min(left, most); part >= 1; --part) {
    for (const Shape& child : shapes_of(part, levels - 1)) {
      Shape next = shape;
      next.children.push_back(child);
      add_children(next, left - part, part, levels, out);
    }
  }
}

/// All trees of so many servers and at most so many levels in which every switch has two children at least.
std::vector<Shape> shapes_of(std::int64_t servers, int levels) {
  std::vector<Shape> out;
  if (servers == 1) out.emplace_back();
  if (servers > 1 && levels > 0) add_children({}, servers, servers - 1, levels, out);
  return out;
}

/// Nodes at the same depth get the same parameters: equal parts of the shape are equal parts of the network.
class ShapedTree {
 public:
  ShapedTree(const Shape& shape, std::mt19937_64& random) : random_(random) {
    for (int depth = 0; depth <= 3; ++depth) switches_.push_back(node("switch", PaperParams{}.inner_link));
    server_ = node("server", PaperParams{}.server_link);
    server_.server = {spread(PaperParams{}.server.gamma), spread(PaperParams{}.server.delta)};
    root_ = add(shape, 0);
  }
  [[nodiscard]] Topology topology() const { return Topology("shape", nodes_, root_); }

 private:
  double spread(double value) {
    return value * std::pow(10.0, 4 * static_cast<double>(random_() >> 11) * 0x1.0p-53 - 2);
  }
  Node node(const char* name, LinkParams link) {
    link = {spread(link.beta), spread(link.epsilon), static_cast<double>(1 + random_() % 4)};
    return {name, spread(PaperParams{}.alpha), link, {}, {}};
  }
  NodeId add(const Shape& shape, std::size_t depth) {
    Node n = shape.children.empty() ? server_ : switches_[depth];
    for (const Shape& child : shape.children) n.children.push_back({add(child, depth + 1), 1});
    nodes_.push_back(std::move(n));
    return static_cast<NodeId>(nodes_.size()) - 1;
  }

  std::mt19937_64& random_;
  std::vector<Node> switches_;
  Node server_;
  std::vector<Node> nodes_;
  NodeId root_ = 0;
};

TEST(PlannerExhaustive, AllShapesOfUpToThreeLevels) {
  const std::uint64_t num_seeds = test::drawn<std::uint64_t>(2, 3, 6);
  int num_shapes = 0;
  for (std::int64_t n = 2; n <= kMaxServersTried; ++n) {
    for (const Shape& shape : shapes_of(n, 3)) {
      ++num_shapes;
      for (std::uint64_t seed = 1; seed <= num_seeds; ++seed) {
        std::mt19937_64 random(1000 * seed + static_cast<std::uint64_t>(num_shapes));
        const Topology topology = ShapedTree(shape, random).topology();
        const double size = log_uniform_size(random);
        SCOPED_TRACE("shape " + std::to_string(num_shapes) + ", seed " + std::to_string(seed) + ": " + words(topology) +
                     ", " + std::to_string(size) + " floats");
        check(topology, size);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GE(num_shapes, 40);
}

// Doubling and halving finds what trying every number of chunks finds.
TEST(PlannerExhaustive, BestChunksIsTheBestOfAll) {
  for (std::uint64_t seed = 1; seed <= test::in_slow_build(20U, 150U); ++seed) {
    std::mt19937_64 random(seed);
    test::RandomTopologyOptions options;
    options.min_servers = 2;
    options.max_servers = 12;
    options.decades = 2;
    options.max_levels = 3;
    options.same_per_level = random() % 2 == 0;
    const Topology topology = test::random_topology(random, options);
    const double size = log_uniform_size(random);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + words(topology) + ", " + std::to_string(size) + " floats");
    std::vector<Plan> plans = flat_plans(topology, size);
    for (const bool rearrange : {true, false}) plans.push_back(gentree(topology, size, {rearrange, {}}).plan);
    plans.push_back(gentree_plus(topology, size).plan);
    for (const Plan& plan : plans) {
      const PricedPlan priced(plan, topology, kOverlap);
      const double found = priced.pipelined_cost(size, priced.best_chunks(size, chunk_limit(topology, size))).total();
      EXPECT_LE(found, least_by_scan(priced, topology, size) * (1 + kTolerance))
          << plan.algorithm << ": " << words(plan);
      expect_few(priced, topology, size, found);
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace gar
