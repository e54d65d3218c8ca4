// Unequal shares: they are proved and right on seeded random trees, never dearer than equal ones, as good as the best
// of a fine grid where trees are small, equal where networks are, and nothing for those who are too slow.
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
#include "gar/plan.hpp"
#include "gar/planner.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"
#include "gar/verify.hpp"
#include "support/random_topology.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

constexpr double kTie = 1e-12;

// By price alone: what chunks wait for each other has a test of its own (chunks_property_test.cpp).
PlanAnswer planned(const Topology& topology, double size, bool shares, Collective collective = Collective::kAllReduce) {
  PlanRequest request{.topology = topology, .size_floats = size, .collective = collective};
  request.model.shares = shares;
  request.model.simulates = false;
  return plan(request);
}

/// What every rank owns when everything is reduced.
std::vector<double> owned(const Plan& plan) {
  std::vector<double> out(static_cast<std::size_t>(plan.num_ranks), 0);
  const PlanIndex index(plan);
  for (const Piece& p : index.placement_after(plan.root)) {
    out[static_cast<std::size_t>(p.owner)] +=
        static_cast<double>(p.end - p.begin) / static_cast<double>(plan.num_units);
  }
  return out;
}

Node server_node(const char* name, double beta) {
  Node node;
  node.name = name;
  node.alpha = 1e-5;
  node.uplink = {beta, 0, 99};
  node.server = {1e-11, 1e-11, 1e-6};
  return node;
}

Node switch_node(const char* name, double beta, std::vector<ChildRun> children) {
  Node node;
  node.name = name;
  node.alpha = 1e-5;
  node.uplink = {beta, 0, 99};
  node.children = std::move(children);
  return node;
}

// Eight racks of four servers, one of them behind a cable of a tenth of the others' speed. That cable must carry the
// whole vector once each way, 1 s; with equal shares it carries 7/4 of that.
TEST(Shares, OneSlowCable) {
  const Topology topology("one-slow-cable",
                          {server_node("server", 1.28e-9), switch_node("rack", 1e-9, {{0, 4}}),
                           switch_node("slow", 1e-8, {{0, 4}}), switch_node("root", 0, {{1, 7}, {2, 1}})},
                          3);
  const PlanAnswer best = planned(topology, 1e8, true);
  EXPECT_DOUBLE_EQ(best.bound.seconds(), 1.0);
  EXPECT_LE(best.seconds(), 1.03);
  EXPECT_GE(best.seconds(), 1.0);
  const VerifyReport report = verify(best.plan);
  EXPECT_TRUE(report.ok) << report.problem;
  const std::vector<double> shares = owned(best.plan);
  for (std::size_t r = 28; r < 32; ++r) EXPECT_EQ(shares[r], 0) << "rank " << r;  // no share at all
  EXPECT_LE(simulate(best.plan, topology, 1e8).seconds, 1.03);
}

TEST(Shares, AreProvedAndNeverDearerOnRandomTrees) {
  int num_better = 0;
  for (std::uint64_t seed = 1; seed <= test::drawn(30U, 100U, 300U); ++seed) {
    std::mt19937_64 random(seed);
    test::RandomTopologyOptions options;
    options.min_servers = 2;
    options.max_servers = 40;
    options.max_levels = 3;
    options.uneven_probability = 0.5;
    options.decades = 0.5;
    options.same_per_level = false;
    const Topology topology = test::random_topology(random, options);
    const double size = std::pow(10.0, 5 + static_cast<double>(random() % 5));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + std::to_string(topology.num_servers()) + " servers, " +
                 std::to_string(size) + " floats");
    const PlanAnswer equal = planned(topology, size, false);
    const PlanAnswer best = planned(topology, size, true);
    EXPECT_LE(best.seconds(), equal.seconds() * (1 + kTie));
    EXPECT_GE(best.seconds(), best.bound.seconds() * (1 - 1e-9));
    if (best.seconds() >= equal.seconds()) continue;
    ++num_better;
    const VerifyReport report = verify(best.plan);
    ASSERT_TRUE(report.ok) << report.problem;
    for (const Collective half : {Collective::kReduceScatter, Collective::kAllGather}) {
      if (!has_halves(best.plan)) continue;
      const VerifyReport half_report = verify(as_collective(best.plan, half));
      ASSERT_TRUE(half_report.ok) << to_string(half) << ": " << half_report.problem;
    }
  }
  EXPECT_GT(num_better, 10);
}

// The same network with 128 racks of 8 servers. The slow rack owns nothing there, either.
TEST(Shares, AThousandServers) {
  const Topology topology("one-slow-cable",
                          {server_node("server", 1.28e-9), switch_node("rack", 1e-9, {{0, 8}}),
                           switch_node("slow", 1e-8, {{0, 8}}), switch_node("root", 0, {{1, 127}, {2, 1}})},
                          3);
  ASSERT_EQ(topology.num_servers(), 1024);
  const PlanAnswer best = planned(topology, 1e8, true);
  EXPECT_LE(best.seconds(), 1.1 * best.bound.seconds());
  EXPECT_GE(planned(topology, 1e8, false).seconds(), 1.2 * best.seconds());
  const VerifyReport report = verify(best.plan);
  EXPECT_TRUE(report.ok) << report.problem;
  const std::vector<double> shares = owned(best.plan);
  for (std::size_t r = 1016; r < 1024; ++r) EXPECT_EQ(shares[r], 0) << "rank " << r;
}

// Eight servers of which one adds a thousand times more slowly: with equal shares it alone takes 1.5 times as long as
// an AllReduce that gives it none.
TEST(Shares, OneSlowProcessor) {
  Node fast = server_node("fast", 3.2e-10);
  fast.server = {1e-12, 1e-12, 1e-6};
  Node slow = server_node("slow", 3.2e-10);
  slow.server = {1e-9, 1e-9, 1e-6};
  const Topology topology("slow processor", {fast, slow, switch_node("root", 0, {{0, 7}, {1, 1}})}, 2);
  constexpr double kSize = 1.6e7;
  const double whole = planned(topology, kSize, true).seconds();
  const PlanAnswer scatter = planned(topology, kSize, true, Collective::kReduceScatter);
  const PlanAnswer gather = planned(topology, kSize, true, Collective::kAllGather);
  EXPECT_GT(planned(topology, kSize, false, Collective::kReduceScatter).seconds(), 1.5 * whole);
  EXPECT_LT(scatter.seconds(), 0.7 * whole);
  EXPECT_LT(gather.seconds(), 0.7 * whole);
  EXPECT_TRUE(verify(scatter.plan).ok);
  EXPECT_LE(simulate(scatter.plan, topology, kSize).seconds, scatter.seconds() * (1 + 1e-9));
}

// Whatever is slow: an AllReduce has everything that each of its halves has, and more.
TEST(Shares, AHalfTakesNoLongerThanTheWhole) {
  int num_better = 0;  // than with equal shares
  for (std::uint64_t seed = 1; seed <= test::drawn(10U, 30U, 400U); ++seed) {
    std::mt19937_64 random(seed);
    test::RandomTopologyOptions options;
    options.min_servers = 2;
    options.max_servers = 24;
    options.max_levels = 3;
    options.uneven_probability = 0.5;
    options.decades = 0.5;
    options.same_per_level = random() % 2 == 0;
    const Topology drawn = test::random_topology(random, options);
    std::vector<Node> nodes;
    for (NodeId id = 0; id < drawn.num_nodes(); ++id) {
      nodes.push_back(drawn.node(id));
      if (random() % 4 != 0) continue;
      nodes.back().server.gamma *= 100;
      nodes.back().server.delta *= 100;
    }
    const Topology topology(drawn.name(), nodes, drawn.root());
    const double size = std::pow(10.0, 4 + static_cast<double>(random() % 5));
    const double whole = planned(topology, size, true).seconds();
    for (const Collective half : {Collective::kReduceScatter, Collective::kAllGather}) {
      const PlanAnswer best = planned(topology, size, true, half);
      const double equal = planned(topology, size, false, half).seconds();
      EXPECT_LE(best.seconds(), whole * (1 + kTie)) << "seed " << seed << ": " << to_string(half);
      EXPECT_LE(best.seconds(), equal * (1 + kTie)) << "seed " << seed << ": " << to_string(half);
      num_better += best.seconds() < equal * 0.99 ? 1 : 0;
      const VerifyReport report = verify(best.plan);
      ASSERT_TRUE(report.ok) << "seed " << seed << ": " << report.problem;
    }
  }
  RecordProperty("better", num_better);
  EXPECT_GT(num_better, 0);
}

TEST(Shares, AreEqualWhereNetworksAre) {
  for (const char* name : {"star:8", "tree:4x6", "sym384", "fattree:4"}) {
    const Topology topology = topology_from_spec(name);
    for (const Collective collective : kCollectives) {
      EXPECT_EQ(planned(topology, 1e8, true, collective).plan, planned(topology, 1e8, false, collective).plan) << name;
    }
  }
}

/// All shares in steps of 1/grid, in one step on a star: the least price in the best number of chunks.
double best_of_grid(const Topology& star, double size, std::int64_t grid) {
  const std::int64_t n = star.num_servers();
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::int64_t> share(static_cast<std::size_t>(n), 0);
  ModelOptions options;
  options.overlap = true;
  const auto offer = [&] {
    Plan plan;
    plan.algorithm = "grid";
    plan.num_ranks = n;
    plan.num_units = grid * 1'000'000;
    Stage stage{StageKind::kPlace, 1, 1, {}};
    std::int64_t at = 0;
    for (std::int64_t r = 0; r < n; ++r) {
      const std::int64_t end = at + share[static_cast<std::size_t>(r)] * 1'000'000;
      if (end > at) stage.target.push_back({at, end, static_cast<std::int32_t>(r)});
      at = end;
    }
    plan.subplans = {{{{kLeaf, n}}, {stage}, "grid"}};
    plan.root = 0;
    const PricedPlan priced(plan, star, options);
    const std::int64_t limit = std::min<std::int64_t>(1 << 14, static_cast<std::int64_t>(size));
    least = std::min(least, priced.pipelined_cost(size, priced.best_chunks(size, limit)).total());
  };
  const auto fill = [&](auto&& self, std::size_t r, std::int64_t left) -> void {
    if (r + 1 == share.size()) {
      share[r] = left;
      offer();
      return;
    }
    for (std::int64_t x = 0; x <= left; ++x) {
      share[r] = x;
      self(self, r + 1, left - x);
    }
  };
  fill(fill, 0, grid);
  return least;
}

TEST(Shares, AreWithinOnePercentOfTheBestOfAGrid) {
  double worst = 1;
  for (std::uint64_t seed = 1; seed <= test::in_slow_build(6U, 60U); ++seed) {
    std::mt19937_64 random(seed);
    const auto n = static_cast<std::int64_t>(3 + random() % 2);
    std::vector<Node> nodes;
    std::vector<ChildRun> children;
    for (std::int64_t r = 0; r < n; ++r) {
      const auto spread = [&] { return std::pow(10.0, static_cast<double>(random() >> 11) * 0x1.0p-53); };
      nodes.push_back(server_node(("server" + std::to_string(r)).c_str(), 1e-9 * spread()));
      nodes.back().server = {1e-10 * spread(), 5e-11 * spread(), 1e-6};
      children.push_back({static_cast<NodeId>(r), 1});
    }
    nodes.push_back(switch_node("root", 0, children));
    const Topology star("star", nodes, static_cast<NodeId>(n));
    for (const double size : {1e5, 1e6, 1e7, 1e8}) {
      const double best = planned(star, size, true).seconds();
      const double grid = best_of_grid(star, size, n == 3 ? 24 : 14);
      worst = std::max(worst, best / grid);
      EXPECT_LE(best, grid * 1.01) << "seed " << seed << ", " << size << " floats";
    }
  }
  RecordProperty("worst", std::to_string(worst));
}

/// Calls f(parts) for all ways to cut `total` into as many parts as there are, in steps of one.
template <class F>
void for_compositions(std::vector<std::int64_t>& parts, std::size_t from, std::int64_t total, F f) {
  if (from + 1 == parts.size()) {
    parts[from] = total;
    f();
    return;
  }
  for (std::int64_t x = 0; x <= total; ++x) {
    parts[from] = x;
    for_compositions(parts, from + 1, total - x, f);
  }
}

/// Plans for racks below one switch. In every rack the servers own shares of the vector in steps of 1/grid; between
/// racks every stretch that is held by the same servers is cut in steps of 1/grid, too. Or the servers of all racks
/// exchange directly, with shares in steps of 1/(2 grid). The least price of all these, at every size.
class TreeGrid {
 public:
  TreeGrid(const Topology& topology, std::vector<std::int64_t> racks, std::vector<double> sizes, std::int64_t grid)
      : topology_(topology),
        racks_(std::move(racks)),
        sizes_(std::move(sizes)),
        grid_(grid),
        units_(kUnit * grid * grid),
        shares_(racks_.size()),
        least_(sizes_.size(), std::numeric_limits<double>::infinity()) {
    options_.overlap = true;
  }

  std::vector<double> least() {
    choose_rack(0);
    std::vector<std::int64_t> parts(static_cast<std::size_t>(topology_.num_servers()), 0);
    for_compositions(parts, 0, 2 * grid_, [&] {
      Plan plan = empty_plan();
      plan.subplans = {{{{kLeaf, plan.num_ranks}}, {place(parts, units_ / (2 * grid_))}, "flat"}};
      offer(std::move(plan));
    });
    return least_;
  }
  [[nodiscard]] std::int64_t num_plans() const { return num_plans_; }

 private:
  static constexpr std::int64_t kUnit = 10'000;

  [[nodiscard]] Plan empty_plan() const {
    Plan plan;
    plan.algorithm = "grid";
    plan.num_ranks = topology_.num_servers();
    plan.num_units = units_;
    return plan;
  }

  static Stage place(const std::vector<std::int64_t>& parts, std::int64_t unit) {
    Stage stage{StageKind::kPlace, 1, 1, {}};
    std::int64_t at = 0;
    for (std::size_t r = 0; r < parts.size(); ++r) {
      const std::int64_t end = at + parts[r] * unit;
      if (end > at) stage.target.push_back({at, end, static_cast<std::int32_t>(r)});
      at = end;
    }
    return stage;
  }

  void choose_rack(std::size_t rack) {
    if (rack == racks_.size()) {
      find_stretches();
      choose_stretch(0);
      return;
    }
    shares_[rack].assign(static_cast<std::size_t>(racks_[rack]), 0);
    for_compositions(shares_[rack], 0, grid_, [&] { choose_rack(rack + 1); });
  }

  void find_stretches() {
    ends_.clear();
    for (const std::vector<std::int64_t>& shares : shares_) {
      std::int64_t at = 0;
      for (const std::int64_t x : shares) ends_.push_back(at += x);
    }
    std::sort(ends_.begin(), ends_.end());
    ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
    std::erase(ends_, 0);
    cuts_.assign(ends_.size(), std::vector<std::int64_t>(racks_.size(), 0));
  }

  void choose_stretch(std::size_t nth) {
    if (nth == ends_.size()) {
      offer_tree();
      return;
    }
    for_compositions(cuts_[nth], 0, grid_, [&] { choose_stretch(nth + 1); });
  }

  // The server of a rack that holds a position (in steps of 1/grid) after the rack's stage, numbered in the tree.
  [[nodiscard]] std::int32_t holder(std::size_t rack, std::int64_t position) const {
    std::int64_t first = 0;
    for (std::size_t r = 0; r < rack; ++r) first += racks_[r];
    std::int64_t at = 0;
    for (const std::int64_t x : shares_[rack]) {
      at += x;
      if (position < at) break;
      ++first;
    }
    return static_cast<std::int32_t>(first);
  }

  void offer_tree() {
    Plan plan = empty_plan();
    SubPlan root;
    for (std::size_t rack = 0; rack < racks_.size(); ++rack) {
      if (racks_[rack] == 1) {
        root.children.push_back({kLeaf, 1});
        continue;
      }
      root.children.push_back({static_cast<SubPlanId>(plan.subplans.size()), 1});
      plan.subplans.push_back({{{kLeaf, racks_[rack]}}, {place(shares_[rack], kUnit * grid_)}, "rack"});
    }
    Stage stage{StageKind::kPlace, 1, 1, {}};
    std::int64_t begin = 0;
    for (std::size_t nth = 0; nth < ends_.size(); ++nth) {
      std::int64_t at = begin * grid_;
      for (std::size_t rack = 0; rack < racks_.size(); ++rack) {
        const std::int64_t end = at + cuts_[nth][rack] * (ends_[nth] - begin);
        if (end > at) stage.target.push_back({at * kUnit, end * kUnit, holder(rack, begin)});
        at = end;
      }
      begin = ends_[nth];
    }
    root.stages = {std::move(stage)};
    root.label = "root";
    plan.root = static_cast<SubPlanId>(plan.subplans.size());
    plan.subplans.push_back(std::move(root));
    offer(std::move(plan));
  }

  void offer(Plan plan) {
    if (plan.root == kLeaf) plan.root = 0;
    const PricedPlan priced(plan, topology_, options_);
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const std::int64_t limit = std::min<std::int64_t>(1 << 14, static_cast<std::int64_t>(sizes_[i]));
      const double seconds = priced.pipelined_cost(sizes_[i], priced.best_chunks(sizes_[i], limit)).total();
      least_[i] = std::min(least_[i], seconds);
    }
    ++num_plans_;
  }

  const Topology& topology_;
  std::vector<std::int64_t> racks_;
  std::vector<double> sizes_;
  std::int64_t grid_;
  std::int64_t units_;
  std::vector<std::vector<std::int64_t>> shares_;  // by rack and server, in steps of 1/grid
  std::vector<std::int64_t> ends_;                 // of stretches, likewise
  std::vector<std::vector<std::int64_t>> cuts_;    // by stretch and rack, in steps of 1/grid of the stretch
  std::vector<double> least_;
  std::int64_t num_plans_ = 0;
  ModelOptions options_;
};

/// Racks of servers that all differ, as do the racks' links.
Topology different_racks(std::mt19937_64& random, const std::vector<std::int64_t>& racks) {
  const auto spread = [&] { return std::pow(10.0, static_cast<double>(random() >> 11) * 0x1.0p-53); };
  std::vector<Node> nodes;
  const auto add = [&](Node node) {
    node.name += std::to_string(nodes.size());
    nodes.push_back(std::move(node));
    return ChildRun{static_cast<NodeId>(nodes.size()) - 1, 1};
  };
  std::vector<ChildRun> top;
  for (const std::int64_t servers : racks) {
    std::vector<ChildRun> children;
    for (std::int64_t s = 0; s < servers; ++s) {
      Node node = server_node("server", 1e-9 * spread());
      node.server = {1e-10 * spread(), 5e-11 * spread(), 1e-6};
      children.push_back(add(std::move(node)));
    }
    top.push_back(servers == 1 ? children.front() : add(switch_node("rack", 5e-10 * spread(), children)));
  }
  const ChildRun root = add(switch_node("root", 0, top));
  return {"racks", nodes, root.node};
}

TEST(Shares, AreWithinOnePercentOfTheBestOfAGridOnTrees) {
  const std::vector<std::vector<std::int64_t>> shapes = {{1, 2}, {2, 2}, {1, 1, 2}, {1, 3}};
  const std::vector<double> sizes = {1e5, 1e6, 1e7, 1e8};
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= test::drawn(2U, 8U, 60U); ++seed) {
    std::mt19937_64 random(seed);
    const std::vector<std::int64_t>& racks = shapes[seed % shapes.size()];
    const Topology topology = different_racks(random, racks);
    TreeGrid grid(topology, racks, sizes, 6);
    const std::vector<double> least = grid.least();
    EXPECT_GT(grid.num_plans(), 300);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const double best = planned(topology, sizes[i], true).seconds();
      worst = std::max(worst, best / least[i]);
      EXPECT_LE(best, least[i] * 1.01) << "seed " << seed << ", " << sizes[i] << " floats";
    }
  }
  RecordProperty("worst", std::to_string(worst));
}

}  // namespace
}  // namespace gar
