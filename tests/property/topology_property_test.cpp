// Random trees: the shared tree against its own expansion, and files that say the same after a round trip.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gar/topology.hpp"
#include "gar/topology_io.hpp"
#include "support/random_topology.hpp"

namespace gar {
namespace {

constexpr int kCases = 400;

test::RandomTopologyOptions options_of(std::uint64_t seed) {
  test::RandomTopologyOptions options;
  options.max_servers = seed % 5 == 0 ? 300 : 40;
  options.max_levels = 1 + static_cast<int>(seed % 6);
  options.uneven_probability = seed % 3 == 0 ? 0 : 0.6;
  options.same_per_level = seed % 2 == 0;
  options.decades = seed % 7 == 0 ? 0 : 2;
  return options;
}

Topology topology_of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return test::random_topology(random, options_of(seed));
}

// Everything about the subtree at an instance but names, spelled out.
std::string spelled(const Topology& t, const ExpandedTree& tree, std::int32_t i, std::vector<std::string>& memo) {
  std::string& text = memo[static_cast<std::size_t>(i)];
  if (!text.empty()) return text;
  const Node& node = t.node(tree.node[static_cast<std::size_t>(i)]);
  std::ostringstream out;
  out.precision(17);
  out << node.alpha << ' ' << node.uplink.beta << ' ' << node.uplink.epsilon << ' ' << node.uplink.incast_threshold
      << ' ' << node.server.gamma << ' ' << node.server.delta << " (";
  for (std::int32_t j = i + 1; j < tree.end[static_cast<std::size_t>(i)]; j = tree.end[static_cast<std::size_t>(j)]) {
    out << spelled(t, tree, j, memo) << ',';
  }
  out << ')';
  return text = out.str();
}

TEST(TopologyProperty, CountsEqualTheExpansion) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const test::RandomTopologyOptions options = options_of(seed);
    const Topology t = topology_of(seed);
    const ExpandedTree tree = expand(t, t.root());
    EXPECT_GE(t.num_servers(), options.min_servers);
    EXPECT_LE(t.num_servers(), options.max_servers);
    EXPECT_LE(t.height(t.root()), options.max_levels);
    EXPECT_EQ(t.num_servers(), tree.num_ranks());
    EXPECT_EQ(t.num_servers(), static_cast<std::int64_t>(tree.leaf.size()));
    EXPECT_EQ(t.num_servers() + t.num_switches(), static_cast<std::int64_t>(tree.size()));
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const NodeId node = tree.node[i];
      EXPECT_EQ(t.num_servers(node), tree.last_rank[i] - tree.first_rank[i]);
      std::int64_t children = 0;
      std::int32_t deepest = tree.depth[i];
      for (std::size_t j = i + 1; j < static_cast<std::size_t>(tree.end[i]); ++j) {
        children += tree.parent[j] == static_cast<std::int32_t>(i) ? 1 : 0;
        deepest = std::max(deepest, tree.depth[j]);
        EXPECT_LT(tree.node[j], node);
      }
      EXPECT_EQ(t.num_children(node), children);
      EXPECT_EQ(t.height(node), deepest - tree.depth[i]);
    }
  }
}

TEST(TopologyProperty, ShapesAreEqualExactlyWhenSubtreesAre) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Topology t = topology_of(seed);
    const ExpandedTree tree = expand(t, t.root());
    std::vector<std::string> memo(tree.size());
    std::map<std::string, std::int32_t> shape_of;
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const std::int32_t shape = t.shape(tree.node[i]);
      EXPECT_EQ(shape_of.try_emplace(spelled(t, tree, static_cast<std::int32_t>(i), memo), shape).first->second, shape);
    }
    EXPECT_EQ(shape_of.size(), static_cast<std::size_t>(t.num_shapes()));
  }
}

// The naive way: climb from both servers to the first common ancestor.
double climbed_latency(const Topology& t, const ExpandedTree& tree, std::int32_t a, std::int32_t b) {
  const auto alpha = [&](std::int32_t i) { return t.node(tree.node[static_cast<std::size_t>(i)]).alpha; };
  double sum = 0;
  while (a != b) {
    std::int32_t& lower = a > b ? a : b;  // in preorder an ancestor has the smaller index
    sum += alpha(lower);
    lower = tree.parent[static_cast<std::size_t>(lower)];
  }
  return sum + alpha(a);
}

TEST(TopologyProperty, PathLatencyEqualsTheClimb) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Topology t = topology_of(seed);
    const ExpandedTree tree = expand(t, t.root());
    std::mt19937_64 random(seed + 1);
    for (int i = 0; i < 50; ++i) {
      const auto a = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(t.num_servers()));
      const auto b = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(t.num_servers()));
      const double expected = a == b ? 0
                                     : climbed_latency(t, tree, tree.leaf[static_cast<std::size_t>(a)],
                                                       tree.leaf[static_cast<std::size_t>(b)]);
      EXPECT_NEAR(t.path_latency(a, b), expected, 1e-12 * expected);
    }
  }
}

TEST(TopologyProperty, LongestPathIsTheLongestOfAllPairs) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Topology t = topology_of(seed);
    if (t.num_servers() > 40) continue;
    double longest = 0;
    for (std::int64_t a = 0; a < t.num_servers(); ++a) {
      for (std::int64_t b = 0; b < a; ++b) longest = std::max(longest, t.path_latency(a, b));
    }
    EXPECT_NEAR(longest_path_latency(t), longest, 1e-12 * longest);
  }
}

TEST(TopologyProperty, InstanceNamesAreUnique) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Topology t = topology_of(seed);
    const ExpandedTree tree = expand(t, t.root());
    std::map<std::string, std::int32_t> instance;
    for (std::int32_t rank = 0; rank < tree.num_ranks(); ++rank) {
      std::int32_t i = tree.leaf[static_cast<std::size_t>(rank)];
      for (; i > 0; i = tree.parent[static_cast<std::size_t>(i)]) {
        const std::string name = t.instance_name(rank, tree.depth[static_cast<std::size_t>(i)]);
        EXPECT_EQ(instance.try_emplace(name, i).first->second, i) << name;
      }
    }
    EXPECT_EQ(instance.size() + 1, tree.size());
  }
}

void expect_same(const Topology& a, const Topology& b) {
  EXPECT_EQ(a.name(), b.name());
  ASSERT_EQ(a.num_nodes(), b.num_nodes());
  for (NodeId id = 0; id < a.num_nodes(); ++id) {
    EXPECT_EQ(a.node(id).name, b.node(id).name);
    EXPECT_EQ(a.node(id).alpha, b.node(id).alpha);
    EXPECT_EQ(a.node(id).uplink, b.node(id).uplink);
    EXPECT_EQ(a.node(id).server, b.node(id).server);
    EXPECT_EQ(a.node(id).children, b.node(id).children);
    EXPECT_EQ(a.shape(id), b.shape(id));
  }
}

TEST(TopologyProperty, FilesRoundTripBitForBit) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Topology t = topology_of(seed);
    std::ostringstream out;
    write_topology(t, out);
    SCOPED_TRACE(out.str());
    expect_same(t, parse_topology(out.str(), "round.json"));
  }
}

// The same tree as a flat list with a name for every instance has the same shape.
TEST(TopologyProperty, FlatListsHaveTheSameShape) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Topology t = topology_of(seed);
    const ExpandedTree tree = expand(t, t.root());
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const Node& node = t.node(tree.node[i]);
      std::ostringstream line;
      line.precision(17);
      line << "{\"name\":\"n" << i << "\",\"alpha\":" << node.alpha;
      if (i > 0) {
        line << ",\"parent\":\"n" << tree.parent[i] << "\",\"beta\":" << node.uplink.beta
             << ",\"epsilon\":" << node.uplink.epsilon << ",\"incast_threshold\":" << node.uplink.incast_threshold;
      }
      if (node.is_server()) line << ",\"gamma\":" << node.server.gamma << ",\"delta\":" << node.server.delta;
      lines.push_back(line.str() + "}");
    }
    // Siblings keep their order; everything else may stand anywhere, the root last for example.
    std::string text = "{\"schema\":\"gar.topology/1\",\"nodes\":[";
    for (std::size_t i = 1; i < lines.size(); ++i) text += lines[i] + ",";
    text += lines[0] + "]}";
    const Topology flat = parse_topology(text, "flat.json");
    EXPECT_EQ(flat.num_servers(), t.num_servers());
    EXPECT_EQ(flat.num_shapes(), t.num_shapes());
    const ExpandedTree flat_tree = expand(flat, flat.root());
    EXPECT_EQ(flat_tree.parent, tree.parent);
    std::vector<std::string> memo(tree.size());
    std::vector<std::string> flat_memo(tree.size());
    EXPECT_EQ(spelled(flat, flat_tree, 0, flat_memo), spelled(t, tree, 0, memo));
  }
}

}  // namespace
}  // namespace gar
