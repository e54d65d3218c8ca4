// Both engines against a naive simulator on seeded random cases: small trees of every form, plans of every builder and
// planner, plans that are no collective at all, chunks, incast, slow servers, links that are degraded or shared. Not
// only the seconds: every step and message of every rank, and every link.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"
#include "support/explicit_plan.hpp"
#include "support/naive_simulator.hpp"
#include "support/random_simulation.hpp"
#include "support/random_topology.hpp"
#include "support/slow_build.hpp"
#include "support/terms.hpp"

namespace gar {
namespace {

using test::NaiveFlow;
using test::NaiveLink;
using test::NaiveSimulation;
using test::NaiveStep;
using test::NaiveTree;
using test::simulate_naively;
using test::SimulationCase;

constexpr double kTolerance = 1e-9;
constexpr double kNothing = 1e-100;  // seconds; links without any cost may take as much
constexpr int kNumBatches = 8;       // tests of their own: a failure says where, the rest still runs
int num_cases() { return test::drawn(48, 400, 1200); }

SimulationCase draw(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  test::RandomTopologyOptions shape;
  shape.min_servers = 2;
  shape.max_servers = random() % 4 == 0 ? 6 : 18;
  shape.max_levels = static_cast<int>(random() % 4 == 0 ? 1 : 2 + random() % 4);
  shape.uneven_probability = 0.5 * static_cast<double>(random() % 3);
  shape.decades = 0.5 * static_cast<double>(random() % 4);
  shape.same_per_level = random() % 2 == 0;
  Topology topology = test::random_topology(random, shape);
  if (random() % 4 != 0) topology = test::with_strong_incast(random, topology);
  const double size = std::floor(test::log_uniform(random, 1e5, 1e9));
  Plan plan = test::random_plan(random, topology, size);
  SimulationOptions options;
  test::add_model(random, options);
  if (random() % 2 == 0) test::add_conditions(random, topology, 3, options);
  return {std::move(topology), std::move(plan), size, options};
}

// --- the oracle itself

TEST(Oracle, EqualsTheClosedFormsBehindABarrier) {
  std::mt19937_64 random(1);
  for (std::int64_t n = 2; n <= 16; ++n) {
    const Topology star = test::with_strong_incast(random, make_tree({n}));
    for (const IncastDegree degree : {IncastDegree::kSenders, IncastDegree::kParticipants}) {
      const OneSwitch p = one_switch_params(star, degree);
      SimulationOptions options;
      options.barrier = true;
      options.degree = degree;
      const auto check = [&](Plan plan, const Terms& closed) {
        SCOPED_TRACE(plan.algorithm + " on " + std::to_string(n) + " servers");
        EXPECT_TRUE(test::is_close(simulate_naively(plan, star, 1e6, options).seconds, closed.total(), kTolerance));
        plan.num_chunks = 3;
        EXPECT_TRUE(test::is_close(simulate_naively(plan, star, 3e6, options).seconds, 3 * closed.total(), kTolerance));
      };
      check(ring(n), closed_ring(n, 1e6, p));
      check(rhd(n), closed_rhd(n, 1e6, p));
      check(cps(n), closed_cps(n, 1e6, p));
      for (const auto& f : ordered_factorisations(n)) check(hcps(n, f), closed_hcps(f, 1e6, p));
    }
  }
}

// A star of n servers: latency 1 on the way, one float in `beta` seconds.
Topology small_star(std::int64_t n, LinkParams link, ServerParams server = {}) {
  Node leaf;
  leaf.uplink = link;
  leaf.server = server;
  Node root;
  root.alpha = 1;
  root.children = {{0, n}};
  return Topology("star", {leaf, root}, 1);
}

// 4 floats from rank 0 and 8 from rank 1 to rank 2, with two senders half as fast: at 1/4 float/s each until 1 + 16,
// then the other 4 floats of rank 1 at 1 float/s.
TEST(Oracle, FollowsIncastThatFalls) {
  const Plan plan = test::plan_of(3, 12, {{0, 0, 2, 0, 4, false}, {0, 1, 2, 4, 12, false}});
  const NaiveSimulation s = simulate_naively(plan, small_star(3, {1, 1, 1}), 12);
  EXPECT_DOUBLE_EQ(s.seconds, 21);
  const NaiveTree tree(small_star(3, {1, 1, 1}));
  EXPECT_DOUBLE_EQ(s.links[NaiveTree::link(3, true)].busy_seconds, 20);
  EXPECT_DOUBLE_EQ(s.links[NaiveTree::link(3, true)].incast_seconds, 8);
  EXPECT_EQ(s.links[NaiveTree::link(3, true)].max_senders, 2);
  EXPECT_DOUBLE_EQ(s.links[NaiveTree::link(1, false)].busy_seconds, 16);
  EXPECT_DOUBLE_EQ(s.links[NaiveTree::link(2, false)].floats, 8);
}

// Rank 2 reduces what rank 0 sends in step 0 and rank 1 in step 1, two chunks of 2 floats at 3 s each. The first
// chunk's messages share its downlink from 1 to 5, the second one's from 5 to 9. It calculates
//   step 0 of chunk 0: alone from 5 to 9, with another until 13;   step 1 of chunk 0: from 13, with another, until 25;
//   step 0 of chunk 1: from 9, with another, until 21;             step 1 of chunk 1: from 21, alone from 25 to 29.
TEST(Oracle, CalculationsOfSeveralChunksShareTheServer) {
  Plan plan = test::plan_of(3, 4, {{0, 0, 2, 0, 4, true}, {1, 1, 2, 0, 4, true}});
  plan.num_chunks = 2;
  const NaiveSimulation s = simulate_naively(plan, small_star(3, {1, 0, 9}, {3, 0}), 4);
  EXPECT_DOUBLE_EQ(s.seconds, 29);
  std::map<std::pair<std::int64_t, std::int64_t>, double> done;  // chunk, step
  for (const NaiveStep& t : s.steps) {
    if (t.rank == 2) done[{t.chunk, t.number}] = t.done;
  }
  EXPECT_DOUBLE_EQ((done[{0, 0}]), 13);
  EXPECT_DOUBLE_EQ((done[{1, 0}]), 21);
  EXPECT_DOUBLE_EQ((done[{0, 1}]), 25);
  EXPECT_DOUBLE_EQ((done[{1, 1}]), 29);
}

// Steps of one chunk that follow each other at once do not flow at once.
TEST(Oracle, FlowsBetweenTwoRanksKeepTheirOrder) {
  int num_waits = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(num_cases() / 4); ++seed) {
    const SimulationCase c = draw(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.words());
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::vector<NaiveFlow>> flows;  // from, to, chunk
    for (const NaiveFlow& f : simulate_naively(c.plan, c.topology, c.size, c.options).flows) {
      flows[{f.from, f.to, f.chunk}].push_back(f);
    }
    for (auto& [connection, list] : flows) {
      std::sort(list.begin(), list.end(), [](const NaiveFlow& a, const NaiveFlow& b) { return a.number < b.number; });
      for (std::size_t i = 1; i < list.size(); ++i) {
        ASSERT_GE(list[i].flowing, list[i - 1].end);
        num_waits += list[i].flowing == list[i - 1].end;
      }
    }
  }
  EXPECT_GT(num_waits, num_cases() / 16);  // they are rare where servers handle messages in between (mu)
}

// --- the engines against it

class Recorder : public SimulationObserver {
 public:
  void on_rank(std::int64_t rank, std::int64_t alike) override { ranks[rank] += alike; }
  void on_link(const LinkId&, std::int64_t alike) override { links += alike; }
  void on_step(const StepEvent& e) override { steps.push_back({e.rank, e.chunk, e.step, e.start, e.received, e.done}); }
  void on_flow(const FlowEvent& e) override {
    flows.push_back({e.from, e.to, e.chunk, e.step, e.start, e.flowing, e.end, e.floats});
    num_flows += static_cast<double>(e.alike);
  }
  void on_load(const LoadEvent& e) override { last_load = e.time; }

  std::map<std::int64_t, std::int64_t> ranks;
  std::int64_t links = 0;
  std::vector<NaiveStep> steps;
  std::vector<NaiveFlow> flows;
  double num_flows = 0;
  double last_load = 0;
};

struct Comparison {
  const SimulationCase& c;
  const NaiveSimulation& naive;
  const NaiveTree& tree;
  bool is_same_time(double a, double b) const { return std::abs(a - b) <= kTolerance * naive.seconds + kNothing; }
};

void compare_links(const Comparison& x, const Simulation& s) {
  std::vector<std::int64_t> seen(x.naive.links.size(), 0);
  double floats = 0;
  double busy = 0;
  std::int64_t count = 0;
  for (const LinkUse& use : s.links) {
    const std::string name = link_name(x.c.topology, use.link);
    const std::size_t l = NaiveTree::link(x.tree.instance(use.link.node), use.link.is_down);
    const NaiveLink& link = x.naive.links[l];
    EXPECT_EQ(seen[l]++, 0) << name << " twice";
    EXPECT_TRUE(x.is_same_time(use.busy_seconds, link.busy_seconds))
        << name << " busy " << use.busy_seconds << " not " << link.busy_seconds;
    EXPECT_TRUE(x.is_same_time(use.incast_seconds, link.incast_seconds))
        << name << " incast " << use.incast_seconds << " not " << link.incast_seconds;
    EXPECT_TRUE(test::is_close(use.floats, link.floats, kTolerance))
        << name << " floats " << use.floats << " not " << link.floats;
    floats += static_cast<double>(use.count) * use.floats;
    busy += static_cast<double>(use.count) * use.busy_seconds;
    count += use.count;
  }
  double naive_floats = 0;
  double naive_busy = 0;
  std::int64_t naive_count = 0;
  for (const NaiveLink& link : x.naive.links) {
    naive_floats += link.floats;
    naive_busy += link.busy_seconds;
    naive_count += link.floats > 0;
  }
  EXPECT_TRUE(test::is_close(floats, naive_floats, kTolerance)) << floats << " " << naive_floats;
  EXPECT_NEAR(busy, naive_busy, kTolerance * x.naive.seconds * static_cast<double>(x.naive.links.size()) + kNothing);
  EXPECT_EQ(count, naive_count) << "links that carried something";
}

void check_path(const Comparison& x, const Simulation& s) {
  EXPECT_TRUE(x.is_same_time(s.terms.total(), s.seconds)) << ::testing::PrintToString(s.terms) << " of " << s.seconds;
  if (s.seconds < kNothing) return;
  ASSERT_FALSE(s.path.empty());
  EXPECT_TRUE(x.is_same_time(s.path.front().begin, 0));
  EXPECT_TRUE(x.is_same_time(s.path.back().end, s.seconds));
  Terms sum;
  for (std::size_t i = 0; i < s.path.size(); ++i) {
    const PathHop& hop = s.path[i];
    EXPECT_LE(hop.begin, hop.received + kTolerance * s.seconds) << "hop " << i;
    EXPECT_LE(hop.received, hop.end + kTolerance * s.seconds) << "hop " << i;
    EXPECT_TRUE(x.is_same_time(hop.terms.total(), hop.end - hop.begin))
        << "hop " << i << ": " << ::testing::PrintToString(hop.terms) << " of " << hop.end - hop.begin;
    if (i > 0) {
      EXPECT_TRUE(x.is_same_time(s.path[i - 1].end, hop.begin))
          << "hop " << i << ": " << s.path[i - 1].end << " " << hop.begin;
    }
    EXPECT_TRUE(hop.is_message || hop.from == hop.rank) << "hop " << i;
    sum += hop.terms;
  }
  EXPECT_TRUE(x.is_same_time(sum.total(), s.seconds)) << sum.total() << " " << s.seconds;
}

// What was recorded happened at the same times; with one rank per class it is everything that happened.
void compare_records(const Comparison& x, const Recorder& recorder, bool is_everything) {
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  std::map<Key, NaiveStep> steps;
  for (const NaiveStep& t : x.naive.steps) steps[{t.rank, t.chunk, t.number, 0}] = t;
  for (const NaiveStep& t : recorder.steps) {
    const auto found = steps.find({t.rank, t.chunk, t.number, 0});
    ASSERT_TRUE(found != steps.end()) << "rank " << t.rank << " chunk " << t.chunk << " step " << t.number;
    const NaiveStep& n = found->second;
    EXPECT_TRUE(x.is_same_time(t.start, n.start) && x.is_same_time(t.received, n.received) &&
                x.is_same_time(t.done, n.done))
        << "rank " << t.rank << " chunk " << t.chunk << " step " << t.number << ": " << t.start << " " << t.received
        << " " << t.done << " not " << n.start << " " << n.received << " " << n.done;
    steps.erase(found);
  }
  std::multimap<Key, NaiveFlow> flows;  // with classes, the receiver is only the first one of its class
  for (const NaiveFlow& f : x.naive.flows) flows.insert({{f.from, is_everything ? f.to : 0, f.chunk, f.number}, f});
  for (const NaiveFlow& f : recorder.flows) {
    const auto is_same = [&](const auto& entry) {
      const NaiveFlow& n = entry.second;
      return x.is_same_time(f.start, n.start) && x.is_same_time(f.flowing, n.flowing) && x.is_same_time(f.end, n.end) &&
             test::is_close(f.floats, n.floats, kTolerance);
    };
    const auto [first, last] = flows.equal_range({f.from, is_everything ? f.to : 0, f.chunk, f.number});
    const auto found = std::find_if(first, last, is_same);
    if (found != last) {
      flows.erase(found);
      continue;
    }
    ADD_FAILURE() << f.from << " -> " << f.to << " chunk " << f.chunk << " step " << f.number << ": " << f.start << " "
                  << f.flowing << " " << f.end << " (" << f.floats << " floats) is none of "
                  << std::distance(first, last);
    for (auto it = first; it != last; ++it) {
      const NaiveFlow& n = it->second;
      ADD_FAILURE() << "  " << n.start << " " << n.flowing << " " << n.end << " (" << n.floats << " floats)";
    }
  }
  if (is_everything) {
    EXPECT_TRUE(steps.empty()) << steps.size() << " steps not reported";
    EXPECT_TRUE(flows.empty()) << flows.size() << " messages not reported";
  }
  EXPECT_EQ(recorder.num_flows, static_cast<double>(x.naive.flows.size()));
  std::int64_t ranks = 0;
  for (const auto& [rank, alike] : recorder.ranks) ranks += alike;
  EXPECT_EQ(ranks, x.tree.num_ranks());
  EXPECT_LE(recorder.last_load, x.naive.seconds * (1 + kTolerance) + kNothing);
}

// A stage begins when the first rank starts one of its steps and ends when the last one has finished.
void compare_stages(const Comparison& x, const Simulation& s) {
  for (const StageUse& stage : s.stages) {
    double begin = x.naive.seconds;
    double end = 0;
    for (const NaiveStep& t : x.naive.steps) {
      if (t.number < stage.first_step || t.number >= stage.first_step + stage.num_steps) continue;
      begin = std::min(begin, t.start);
      end = std::max(end, t.done);
    }
    EXPECT_TRUE(x.is_same_time(stage.begin, begin) && x.is_same_time(stage.end, end))
        << stage.label << " (steps from " << stage.first_step << "): " << stage.begin << " " << stage.end << " not "
        << begin << " " << end;
  }
}

void compare(const Comparison& x, const Simulation& s) {
  EXPECT_TRUE(s.is_complete);
  EXPECT_TRUE(x.is_same_time(s.seconds, x.naive.seconds)) << s.seconds << " not " << x.naive.seconds;
  EXPECT_EQ(s.flows, static_cast<double>(x.naive.flows.size()));
  EXPECT_EQ(s.flows_done, s.flows);
  EXPECT_LE(s.rank_classes, x.tree.num_ranks());
  compare_links(x, s);
  compare_stages(x, s);
}

// With nobody watching, equal steps may be taken once.
void compare(const Comparison& x, SimulationEngine engine) {
  SimulationOptions options = x.c.options;
  options.engine = engine;
  options.keep_path = false;
  const Simulation alone = simulate(x.c.plan, x.c.topology, x.c.size, options);
  const bool is_told = engine == SimulationEngine::kFlows || engine == SimulationEngine::kClasses;
  EXPECT_TRUE(!is_told || alone.engine == engine);
  compare(x, alone);
  EXPECT_TRUE(x.is_same_time(alone.terms.total(), alone.seconds));
  SCOPED_TRACE("watched");
  options.keep_path = true;
  Recorder recorder;
  options.observer = &recorder;
  const Simulation watched = simulate(x.c.plan, x.c.topology, x.c.size, options);
  compare(x, watched);
  check_path(x, watched);
  compare_records(x, recorder, watched.engine == SimulationEngine::kFlows);
}

class AgainstTheOracle : public ::testing::TestWithParam<int> {};

TEST_P(AgainstTheOracle, EnginesAgree) {
  int num_chaotic =
      0;  // long pipelines with much incast can turn the last digit of the size into the third of the time
  for (int i = GetParam(); i < num_cases(); i += kNumBatches) {
    const SimulationCase c = draw(static_cast<std::uint64_t>(i));
    SCOPED_TRACE("seed " + std::to_string(i) + ": " + c.words());
    const NaiveTree tree(c.topology);
    const NaiveSimulation naive = test::simulate_naively(c.plan, c.topology, c.size, c.options);
    const double other = test::simulate_naively(c.plan, c.topology, c.size * (1 + 1e-12), c.options).seconds;
    if (!test::is_close(other, naive.seconds, 1e-10)) {
      ++num_chaotic;
      continue;
    }
    const Comparison x{c, naive, tree};
    for (const auto& [engine, name] : {std::pair(SimulationEngine::kFlows, "flows"),
                                       {SimulationEngine::kGraph, "graph"},
                                       {SimulationEngine::kFilling, "filling"},
                                       {SimulationEngine::kClasses, "classes"},
                                       {SimulationEngine::kAuto, "auto"}}) {
      SCOPED_TRACE(name);
      ASSERT_NO_THROW(compare(x, engine));
    }
    if (HasFailure()) return;  // one case is enough
  }
  EXPECT_LE(num_chaotic, num_cases() / kNumBatches / 50);
}

// Per link, how long bytes of the stage were flowing over it.
std::vector<double> busy_with(const Comparison& x, const StageUse& stage) {
  std::vector<std::vector<std::pair<double, double>>> times(x.naive.links.size());
  for (const NaiveFlow& f : x.naive.flows) {
    if (f.number < stage.first_step || f.number >= stage.first_step + stage.num_steps) continue;
    for (const std::size_t l : x.tree.path(f.from, f.to)) times[l].emplace_back(f.flowing, f.end);
  }
  std::vector<double> busy(times.size(), 0);
  for (std::size_t l = 0; l < times.size(); ++l) {
    std::sort(times[l].begin(), times[l].end());
    double until = 0;
    for (const auto& [begin, end] : times[l]) {
      busy[l] += std::max(end - std::max(begin, until), 0.0);
      until = std::max(until, end);
    }
  }
  return busy;
}

// What a stage is said to have kept busy, its own bytes did.
TEST(Stages, CountTheirOwnBytes) {
  for (int i = 0; i < num_cases() / 4; ++i) {
    const SimulationCase c = draw(static_cast<std::uint64_t>(i));
    SCOPED_TRACE("seed " + std::to_string(i) + ": " + c.words());
    const NaiveTree tree(c.topology);
    const NaiveSimulation naive = simulate_naively(c.plan, c.topology, c.size, c.options);
    const Comparison x{c, naive, tree};
    for (const SimulationEngine engine : {SimulationEngine::kFlows, SimulationEngine::kClasses}) {
      SimulationOptions options = c.options;
      options.engine = engine;
      for (const StageUse& stage : simulate(c.plan, c.topology, c.size, options).stages) {
        const std::vector<double> busy = busy_with(x, stage);
        if (*std::max_element(busy.begin(), busy.end()) <= kNothing) continue;
        const double own = busy[NaiveTree::link(tree.instance(stage.busiest.node), stage.busiest.is_down)];
        EXPECT_TRUE(x.is_same_time(stage.busy_seconds, own))
            << stage.label << " (steps from " << stage.first_step << "), " << link_name(c.topology, stage.busiest)
            << ": " << stage.busy_seconds << " not " << own;
      }
    }
    if (HasFailure()) return;  // one case is enough
  }
}

INSTANTIATE_TEST_SUITE_P(Batches, AgainstTheOracle, ::testing::Range(0, kNumBatches));

}  // namespace
}  // namespace gar
