// The validated tree, the generators and the paper's networks.
#include "gar/topology.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gar/errors.hpp"

namespace gar {
namespace {

constexpr double kAlpha = 6.58e-3;

// What the constructor says about some nodes.
std::string error_of(std::vector<Node> nodes, NodeId root = 0) {
  try {
    const Topology topology("t", std::move(nodes), root);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

std::string spec_error(const std::string& spec) {
  try {
    (void)topology_from_spec(spec);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << "\nin: " << text;
}

Node server(const std::string& name = "server", double alpha = 1) { return {name, alpha, {2, 3, 4}, {5, 6}, {}}; }
Node inner(const std::string& name, std::vector<ChildRun> children, double alpha = 1) {
  return {name, alpha, {2, 3, 4}, {}, std::move(children)};
}

//        root
//      /      \.
//   2 x a    1 x b
//   3 srv    2 srv
TEST(Topology, CountsThroughRuns) {
  const Topology t("t", {inner("root", {{1, 2}, {2, 1}}), inner("a", {{3, 3}}), inner("b", {{3, 2}}), server()}, 0);
  EXPECT_EQ(t.num_nodes(), 4);
  EXPECT_EQ(t.num_servers(), 8);
  EXPECT_EQ(t.num_switches(), 4);
  EXPECT_EQ(t.num_children(t.root()), 3);
  EXPECT_EQ(t.height(t.root()), 2);
  EXPECT_EQ(t.num_shapes(), 4);
  for (NodeId id = 0; id < t.num_nodes(); ++id) {
    for (const ChildRun& run : t.node(id).children) EXPECT_LT(run.node, id);
  }
}

TEST(Topology, InstanceNames) {
  const Topology t("t", {inner("top", {{1, 2}, {2, 1}}), inner("a", {{3, 3}}), inner("b", {{3, 2}}), server()}, 0);
  EXPECT_EQ(t.instance_name(0, 0), "top");
  EXPECT_EQ(t.instance_name(0, 1), "a0");
  EXPECT_EQ(t.instance_name(5, 1), "a1");
  EXPECT_EQ(t.instance_name(5, 2), "a1/server2");
  EXPECT_EQ(t.instance_name(7, 2), "b/server1");
  EXPECT_THROW((void)t.instance_name(8, 1), InvalidArgument);
  EXPECT_THROW((void)t.instance_name(0, 3), InvalidArgument);
  EXPECT_THROW((void)t.instance_name(0, -1), InvalidArgument);
}

TEST(Topology, SiblingsOfOneNameAreNumberedAcrossRuns) {
  const Topology t = builtin_topology("asy384");
  EXPECT_EQ(t.instance_name(0, 2), "rack0/server0");
  EXPECT_EQ(t.instance_name(8 * 32, 2), "rack8/server0");
  EXPECT_EQ(t.instance_name(383, 2), "rack15/server15");
}

TEST(Topology, EqualNodesBecomeOneAndShapesIgnoreNames) {
  // Two racks written out twice, with their own servers; the third has another name, the fourth another alpha.
  const Topology t("t",
                   {inner("root", {{1, 1}, {2, 1}, {3, 1}, {4, 1}}), inner("rack", {{5, 2}}), inner("rack", {{6, 2}}),
                    inner("other", {{5, 1}, {6, 1}}), inner("rack", {{5, 2}}, 9), server(), server()},
                   0);
  EXPECT_EQ(t.num_nodes(), 5);
  EXPECT_EQ(t.num_shapes(), 4);
  const std::vector<ChildRun>& runs = t.node(t.root()).children;
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].count, 2);
  EXPECT_EQ(t.shape(runs[0].node), t.shape(runs[1].node));
  EXPECT_NE(t.shape(runs[0].node), t.shape(runs[2].node));
}

TEST(Topology, DropsUnreachableAndClearsUnusedParameters) {
  Node root = inner("root", {{2, 1}});
  root.server = {7, 8};
  const Topology t("t", {root, inner("nowhere", {{1, 1}}), server()}, 0);  // the cycle cannot be reached
  EXPECT_EQ(t.num_nodes(), 2);
  EXPECT_EQ(t.node(t.root()).uplink, LinkParams{});
  EXPECT_EQ(t.node(t.root()).server, ServerParams{});
}

TEST(Topology, OneServer) {
  const Topology t("t", {server()}, 0);
  EXPECT_EQ(t.num_servers(), 1);
  EXPECT_EQ(t.num_switches(), 0);
  EXPECT_EQ(t.height(t.root()), 0);
  EXPECT_EQ(t.path_latency(0, 0), 0);
  EXPECT_EQ(t.instance_name(0, 0), "server");
}

TEST(Topology, RefusesBrokenTrees) {
  expect_contains(error_of({}), {"at least one server"});
  expect_contains(error_of({server()}, 1), {"root 1", "1 nodes"});
  expect_contains(error_of({inner("root", {{7, 1}})}), {"'root'", "child 7"});
  expect_contains(error_of({inner("root", {{-1, 1}})}), {"child -1"});
  expect_contains(error_of({inner("root", {{1, 0}}), server()}), {"'root'", "0 times", "at least 1"});
  expect_contains(error_of({inner("r", {{1, 1}}), inner("a", {{2, 1}}), inner("b", {{1, 1}})}),
                  {"cycle: 'a' -> 'b' -> 'a'"});
  expect_contains(error_of({inner("self", {{0, 1}})}), {"cycle: 'self' -> 'self'"});
}

TEST(Topology, RefusesBadParameters) {
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (int field = 0; field < 6; ++field) {
      Node leaf = server();
      double* const fields[] = {&leaf.alpha,          &leaf.uplink.beta,
                                &leaf.uplink.epsilon, &leaf.uplink.incast_threshold,
                                &leaf.server.gamma,   &leaf.server.delta};
      static const char* const kNames[] = {"alpha", "beta", "epsilon", "incast_threshold", "gamma", "delta"};
      *fields[field] = bad;
      expect_contains(error_of({inner("root", {{1, 2}}), leaf}), {"'server'", kNames[field], "a number from 0 to"});
    }
  }
}

TEST(Topology, RefusesBadNames) {
  expect_contains(error_of({server("a/b")}), {"'/'"});
  expect_contains(error_of({server("a\nb")}), {"0x0a"});
  expect_contains(error_of({server(std::string(256, 'x'))}), {"256 bytes", "255"});
  EXPECT_EQ(error_of({server(std::string(255, 'x'))}), "accepted");
  // rack0 rack1 rack2, and one that is called rack1.
  expect_contains(error_of({inner("root", {{1, 3}, {2, 1}}), server("rack"), server("rack1")}), {"'rack1'", "'rack'"});
  EXPECT_EQ(error_of({inner("root", {{1, 3}, {2, 1}}), server("rack"), server("rack3")}), "accepted");
  EXPECT_EQ(error_of({inner("root", {{1, 3}, {2, 1}}), server("rack"), server("rack01")}), "accepted");
  // rack0 ... rack10, and rack1 twice: rack10 and rack11.
  expect_contains(error_of({inner("root", {{1, 11}, {2, 2}}), server("rack"), server("rack1")}), {"'rack10'"});
  EXPECT_EQ(error_of({inner("root", {{1, 10}, {2, 2}}), server("rack"), server("rack1")}), "accepted");
}

TEST(Topology, RefusesTooManyServersWithoutOverflow) {
  EXPECT_EQ(error_of({inner("root", {{1, kMaxServers}}), server()}), "accepted");
  expect_contains(error_of({inner("root", {{1, kMaxServers + 1}}), server()}), {"'root'", "100000000"});
  expect_contains(error_of({inner("root", {{1, std::numeric_limits<std::int64_t>::max()}, {1, 2}}), server()}),
                  {"100000000"});
  // 2^70 servers in 71 nodes: refused at the first level that has too many.
  std::vector<Node> doubling{server()};
  for (NodeId i = 0; i < 70; ++i) doubling.push_back(inner("n", {{i, 2}}));
  expect_contains(error_of(doubling, 70), {"100000000"});
}

TEST(Topology, RefusesDeepChains) {
  const auto chain = [](NodeId links) {
    std::vector<Node> nodes{server()};
    for (NodeId i = 0; i < links; ++i) nodes.push_back(inner("n", {{i, 1}}));
    return error_of(std::move(nodes), links);
  };
  EXPECT_EQ(chain(64), "accepted");
  expect_contains(chain(65), {"64 levels"});
  expect_contains(chain(1'000'000), {"64 levels"});
}

TEST(Topology, PathLatency) {
  const Topology star = builtin_topology("ss24");
  EXPECT_DOUBLE_EQ(star.path_latency(0, 23), 3 * kAlpha);
  EXPECT_EQ(star.path_latency(5, 5), 0);
  const Topology sym = builtin_topology("sym384");
  EXPECT_DOUBLE_EQ(sym.path_latency(0, 23), 3 * kAlpha);
  EXPECT_DOUBLE_EQ(sym.path_latency(0, 24), 5 * kAlpha);
  const Topology cdc = builtin_topology("cdc384");
  EXPECT_DOUBLE_EQ(cdc.path_latency(0, 31), 3 * kAlpha);
  EXPECT_DOUBLE_EQ(cdc.path_latency(0, 255), 5 * kAlpha);
  EXPECT_DOUBLE_EQ(cdc.path_latency(0, 256), 4 * kAlpha + 0.03);
  EXPECT_DOUBLE_EQ(cdc.path_latency(383, 0), 4 * kAlpha + 0.03);
  EXPECT_THROW((void)star.path_latency(0, 24), InvalidArgument);
  EXPECT_THROW((void)star.path_latency(-1, 0), InvalidArgument);
}

TEST(Topology, ChildAt) {
  const Topology t = builtin_topology("asy384");
  const ChildPosition child = t.child_at(t.root(), 8 * 32 + 16 * 2 + 5);
  EXPECT_EQ(child.run, 1U);
  EXPECT_EQ(child.index, 2);
  EXPECT_EQ(child.first_server, 8 * 32 + 16 * 2);
  EXPECT_EQ(t.num_servers(child.node), 16);
}

// root(0) - a(1) - s(2) s(3)
//         - a(4) - s(5) s(6)
//         - s(7)
TEST(Expand, Preorder) {
  const Topology t("t", {inner("root", {{1, 2}, {2, 1}}), inner("a", {{2, 2}}), server()}, 0);
  const ExpandedTree tree = expand(t, t.root());
  EXPECT_EQ(tree.parent, (std::vector<std::int32_t>{-1, 0, 1, 1, 0, 4, 4, 0}));
  EXPECT_EQ(tree.end, (std::vector<std::int32_t>{8, 4, 3, 4, 7, 6, 7, 8}));
  EXPECT_EQ(tree.first_rank, (std::vector<std::int32_t>{0, 0, 0, 1, 2, 2, 3, 4}));
  EXPECT_EQ(tree.last_rank, (std::vector<std::int32_t>{5, 2, 1, 2, 4, 3, 4, 5}));
  EXPECT_EQ(tree.depth, (std::vector<std::int32_t>{0, 1, 2, 2, 1, 2, 2, 1}));
  EXPECT_EQ(tree.leaf, (std::vector<std::int32_t>{2, 3, 5, 6, 7}));
  EXPECT_EQ(tree.num_ranks(), 5);
  const NodeId a = t.node(t.root()).children[0].node;
  EXPECT_EQ(expand(t, a).parent, (std::vector<std::int32_t>{-1, 0, 0}));
}

TEST(Expand, RefusesWhatDoesNotFit) {
  // 100,000,000 servers behind 60 switches each.
  std::vector<Node> nodes{server()};
  for (NodeId i = 0; i < 60; ++i) nodes.push_back(inner("n", {{i, 1}}));
  nodes.push_back(inner("root", {{60, kMaxServers}}));
  const Topology t("t", std::move(nodes), 61);
  EXPECT_EQ(t.num_switches(), 60 * kMaxServers + 1);
  EXPECT_THROW((void)expand(t, t.root()), InvalidArgument);
}

TEST(Builtins, PaperNetworks) {
  struct Expected {
    const char* name;
    std::int64_t servers;
    std::int64_t switches;
    int height;
  };
  for (const Expected& e : {Expected{"ss24", 24, 1, 1},
                            {"ss32", 32, 1, 1},
                            {"sym384", 384, 17, 2},
                            {"sym512", 512, 17, 2},
                            {"asy384", 384, 17, 2},
                            {"cdc384", 384, 19, 3}}) {
    ASSERT_TRUE(is_builtin_topology(e.name));
    const Topology t = topology_from_spec(e.name);
    EXPECT_EQ(t.name(), e.name);
    EXPECT_EQ(t.num_servers(), e.servers) << e.name;
    EXPECT_EQ(t.num_switches(), e.switches) << e.name;
    EXPECT_EQ(t.height(t.root()), e.height) << e.name;
    const Node& leaf = t.node(0);
    EXPECT_EQ(leaf.uplink, (LinkParams{6.40e-9, 1.22e-10, 9})) << e.name;
    EXPECT_EQ(leaf.server, (ServerParams{6.00e-10, 1.87e-10})) << e.name;
  }
  EXPECT_FALSE(is_builtin_topology("ss25"));
  EXPECT_THROW((void)builtin_topology("ss25"), InvalidArgument);
}

TEST(Builtins, CrossDataCentre) {
  const Topology t = builtin_topology("cdc384");
  EXPECT_EQ(t.instance_name(0, 3), "dc0/rack0/server0");
  EXPECT_EQ(t.instance_name(256, 3), "dc1/rack0/server0");
  for (const ChildRun& dc : t.node(t.root()).children) {
    EXPECT_EQ(t.node(dc.node).uplink, (LinkParams{6.40e-9, 6.00e-11, 9}));
    EXPECT_EQ(t.node(t.node(dc.node).children[0].node).uplink, (LinkParams{6.40e-10, 6.00e-12, 9}));
  }
}

TEST(Generators, Trees) {
  const Topology t = topology_from_spec("tree:4x8x16");
  EXPECT_EQ(t.name(), "tree:4x8x16");
  EXPECT_EQ(t.num_servers(), 512);
  EXPECT_EQ(t.num_switches(), 1 + 4 + 32);
  EXPECT_EQ(t.instance_name(511, 3), "pod3/rack7/server15");
  EXPECT_EQ(topology_from_spec("star:1").num_servers(), 1);
  EXPECT_EQ(make_tree({3, 1, 1, 1, 1, 1, 2}).instance_name(0, 7), "tier0/tier/region/zone/pod/rack/server0");
}

TEST(Generators, MillionServersAreFourNodes) {
  const Topology t = topology_from_spec("tree:100x100x100");
  EXPECT_EQ(t.num_servers(), 1'000'000);
  EXPECT_EQ(t.num_nodes(), 4);
  EXPECT_DOUBLE_EQ(t.path_latency(0, 999'999), 7 * kAlpha);
}

TEST(Generators, LeafSpineBundlesCables) {
  const Topology t = topology_from_spec("leafspine:4x16x24");
  EXPECT_EQ(t.num_servers(), 384);
  EXPECT_EQ(t.instance_name(383, 2), "leaf15/server23");
  const NodeId leaf = t.node(t.root()).children[0].node;
  EXPECT_EQ(t.node(leaf).uplink, (LinkParams{6.40e-10 / 4, 6.00e-12 / 4, 9}));
}

TEST(Generators, FatTree) {
  // k = 8: 8 pods of 4 edge switches of 4 servers; 4 cables above an edge switch, 16 above a pod.
  const Topology t = topology_from_spec("fattree:8");
  EXPECT_EQ(t.num_servers(), 8 * 8 * 8 / 4);
  EXPECT_EQ(t.instance_name(127, 3), "pod7/edge3/server3");
  const NodeId pod = t.node(t.root()).children[0].node;
  const NodeId edge = t.node(pod).children[0].node;
  EXPECT_EQ(t.node(pod).uplink.beta, 6.40e-10 / 16);
  EXPECT_EQ(t.node(edge).uplink.beta, 6.40e-10 / 4);
  // Server, edge, aggregation, core, aggregation, edge, server.
  EXPECT_DOUBLE_EQ(t.path_latency(0, 127), 7 * kAlpha);
}

TEST(Generators, RefuseBadSpecs) {
  for (const char* spec : {"",
                           "ss25",
                           "star",
                           "mesh:4",
                           "tree:",
                           "star:",
                           "star:x",
                           "star:-1",
                           "star:+1",
                           "star: 4",
                           "star:1e3",
                           "star:4 ",
                           "star:2x3",
                           "tree:4x",
                           "tree:x4",
                           "tree:4xx4",
                           "tree:4X4",
                           "tree:0x4",
                           "star:0",
                           "fattree:8x8",
                           "leafspine:4x16",
                           "leafspine:4x16x24x2",
                           "star:1000000000",
                           "star:99999999999999999999999999",
                           "Star:4"}) {
    expect_contains(spec_error(spec), {"topology", "ss24", "star:N", "tree:AxB", "leafspine:", "fattree:K"});
  }
  expect_contains(spec_error("tree:100000x100000"), {"tree:100000x100000", "100000000"});
  expect_contains(spec_error("fattree:100000"), {"fattree:100000", "100000000"});
  expect_contains(spec_error("fattree:7"), {"even"});
  std::string deep = "tree:1";
  for (int i = 0; i < 64; ++i) deep += "x1";
  expect_contains(spec_error(deep), {"64"});
}

}  // namespace
}  // namespace gar
