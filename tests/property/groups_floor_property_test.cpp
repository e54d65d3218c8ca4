// What two levels of uneven groups cost at least, in any number of chunks, is not above what they are priced at: of
// servers on one switch, which may differ, and of racks with plans of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/model.hpp"
#include "gar/topology.hpp"
#include "planner/fragment.hpp"
#include "planner/groups_floor.hpp"
#include "planner/subtree.hpp"
#include "support/random_topology.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

int num_cases() { return test::drawn(60, 500, 4000); }

std::int64_t below(std::mt19937_64& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
}

double random_size(std::mt19937_64& random) {
  return std::floor(std::pow(10.0, 1 + 8 * static_cast<double>(random() >> 11) * 0x1.0p-53));
}

ModelOptions random_options(std::mt19937_64& random) {
  ModelOptions options;
  const ModelKind kinds[] = {ModelKind::kGenModel, ModelKind::kPaper, ModelKind::kAbc};
  options.kind = kinds[random() % 3];
  options.degree = random() % 2 == 0 ? IncastDegree::kSenders : IncastDegree::kParticipants;
  options.collective = kCollectives[random() % kCollectives.size()];
  options.overlap = true;
  return options;
}

/// Returns how close the floor came to a price.
double expect_below(const GroupsFloor& floor, const PricedPlan& priced, double size, const std::string& what) {
  double closest = 0;
  for (std::int64_t chunks = 1; chunks <= 4096; chunks *= 4) {
    const double price = priced.pipelined_cost(size, chunks).total();
    const double least = floor.seconds(size, chunks);
    EXPECT_LE(least, price * (1 + 1e-10)) << what << ", " << chunks << " chunks";
    closest = std::max(closest, least / price);
  }
  return closest;
}

TEST(GroupsFloor, OfServersIsNotAboveThePrice) {
  double closest = 0;
  for (int i = 0; i < num_cases(); ++i) {
    std::mt19937_64 random(static_cast<std::uint64_t>(i + 1));
    test::RandomTopologyOptions shape;
    shape.min_servers = 5;
    shape.max_servers = 60;
    shape.max_levels = 1;
    shape.decades = static_cast<double>(below(random, 3)) / 2;
    shape.same_per_level = random() % 2 == 0;
    const Topology star = test::random_topology(random, shape);
    const Node& root = star.node(star.root());
    const std::int64_t n = star.num_servers();
    const std::int64_t groups = 2 + below(random, n / 2 - 1);
    if (n % groups == 0) continue;
    const ModelOptions options = random_options(random);
    const double size = random_size(random);
    std::vector<Footprint> servers;
    double nearest = star.node(root.children.front().node).alpha;
    for (const ChildRun& run : root.children) {
      servers.push_back(server_footprint(star.node(run.node)));
      nearest = std::min(nearest, star.node(run.node).alpha);
    }
    const std::int64_t large = (n + groups - 1) / groups;
    const GroupsFloor floor =
        groups_floor(best_server(joined(servers)), {n, groups, large, root.alpha + 2 * nearest, true}, size, options);
    // As the planner sees it: without the stage that puts the blocks of a half in order.
    closest = std::max(closest, expect_below(floor, PricedPlan(uneven_hcps(n, {large, groups}), star, options), size,
                                             "seed " + std::to_string(i + 1) + ", " + star.name()));
  }
  EXPECT_GT(closest, 0.95) << "this bounds nothing";
}

/// Children in groups as even as possible, then between these.
FragmentPtr in_groups(const FragmentPtr& child, std::int64_t c, std::int64_t groups, std::int64_t units) {
  FragmentRuns level;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t members = c / groups + (g < c % groups ? 1 : 0);
    level.emplace_back(members == 1 ? child : digits_fragment({{child, members}}, {{members}}, ""), 1);
  }
  return acps_fragment(level, units, "");
}

TEST(GroupsFloor, OfRacksIsNotAboveThePrice) {
  double closest = 0;
  for (int i = 0; i < num_cases(); ++i) {
    std::mt19937_64 random(static_cast<std::uint64_t>(i + 1'000'001));
    test::RandomTopologyOptions shape;
    shape.min_servers = 2;
    shape.max_servers = 16;
    shape.max_levels = 2;
    shape.same_per_level = random() % 2 == 0;
    shape.decades = static_cast<double>(below(random, 3)) / 2;
    const Topology rack = test::random_topology(random, shape);
    std::vector<Node> nodes;
    for (NodeId id = 0; id < rack.num_nodes(); ++id) nodes.push_back(rack.node(id));
    PaperParams paper;
    nodes[static_cast<std::size_t>(rack.root())].uplink = paper.inner_link;
    const std::int64_t c = 5 + below(random, 20);
    Node top;
    top.name = "root";
    top.alpha = paper.alpha;
    top.children = {{rack.root(), c}};
    nodes.push_back(top);
    const auto root = static_cast<NodeId>(nodes.size()) - 1;
    const Topology tree("racks", nodes, root);

    const std::int64_t groups = 2 + below(random, c / 2 - 1);
    if (c % groups == 0) continue;
    const std::int64_t n = rack.num_servers();
    const ModelOptions options = random_options(random);
    const double size = random_size(random);
    const std::int64_t units = units_for(tree);
    const auto factors = ordered_factorisations(n);
    FragmentPtr child = digits_fragment({{nullptr, n}}, {factors[random() % factors.size()]}, "");
    if (random() % 2 == 0) child = rearranged_fragment(child, 1 + below(random, n), units);
    const PricedPlan of_child(to_plan(child, "", units), subtree(tree, rack.root()), options);
    Footprint priced = counted_footprint(placement_of(child, units), tree, rack.root(), true, &of_child.busy());
    const Terms total = of_child.cost(size);
    priced.fixed.alpha = total.alpha;
    priced.fixed.mu = total.mu;
    priced.slope = 1 / size * total;
    priced.slope.alpha = priced.slope.mu = 0;
    priced.steps = of_child.steps();
    const GroupsFloor floor = groups_floor(
        priced, {c, groups, (c + groups - 1) / groups, top.alpha + 2 * priced.latency, child->num_active == n}, size,
        options);
    const PricedPlan whole(to_plan(in_groups(child, c, groups, units), "", units), tree, options);
    closest = std::max(closest, expect_below(floor, whole, size, "seed " + std::to_string(i + 1'000'001)));
  }
  EXPECT_GT(closest, 0.95) << "this bounds nothing";
}

}  // namespace
}  // namespace gar
