// Classes of ranks, links and flows that cannot be told apart give what every flow on its own gives: 1,000 seeded
// cases on networks with much symmetry, with some, and with some that a slow server or a bad link breaks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/planner.hpp"
#include "gar/simulate.hpp"
#include "gar/topology.hpp"
#include "support/naive_simulator.hpp"
#include "support/random_simulation.hpp"
#include "support/slow_build.hpp"
#include "support/terms.hpp"

namespace gar {
namespace {

using test::chance;
using test::log_uniform;
using test::SimulationCase;
using test::uniform;

constexpr double kTolerance = 1e-9;
constexpr int kNumBatches = 8;  // tests of their own: a failure says where, the rest still runs
int num_cases() { return test::drawn(64, 504, 1008); }

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : random_(seed) {}

  SimulationCase draw() {
    const auto form = random_() % 3;
    Topology topology = form == 0 ? equal_children() : form == 1 ? kinds_of_racks() : one_difference();
    const double size = std::floor(log_uniform(random_, 1e5, 1e9));
    Plan plan = draw_plan(topology, size);
    if (chance(random_, 0.4)) plan.num_chunks = uniform(random_, 2, 4);
    plan.num_chunks = std::min<std::int64_t>(plan.num_chunks, 8);
    SimulationOptions options;
    test::add_model(random_, options);
    if (chance(random_, 0.4)) test::add_conditions(random_, topology, 2, options);
    return {std::move(topology), std::move(plan), size, options};
  }

 private:
  PaperParams params() {
    PaperParams p;
    p.alpha *= log_uniform(random_, 0.01, 1);
    for (LinkParams* link : {&p.server_link, &p.inner_link, &p.cross_link}) {
      link->beta *= log_uniform(random_, 0.3, 3);
      link->epsilon = link->beta * log_uniform(random_, 0.01, 1);
      link->incast_threshold = static_cast<double>(uniform(random_, 1, 8));
    }
    return p;
  }

  Topology equal_children() {
    static const std::vector<std::vector<std::int64_t>> kShapes = {
        {8}, {16}, {24}, {2, 4}, {4, 4}, {3, 8}, {6, 4}, {8, 3}, {2, 2, 4}, {4, 2, 3}, {2, 3, 4}, {2, 2, 2, 3}};
    return make_tree(kShapes[static_cast<std::size_t>(random_() % kShapes.size())], params());
  }

  Topology kinds_of_racks() {
    std::vector<Node> nodes;
    const PaperParams p = params();
    Node root;
    root.name = "root";
    root.alpha = p.alpha;
    const std::int64_t num_kinds = uniform(random_, 1, 3);
    for (std::int64_t k = 0; k < num_kinds; ++k) {
      const PaperParams own = params();
      Node server;
      server.name = "server";
      server.alpha = own.alpha;
      server.uplink = own.server_link;
      server.server = own.server;
      nodes.push_back(server);
      Node rack;
      rack.name = "rack" + std::string(1, static_cast<char>('a' + k));
      rack.alpha = p.alpha;
      rack.uplink = own.inner_link;
      rack.children = {{static_cast<NodeId>(nodes.size() - 1), uniform(random_, 2, 5)}};
      nodes.push_back(rack);
      root.children.push_back({static_cast<NodeId>(nodes.size() - 1), uniform(random_, 1, 3)});
    }
    if (chance(random_, 0.2)) {  // servers at the root
      Node server = nodes.front();
      server.name = "direct";
      server.uplink = p.inner_link;
      nodes.push_back(server);
      root.children.push_back({static_cast<NodeId>(nodes.size() - 1), uniform(random_, 1, 3)});
    }
    nodes.push_back(root);
    return Topology("kinds", nodes, static_cast<NodeId>(nodes.size() - 1));
  }

  // Racks of equal servers, or servers on one switch, some of which differ in a single parameter.
  Topology one_difference() {
    PaperParams p = params();
    for (LinkParams* link : {&p.server_link, &p.inner_link}) {
      link->incast_threshold = static_cast<double>(uniform(random_, 1, 3));
    }
    const Node server{"server", p.alpha, p.server_link, p.server, {}};
    const Node rack{"rack", p.alpha, p.inner_link, {}, {}};
    const bool has_racks = chance(random_, 0.7);
    const bool differs_in_rack = has_racks && chance(random_, 0.4);
    Node other = differs_in_rack ? rack : server;
    double* const values[] = {&other.alpha,          &other.uplink.beta,
                              &other.uplink.epsilon, &other.uplink.incast_threshold,
                              &other.server.gamma,   &other.server.delta};
    const auto parameter = static_cast<std::size_t>(random_() % (differs_in_rack ? 4 : 6));
    if (parameter == 3) {
      *values[parameter] += chance(random_, 0.5) ? 1 : -1;
    } else {
      *values[parameter] *= chance(random_, 0.2) ? 0 : log_uniform(random_, 0.2, 5);
    }
    if (other.uplink.beta == 0) other.uplink.beta = 2 * p.cross_link.beta;

    std::vector<Node> nodes{server, differs_in_rack ? server : other};
    Node root{"root", p.alpha, {}, {}, {}};
    if (!has_racks) {
      root.children = some_of(0, 1, 4, 10);
    } else if (differs_in_rack) {
      const std::int64_t per_rack = uniform(random_, 2, 5);
      for (Node node : {rack, other}) {
        node.children = {{0, per_rack}};
        nodes.push_back(node);
      }
      root.children = some_of(2, 3, 1, 3);
    } else {
      // Some servers of every rack, or all servers of some racks.
      const bool is_mixed = chance(random_, 0.5);
      const std::vector<ChildRun> mixed = some_of(0, 1, 1, 3);
      const std::int64_t per_rack = uniform(random_, 2, 5);
      for (const NodeId id : {0, 1}) {
        nodes.push_back(rack);
        nodes.back().children = is_mixed ? mixed : std::vector<ChildRun>{{id, per_rack}};
      }
      root.children = is_mixed ? std::vector<ChildRun>{{2, uniform(random_, 2, 4)}} : some_of(2, 3, 1, 3);
    }
    nodes.push_back(root);
    return Topology("one difference", nodes, static_cast<NodeId>(nodes.size() - 1));
  }

  // Runs of both nodes, each of `low` to `high`, in either order; now and then the first one comes once more.
  std::vector<ChildRun> some_of(NodeId a, NodeId b, std::int64_t low, std::int64_t high) {
    std::vector<ChildRun> runs{{a, uniform(random_, low, high)}, {b, uniform(random_, low, high)}};
    if (chance(random_, 0.5)) std::swap(runs[0], runs[1]);
    if (chance(random_, 0.3)) runs.push_back({runs[0].node, uniform(random_, low, high)});
    return runs;
  }

  Plan draw_plan(const Topology& topology, double size) {
    const std::int64_t n = topology.num_servers();
    switch (random_() % 10) {
      case 0:
      case 1:
        return gentree(topology, size).plan;
      case 2:
        return gentree(topology, size, {false, {}}).plan;
      case 3:
      case 4:
        return gentree_plus(topology, size).plan;
      case 5:
        return cps(n);
      case 6: {
        const auto all = ordered_factorisations(n);
        return hcps(n, all[static_cast<std::size_t>(random_() % all.size())]);
      }
      case 7:
        return n % 4 == 0 ? acps(std::vector<std::int64_t>(4, n / 4)) : rhd(n);
      case 8:
        return ring(n);
      default:
        return test::random_classic_plan(random_, n);
    }
  }

  std::mt19937_64 random_;
};

// Values of all links, in ascending order.
template <class T>
std::vector<T> of_all_links(const Simulation& s, T LinkUse::*value) {
  std::vector<T> out;
  for (const LinkUse& use : s.links) out.insert(out.end(), static_cast<std::size_t>(use.count), use.*value);
  std::sort(out.begin(), out.end());
  return out;
}

void expect_same_values(const std::vector<double>& a, const std::vector<double>& b, double tolerance,
                        const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << what;
}

void compare(const SimulationCase& c, const Simulation& flows, const Simulation& classes) {
  const double moment = kTolerance * flows.seconds;
  EXPECT_TRUE(test::is_close(classes.seconds, flows.seconds, kTolerance)) << classes.seconds << " " << flows.seconds;
  EXPECT_EQ(classes.flows, flows.flows);
  EXPECT_EQ(classes.flows_done, classes.flows);
  EXPECT_NEAR(classes.terms.total(), classes.seconds, moment);
  EXPECT_NEAR(flows.terms.total(), flows.seconds, moment);
  EXPECT_EQ(flows.rank_classes, c.topology.num_servers());
  EXPECT_EQ(static_cast<double>(flows.flow_classes), flows.flows);
  EXPECT_LE(classes.rank_classes, flows.rank_classes);
  EXPECT_LE(classes.flow_classes, flows.flow_classes);

  expect_same_values(of_all_links(classes, &LinkUse::floats), of_all_links(flows, &LinkUse::floats),
                     kTolerance * c.size, "floats");
  expect_same_values(of_all_links(classes, &LinkUse::busy_seconds), of_all_links(flows, &LinkUse::busy_seconds), moment,
                     "busy seconds");
  expect_same_values(of_all_links(classes, &LinkUse::incast_seconds), of_all_links(flows, &LinkUse::incast_seconds),
                     moment, "incast seconds");
  expect_same_values(of_all_links(classes, &LinkUse::utilisation), of_all_links(flows, &LinkUse::utilisation),
                     kTolerance, "utilisation");

  EXPECT_EQ(of_all_links(classes, &LinkUse::max_senders), of_all_links(flows, &LinkUse::max_senders));

  // Each class is named by a link that really did this.
  const test::NaiveTree tree(c.topology);
  std::map<std::size_t, LinkUse> by_link;
  for (const LinkUse& use : flows.links) {
    by_link[test::NaiveTree::link(tree.instance(use.link.node), use.link.is_down)] = use;
  }
  for (const LinkUse& use : classes.links) {
    const auto found = by_link.find(test::NaiveTree::link(tree.instance(use.link.node), use.link.is_down));
    ASSERT_TRUE(found != by_link.end()) << link_name(c.topology, use.link);
    EXPECT_NEAR(use.busy_seconds, found->second.busy_seconds, moment) << link_name(c.topology, use.link);
    EXPECT_NEAR(use.floats, found->second.floats, kTolerance * c.size) << link_name(c.topology, use.link);
    EXPECT_EQ(use.max_senders, found->second.max_senders) << link_name(c.topology, use.link);
  }

  ASSERT_EQ(classes.stages.size(), flows.stages.size());
  for (std::size_t i = 0; i < flows.stages.size(); ++i) {
    const StageUse& a = classes.stages[i];
    const StageUse& b = flows.stages[i];
    SCOPED_TRACE(b.label);
    EXPECT_EQ(a.label, b.label);
    EXPECT_EQ(a.first_step, b.first_step);
    EXPECT_EQ(a.num_steps, b.num_steps);
    EXPECT_NEAR(a.begin, b.begin, moment);
    EXPECT_NEAR(a.end, b.end, moment);
    EXPECT_NEAR(a.busy_seconds, b.busy_seconds, moment);
    EXPECT_EQ(a.senders, b.senders) << link_name(c.topology, a.busiest) << ", " << link_name(c.topology, b.busiest);
    EXPECT_NEAR(a.calculation_seconds, b.calculation_seconds, moment);
  }
}

struct Counts {
  int cases = 0;
  int with_fewer = 0;
  double ranks = 0;
  double classes = 0;
  double flows = 0;
  double flow_classes = 0;
  int memoised = 0;
};

class Quotient : public ::testing::TestWithParam<int> {
 public:
  static Counts& counts() {
    static Counts all;
    return all;
  }
  static void TearDownTestSuite() {
    const Counts& n = counts();
    if (n.cases == 0) return;
    std::printf(
        "%d of %d cases had fewer classes than ranks, %d with steps taken once; %.1f ranks in %.1f classes, "
        "%.0f flows in %.0f\n",
        n.with_fewer, n.cases, n.memoised, n.ranks / n.cases, n.classes / n.cases, n.flows / n.cases,
        n.flow_classes / n.cases);
  }
};

TEST_P(Quotient, EqualsFlowsOnTheirOwn) {
  int cases = 0;
  int with_fewer = 0;
  int num_chaotic = 0;
  for (int i = GetParam(); i < num_cases(); i += kNumBatches) {
    const SimulationCase c = Drawing(static_cast<std::uint64_t>(i)).draw();
    SCOPED_TRACE("seed " + std::to_string(i) + ": " + c.words());
    SimulationOptions options = c.options;
    options.engine = SimulationEngine::kFlows;
    const Simulation flows = simulate(c.plan, c.topology, c.size, options);
    // Long pipelines with much incast can be chaotic; then there is nothing to compare.
    const Simulation other = simulate(c.plan, c.topology, c.size * (1 + 1e-12), options);
    if (!test::is_close(other.seconds, flows.seconds, 1e-10)) {
      ++num_chaotic;
      continue;
    }
    options.engine = SimulationEngine::kClasses;
    const Simulation classes = simulate(c.plan, c.topology, c.size, options);
    compare(c, flows, classes);
    options.keep_path = false;  // then equal steps may be taken once
    const Simulation short_cut = simulate(c.plan, c.topology, c.size, options);
    compare(c, flows, short_cut);
    cases += 1;
    with_fewer += classes.rank_classes < flows.rank_classes;
    Counts& all = counts();
    all.ranks += static_cast<double>(flows.rank_classes);
    all.classes += static_cast<double>(classes.rank_classes);
    all.flows += static_cast<double>(flows.flow_classes);
    all.flow_classes += static_cast<double>(classes.flow_classes);
    all.memoised += short_cut.memoised_steps > 0;
    if (HasFailure()) return;  // one case is enough
  }
  EXPECT_GT(3 * with_fewer, cases);
  EXPECT_LE(num_chaotic, num_cases() / kNumBatches / 25);
  counts().cases += cases;
  counts().with_fewer += with_fewer;
}

INSTANTIATE_TEST_SUITE_P(Batches, Quotient, ::testing::Range(0, kNumBatches));

}  // namespace
}  // namespace gar
