// GenTree+ on the paper's networks, and the model of chunks that it relies on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "gar/topology.hpp"
#include "gar/verify.hpp"
#include "support/plans.hpp"
#include "support/random_topology.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

const ModelOptions kOverlap{ModelKind::kGenModel, IncastDegree::kSenders, true};

double seconds_of(const Plan& plan, const Topology& topology, double size) {
  return PricedPlan(plan, topology).cost(size).total();
}

TEST(GenTreePlus, PapersNetworks) {
  for (const char* network : {"ss24", "ss32", "sym384", "sym512", "asy384", "cdc384"}) {
    const Topology topology = builtin_topology(network);
    for (const double size : {1e7, 1e8}) {
      SCOPED_TRACE(std::string(network) + ", " + std::to_string(size) + " floats");
      const TreePlan plus = gentree_plus(topology, size);
      EXPECT_TRUE(verify(plus.plan).ok);
      const double seconds = plus.priced->cost(size).total();
      EXPECT_LT(seconds, seconds_of(gentree(topology, size).plan, topology, size));
      EXPECT_GT(plus.plan.num_chunks, 1);
      const double bound = lower_bound(topology, size).seconds();
      EXPECT_GE(seconds, bound);
      // At 1e8 floats the aim is 15% above the bound. On cdc384 moving to a subset costs about a rack's time once more.
      if (size == 1e8) {
        EXPECT_LE(seconds, bound * (std::string(network) == "cdc384" ? 1.35 : 1.15));
      }
      ASSERT_FALSE(plus.considered.empty());
      EXPECT_NEAR(plus.considered.front().seconds(), seconds, 1e-9 * seconds);
      EXPECT_EQ(plus.considered.front().num_chunks, plus.plan.num_chunks);
    }
  }
}

// The root level of one chunk hides behind the rack level of the next, so incast there does not matter any more: one
// stage instead of 4x4.
TEST(GenTreePlus, Sym384HidesTheRoot) {
  const TreePlan plus = gentree_plus(builtin_topology("sym384"), 1e8);
  ASSERT_EQ(plus.switches.size(), 2U);
  EXPECT_EQ(plus.switches[0].name, "rack");
  EXPECT_EQ(plus.switches[0].count, 16);
  EXPECT_EQ(plus.switches[0].algorithm, "hcps");
  EXPECT_EQ(plus.switches[0].factors, (std::vector<std::int64_t>{8, 3}));
  EXPECT_EQ(plus.switches[1].algorithm, "cps");
}

TEST(GenTreePlus, SmallVectorsStayInOnePiece) {
  for (const double size : {0.0, 1.0, 100.0}) {
    EXPECT_EQ(gentree_plus(builtin_topology("sym384"), size).plan.num_chunks, 1) << size;
  }
}

TEST(GenTreePlus, ConsideredIsSortedAndNamesGenTree) {
  const TreePlan plus = gentree_plus(builtin_topology("asy384"), 1e7);
  std::set<std::string> names;
  for (const PlanCandidate& c : plus.considered) names.insert(c.algorithm);
  EXPECT_TRUE(names.contains("gentree"));
  EXPECT_TRUE(names.contains("gentree-norearrange"));
  EXPECT_TRUE(std::is_sorted(plus.considered.begin(), plus.considered.end(),
                             [](const auto& a, const auto& b) { return a.seconds() < b.seconds(); }));
}

TEST(GenTreePlus, OneServer) {
  const TreePlan one = gentree_plus(topology_from_spec("star:1"), 1e6);
  EXPECT_EQ(one.plan.num_ranks, 1);
  EXPECT_EQ(one.plan.algorithm, "gentree+");
  EXPECT_TRUE(verify(one.plan).ok);
}

// --- Chunks ----------------------------------------------------------------------------------------------------------

// Four servers on a switch, hcps 2x2; alpha 1 (3 per step), beta 2, gamma 1, nothing else.
//   step        latency   link per float   calculation per float
//   scatter 1   3         1/2 * 2 = 1      1/2
//   scatter 2   3         1/4 * 2 = 1/2    1/4
//   gather 2    3         1/2
//   gather 1    3         1
// One piece: 12 + 3.75 S. Each link direction is busy for 3 S, each server for 0.75 S; the slowest step takes
// 3 + 1.5 S. In k chunks of x = S / k: 12 + 3.75 x + (k - 1) max(3 x, 3 + 1.5 x).
TEST(Chunks, TwoStagesByHand) {
  Node server{"server", 1, {2, 0, 9}, {1, 0}, {}};
  const Topology star("star", {server, {"root", 1, {}, {}, {{0, 4}}}}, 1);
  const PricedPlan priced(hcps(4, {2, 2}), star, kOverlap);
  EXPECT_DOUBLE_EQ(priced.pipelined_cost(16, 1).total(), 12 + 3.75 * 16);
  EXPECT_DOUBLE_EQ(priced.pipelined_cost(16, 2).total(), 12 + 3.75 * 8 + 24);         // 3 x is more than 3 + 1.5 x
  EXPECT_DOUBLE_EQ(priced.pipelined_cost(16, 4).total(), 12 + 3.75 * 4 + 3 * 12);     // 63
  EXPECT_DOUBLE_EQ(priced.pipelined_cost(16, 8).total(), 12 + 3.75 * 2 + 7 * 6);      // 61.5, both take 6
  EXPECT_DOUBLE_EQ(priced.pipelined_cost(16, 16).total(), 12 + 3.75 * 1 + 15 * 4.5);  // latency
  EXPECT_EQ(priced.best_chunks(16, 16), 8);
  EXPECT_EQ(priced.best_chunks(16, 3), 3);
  EXPECT_EQ(priced.best_chunks(16, 1), 1);
  EXPECT_EQ(priced.busiest().name, "uplink of server0");
  EXPECT_DOUBLE_EQ(priced.busiest().slope.total(), 3);
  ASSERT_EQ(priced.busy().calculation.size(), 4U);
  for (const double c : priced.busy().calculation) EXPECT_DOUBLE_EQ(c, 0.75);
  const std::vector<std::pair<double, double>> steps{{3, 0.5}, {3, 0.75}, {3, 1}, {3, 1.5}};
  EXPECT_EQ(priced.steps(), steps);
  Plan in_eight = hcps(4, {2, 2});
  in_eight.num_chunks = 8;
  EXPECT_DOUBLE_EQ(PricedPlan(in_eight, star).cost(16).total(), 61.5);
}

// For long vectors x = 2 is best, where the links are busy as long as the slowest step takes: 12 + 3 S + 0.75 x. A
// thousandth more than 48013.5 is reached with x = 66.
TEST(Chunks, FewAreNearlyAsGoodAsTheBest) {
  Node server{"server", 1, {2, 0, 9}, {1, 0}, {}};
  const Topology star("star", {server, {"root", 1, {}, {}, {{0, 4}}}}, 1);
  const PricedPlan priced(hcps(4, {2, 2}), star, kOverlap);
  EXPECT_EQ(priced.best_chunks(16e3, 1 << 14), 8000);
  EXPECT_EQ(priced.few_chunks(16e3, 1 << 14), 243);
  EXPECT_EQ(priced.few_chunks(16, 16), 8);
  EXPECT_EQ(priced.few_chunks(16, 1), 1);
}

TEST(GenTreePlus, DoesNotCutIntoThousandsForNothing) {
  const Topology star = topology_from_spec("star:48@100Gbit/s,2us");
  const TreePlan plan = gentree_plus(star, 64.0 * (1 << 20));
  EXPECT_GT(plan.plan.num_chunks, 1);
  EXPECT_LT(plan.plan.num_chunks, 50);
}

// The same with 1/2 for every message: 4 messages of a rank in each half, 1 s more in each of the 4 steps. A chunk
// keeps every server busy for 4 + 0.75 x, and the slowest step takes 4 + 1.5 x. No byte flows before a server has
// handled the first message of every chunk: 1/2 more for each of them.
TEST(Chunks, EveryChunkPaysForItsMessages) {
  Node server{"server", 1, {2, 0, 9}, {1, 0, 0.5}, {}};
  const Topology star("star", {server, {"root", 1, {}, {}, {{0, 4}}}}, 1);
  const PricedPlan priced(hcps(4, {2, 2}), star, kOverlap);
  EXPECT_DOUBLE_EQ(priced.pipelined_cost(16, 1).total(), 16 + 3.75 * 16);
  EXPECT_DOUBLE_EQ(priced.pipelined_cost(16, 4).total(), 16 + 3.75 * 4 + 3 * 12.5);   // the links
  EXPECT_DOUBLE_EQ(priced.pipelined_cost(16, 16).total(), 16 + 3.75 * 1 + 15 * 5.5);  // the slowest step
  for (const double handling : priced.busy().handling) EXPECT_DOUBLE_EQ(handling, 4);
  EXPECT_EQ(priced.busiest(16).name, "uplink of server0");
  EXPECT_EQ(priced.busiest(1).name, "messages and calculation of server0");
  EXPECT_DOUBLE_EQ(priced.busiest(1).at(1).total(), 4.75);
  EXPECT_DOUBLE_EQ(priced.pipelined_cost(16, 16).mu, 4 + 15 * 1);
  EXPECT_LT(priced.best_chunks(16, 16), 8);
}

// With a cost of messages gentree+ cuts the vector into fewer chunks, and takes plans with fewer messages.
TEST(Chunks, MessagesThatCostMakeThemFewer) {
  PaperParams params;
  params.alpha = 1e-6;
  std::int64_t last = 1 << 20;
  for (const double mu : {0.0, 1e-5, 1e-3}) {
    params.server.mu = mu;
    const TreePlan plan = gentree_plus(make_tree({4, 4}, params), 1e7);
    EXPECT_LT(plan.plan.num_chunks, last) << mu;
    last = plan.plan.num_chunks;
  }
}

/// Busy times message by message: a link direction of instance i is crossed by what has one end below it.
BusyTimes naive_busy(const Plan& plan, const Topology& topology) {
  const ExpandedTree tree = expand(topology, topology.root());
  const PlanIndex index(plan);
  struct Load {
    double volume = 0;
    std::set<std::int64_t> senders;
  };
  std::map<std::pair<std::int64_t, std::size_t>, Load> up, down;  // step, instance
  const auto units = static_cast<double>(plan.num_units);
  BusyTimes out{std::vector<double>(tree.size(), 0), std::vector<double>(tree.size(), 0),
                std::vector<double>(static_cast<std::size_t>(plan.num_ranks), 0),
                std::vector<double>(static_cast<std::size_t>(plan.num_ranks), 0)};
  for (std::int64_t r = 0; r < plan.num_ranks; ++r) {
    const auto leaf = static_cast<std::size_t>(tree.leaf[static_cast<std::size_t>(r)]);
    const ServerParams& server = topology.node(tree.node[leaf]).server;
    for (const Step& step : index.program(r).steps) {
      std::set<std::int64_t> ends;
      std::set<std::int64_t> receivers;
      std::set<std::int64_t> senders;
      for (const Message& m : step.sends) receivers.insert(m.peer);
      for (const Message& m : step.recvs) senders.insert(m.peer);
      out.handling[static_cast<std::size_t>(r)] += static_cast<double>(receivers.size() + senders.size()) * server.mu;
      for (const Message& m : step.recvs) {
        ends.insert({m.begin, m.end});
        for (std::size_t i = 0; i < tree.size(); ++i) {
          const bool from = tree.first_rank[i] <= m.peer && m.peer < tree.last_rank[i];
          const bool to = tree.first_rank[i] <= r && r < tree.last_rank[i];
          if (from == to) continue;
          Load& load = from ? up[{step.number, i}] : down[{step.number, i}];
          load.volume += static_cast<double>(m.end - m.begin) / units;
          load.senders.insert(m.peer);
        }
      }
      for (auto it = ends.begin(); it != ends.end() && std::next(it) != ends.end(); ++it) {
        double operands = 0;
        bool with_own = false;
        for (const Message& m : step.recvs) {
          if (m.begin > *it || m.end <= *it) continue;
          operands += 1;
          with_own = with_own || m.accumulate;
        }
        operands += with_own ? 1 : 0;
        if (operands < 2) continue;
        const double share = static_cast<double>(*std::next(it) - *it) / units;
        out.calculation[static_cast<std::size_t>(r)] +=
            share * ((operands - 1) * server.gamma + (operands + 1) * server.delta);
      }
    }
  }
  for (const bool is_down : {false, true}) {
    for (const auto& [key, load] : is_down ? down : up) {
      const LinkParams& link = topology.node(tree.node[key.second]).uplink;
      const double excess = std::max(static_cast<double>(load.senders.size()) - link.incast_threshold, 0.0);
      (is_down ? out.down : out.up)[key.second] += load.volume * (link.beta + excess * link.epsilon);
    }
  }
  return out;
}

void expect_close(const std::vector<double>& a, const std::vector<double>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-9 * std::max(a[i], b[i])) << what << " " << i;
}

TEST(Chunks, BusyTimesAreSumsOverMessages) {
  for (std::uint64_t seed = 1; seed <= test::in_slow_build<std::uint64_t>(16, 150); ++seed) {
    std::mt19937_64 random(seed);
    test::RandomTopologyOptions options;
    options.min_servers = 2;
    options.max_servers = 14;
    options.decades = 1.5;
    options.same_per_level = random() % 2 == 0;
    const Topology topology = test::random_topology(random, options);
    std::vector<Plan> plans = test::plans_of_all_builders(random, topology.num_servers(), 2);
    plans.push_back(gentree(topology, 1e6).plan);
    plans.push_back(gentree_plus(topology, 1e6, {.simulates = false}).plan);
    for (const Plan& plan : plans) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + plan.algorithm + " on " + std::to_string(plan.num_ranks));
      const PricedPlan priced(plan, topology, kOverlap);
      const BusyTimes expected = naive_busy(plan, topology);
      expect_close(priced.busy().up, expected.up, "up");
      expect_close(priced.busy().down, expected.down, "down");
      expect_close(priced.busy().calculation, expected.calculation, "calculation");
      expect_close(priced.busy().handling, expected.handling, "handling");
      double most = 0;
      for (const auto* all : {&expected.up, &expected.down, &expected.calculation}) {
        most = std::max(most, *std::max_element(all->begin(), all->end()));
      }
      EXPECT_NEAR(priced.busiest().slope.total(), most, 1e-9 * most);
      for (const double chunk : {1.0, 1e3, 1e6}) {
        double longest = chunk * most;
        for (std::size_t r = 0; r < expected.handling.size(); ++r) {
          longest = std::max(longest, expected.handling[r] + chunk * expected.calculation[r]);
        }
        EXPECT_NEAR(priced.busiest(chunk).at(chunk).total(), longest, 1e-9 * longest);
      }
    }
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace gar
