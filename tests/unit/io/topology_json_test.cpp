// Topology files: what is read, what is written, and what is refused with which words.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gar/errors.hpp"
#include "gar/topology_io.hpp"
#include "support/temp_folder.hpp"

namespace gar {
namespace {

const std::string kParams = R"("alpha":1,"beta":2,"epsilon":3,"incast_threshold":4)";
const std::string kLeaf = R"({"name":"s",)" + kParams + R"(,"gamma":5,"delta":6})";

// A file around a tree, or around any other members.
std::string file_with(const std::string& members) { return R"({"schema":"gar.topology/1",)" + members + "}"; }
std::string file_with_child(const std::string& child) {
  return file_with(R"("tree":{"alpha":0,"children":[)" + child + "]}");
}

std::string topology_error(const std::string& text) {
  std::string message = "accepted";
  try {
    (void)parse_topology(text, "net.json");
  } catch (const ParseError& error) {
    message = error.what();
    EXPECT_EQ(message.find("net.json: "), 0U) << message;
  }
  EXPECT_LT(message.size(), 2000U);
  for (const char c : message) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << message;
  return message;
}

void expect_error(const std::string& text, const std::vector<std::string>& parts) {
  const std::string message = topology_error(text);
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << "\nin: " << message;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(TopologyFile, Nested) {
  const Topology t = parse_topology(file_with(R"("name":"two","tree":{"name":"top","alpha":7,"children":[)" +
                                              replaced(kLeaf, "\"name\"", R"("repeat":3,"name")") + "]}"),
                                    "net.json");
  EXPECT_EQ(t.name(), "two");
  EXPECT_EQ(t.num_servers(), 3);
  EXPECT_EQ(t.node(t.root()).name, "top");
  const Node& leaf = t.node(0);
  EXPECT_EQ(leaf.name, "s");
  EXPECT_EQ(leaf.alpha, 1);
  EXPECT_EQ(leaf.uplink, (LinkParams{2, 3, 4}));
  EXPECT_EQ(leaf.server, (ServerParams{5, 6}));
}

// mu is 0 where a file does not say it, and files without it are written as before.
TEST(TopologyFile, MuMayBeLeftOut) {
  const Topology without = parse_topology(file_with_child(kLeaf), "net.json");
  EXPECT_EQ(without.node(0).server.mu, 0);
  std::ostringstream plain;
  write_topology(without, plain);
  EXPECT_EQ(plain.str().find("\"mu\""), std::string::npos);
  const Topology with = parse_topology(file_with_child(replaced(kLeaf, "\"name\"", R"("mu":7,"name")")), "net.json");
  EXPECT_EQ(with.node(0).server, (ServerParams{5, 6, 7}));
  std::ostringstream text;
  write_topology(with, text);
  EXPECT_EQ(parse_topology(text.str(), "net.json").node(0).server.mu, 7);
  expect_error(file_with_child(replaced(kLeaf, "\"name\"", R"("mu":-1,"name")")), {"mu"});
}

TEST(TopologyFile, NameDefaultsToTheFile) {
  EXPECT_EQ(parse_topology(file_with_child(kLeaf), "some/where/rack7.json").name(), "rack7");
  const Topology t = parse_topology(file_with_child("{" + kParams + R"(,"children":[)" + kLeaf + "]}"), "net.json");
  EXPECT_EQ(t.instance_name(0, 0), "root");
  EXPECT_EQ(t.instance_name(0, 2), "switch/s");
}

TEST(TopologyFile, OneServerIsAValidNetwork) {
  const Topology t = parse_topology(file_with(R"("tree":{"alpha":1,"gamma":2,"delta":3})"), "net.json");
  EXPECT_EQ(t.num_servers(), 1);
  EXPECT_EQ(parse_topology(file_with(R"("nodes":[{"name":"me","alpha":1,"gamma":2,"delta":3}])"), "n").num_servers(),
            1);
}

TEST(TopologyFile, ClassesFromLeftToRightThenOwnFields) {
  const Topology t = parse_topology(file_with(R"("tree":{"alpha":0,"children":[{"class":["a","b"],"delta":60}]},
        "classes":{"a":{"alpha":1,"beta":2,"epsilon":3,"incast_threshold":4,"gamma":5,"delta":6},"b":{"beta":20}})"),
                                    "net.json");
  EXPECT_EQ(t.node(0).uplink, (LinkParams{20, 3, 4}));
  EXPECT_EQ(t.node(0).server, (ServerParams{5, 60}));
}

TEST(TopologyFile, SubtreesWithOverrides) {
  const Topology t = parse_topology(
      file_with(R"("subtrees":{"rack":{"alpha":1,"epsilon":3,"incast_threshold":4,"children":[)" + kLeaf +
                R"(]},"fast":{"ref":"rack","beta":1}},
        "tree":{"alpha":0,"children":[{"ref":"rack","beta":2,"repeat":2},{"ref":"fast"},{"ref":"fast","repeat":3},
          {"ref":"fast","name":"faster","beta":0.5}]})"),
      "net.json");
  const std::vector<ChildRun>& runs = t.node(t.root()).children;
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].count, 2);
  EXPECT_EQ(t.node(runs[0].node).uplink.beta, 2);
  EXPECT_EQ(t.node(runs[0].node).name, "rack");
  EXPECT_EQ(runs[1].count, 4);
  EXPECT_EQ(t.node(runs[1].node).uplink.beta, 1);
  EXPECT_EQ(t.instance_name(6, 1), "faster");
}

TEST(TopologyFile, Flat) {
  const Topology t = read_topology_file(std::string(GAR_SOURCE_DIR) + "/data/topologies/seven-servers.json");
  EXPECT_EQ(t.num_servers(), 7);
  EXPECT_EQ(t.num_switches(), 3);
  EXPECT_EQ(t.instance_name(0, 2), "left/a");
  EXPECT_EQ(t.instance_name(6, 2), "right/g");
  EXPECT_EQ(t.num_shapes(), 5);  // root, left, right, the servers, and the slow one
}

TEST(TopologyFile, FlatMayRepeat) {
  const Topology t = parse_topology(
      file_with(R"("nodes":[{"name":"rack","parent":"top","repeat":4,)" + kParams + R"(},{"name":"top","alpha":0},
        {"name":"server","parent":"rack","repeat":8,"gamma":1,"delta":1,)" +
                kParams + "}]"),
      "net.json");
  EXPECT_EQ(t.num_servers(), 32);
  EXPECT_EQ(t.instance_name(31, 2), "rack3/server7");
}

TEST(TopologyFile, ExamplesAreRead) {
  const std::string folder = std::string(GAR_SOURCE_DIR) + "/data/topologies/";
  EXPECT_EQ(read_topology_file(folder + "six-servers.json").num_servers(), 6);
  EXPECT_EQ(read_topology_file(folder + "mixed-fleet.json").num_servers(), 44);
  const Topology sym = load_topology(folder + "sym384.json");
  const Topology builtin = builtin_topology("sym384");
  ASSERT_EQ(sym.num_nodes(), builtin.num_nodes());
  for (NodeId id = 0; id < sym.num_nodes(); ++id) {
    EXPECT_EQ(sym.node(id).name, builtin.node(id).name);
    EXPECT_EQ(sym.node(id).alpha, builtin.node(id).alpha);
    EXPECT_EQ(sym.node(id).uplink, builtin.node(id).uplink);
    EXPECT_EQ(sym.node(id).server, builtin.node(id).server);
    EXPECT_EQ(sym.node(id).children, builtin.node(id).children);
  }
}

// Four nodes: what is repeated is stored once, and loading takes no longer than for four servers.
TEST(TopologyFile, AMillionServersAreFourNodes) {
  const Topology t = read_topology_file(std::string(GAR_SOURCE_DIR) + "/data/topologies/million-servers.json");
  EXPECT_EQ(t.num_servers(), 1'000'000);
  EXPECT_EQ(t.num_nodes(), 4);
}

TEST(TopologyFile, WritesWhatItReads) {
  for (const char* spec :
       {"ss24", "sym384", "asy384", "cdc384", "tree:100x100x100", "leafspine:3x7x5", "fattree:6", "star:1"}) {
    const Topology t = topology_from_spec(spec);
    std::ostringstream out;
    write_topology(t, out);
    EXPECT_LT(out.str().size(), 2500U);
    const Topology back = parse_topology(out.str(), "out.json");
    EXPECT_EQ(back.name(), spec);
    ASSERT_EQ(back.num_nodes(), t.num_nodes()) << out.str();
    for (NodeId id = 0; id < t.num_nodes(); ++id) {
      EXPECT_EQ(back.node(id).name, t.node(id).name);
      EXPECT_EQ(back.node(id).alpha, t.node(id).alpha);
      EXPECT_EQ(back.node(id).uplink, t.node(id).uplink);
      EXPECT_EQ(back.node(id).server, t.node(id).server);
      EXPECT_EQ(back.node(id).children, t.node(id).children);
    }
    std::ostringstream again;
    write_topology(back, again);
    EXPECT_EQ(out.str(), again.str());
  }
}

TEST(TopologyFile, DeepestTreeRoundTrips) {
  std::vector<std::int64_t> factors(kMaxDepth, 1);
  factors[0] = 3;
  std::ostringstream out;
  write_topology(make_tree(factors), out);
  EXPECT_EQ(parse_topology(out.str(), "out.json").height(kMaxDepth), kMaxDepth);
}

TEST(TopologyFile, DotIsFolded) {
  std::ostringstream out;
  write_topology_dot(topology_from_spec("tree:100x100x100"), out);
  EXPECT_NE(out.str().find("1000000 servers"), std::string::npos);
  EXPECT_NE(out.str().find("100 x"), std::string::npos);
  EXPECT_LT(out.str().size(), 1500U);
}

TEST(TopologyFile, LoadsNamesAndPaths) {
  EXPECT_EQ(load_topology("star:5").num_servers(), 5);
  try {
    (void)load_topology("sym385");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("sym384"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("topology file"), std::string::npos);
  }
  EXPECT_THROW((void)load_topology("missing.json"), ParseError);
  EXPECT_THROW((void)load_topology("no/such/file"), ParseError);
  EXPECT_THROW((void)load_topology("/"), ParseError);
}

// ---- what is refused ----

TEST(BadTopologyFile, Files) {
  const auto message = [](const std::string& path) -> std::string {
    try {
      (void)read_topology_file(path);
    } catch (const ParseError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("no-such-file.json"), "no-such-file.json: there is no such file");
  const test::TempFolder folder;
  EXPECT_NE(message(folder.path()).find("is a directory"), std::string::npos);
  const std::string huge = folder.file("huge.json");
  std::ofstream(huge) << "{";
  std::filesystem::resize_file(huge, std::uintmax_t{3} << 30U);  // sparse
  EXPECT_NE(message(huge).find("at most 67108864"), std::string::npos);
}

TEST(BadTopologyFile, Syntax) {
  expect_error("", {"the file is empty"});
  expect_error(" \n\t", {"the file is empty"});
  expect_error("{\n  \"schema\": \"gar.topology/1\",\n  \"tree\" 5\n}", {"line 3, column 10", "not valid JSON"});
  const std::string good = file_with_child(kLeaf);
  EXPECT_EQ(topology_error(good), "accepted");
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(topology_error(good.substr(0, length)), "accepted") << length;
  }
  expect_error(good + "x", {"line 1, column", "not valid JSON"});
  expect_error(std::string("\x7f"
                           "ELF\x02\x01\0\0\xff",
                           9),
               {"line 1, column 1", "not valid JSON"});
  expect_error(replaced(good, "\"s\"", "\"\xff\xfe\""), {"UTF-8"});
  expect_error(std::string(5'000'000, '['), {"the file holds a list"});
  expect_error(std::string(2'000'000, ' ') + "{\"" + std::string(2'000'000, 'x'), {"not valid JSON"});
  expect_error("[1]", {"a list", "an object"});
  expect_error("null", {"null"});
  expect_error("17", {"an object"});
}

TEST(BadTopologyFile, Schema) {
  expect_error(R"({"tree":)" + kLeaf + "}", {"schema: missing", "gar.topology/1"});
  expect_error(R"({"schema":"gar.topology/2"})", {"schema: is \"gar.topology/2\"", "expected \"gar.topology/1\""});
  expect_error(R"({"schema":"gar.plan/1"})", {"schema: is \"gar.plan/1\"", "gar.topology/1"});
  expect_error(R"({"schema":1})", {"schema: is the number 1"});
  expect_error(R"({"num_ranks":4})", {"num_ranks: unknown field", "is this a topology file?"});
  expect_error(R"({"schema":"gar.topology/1"})", {"tree: missing", "\"nodes\""});
  expect_error(file_with(R"("tree":)" + kLeaf + R"(,"nodes":[)" + kLeaf + "]"), {"both"});
  expect_error(file_with(R"("nodes":[])"), {"nodes: is empty", "no servers"});
  expect_error(file_with(R"("tree":5)"), {"tree: is the number 5", "expected a node"});
  expect_error(file_with(R"("nodes":{})"), {"nodes: is an object", "a list of nodes"});
  expect_error(file_with(R"("nodes":[7])"), {"nodes[0]: is the number 7"});
  expect_error(file_with(R"("classes":[])"), {"classes: is a list"});
  expect_error(file_with(R"("classes":{"a":4})"), {"classes.a: is the number 4"});
  expect_error(file_with(R"("classes":{"a":{"betta":4}})"), {"classes.a.betta: unknown field", "beta"});
}

TEST(BadTopologyFile, Fields) {
  expect_error(file_with_child(replaced(kLeaf, "beta", "betta")),
               {"tree.children[0].betta: unknown field", "beta", "incast_threshold", "children"});
  expect_error(file_with_child(replaced(kLeaf, "\"beta\":2", "\"beta\":2,\"beta\":2")),
               {"tree.children[0].beta", "twice"});
  expect_error(file_with_child(replaced(kLeaf, "\"beta\":2", "\"beta\":\"2\"")),
               {"tree.children[0].beta: is the text \"2\"", "a number from 0 to 1e+06"});
  expect_error(file_with_child(replaced(kLeaf, "\"beta\":2", "\"beta\":null")), {"beta: is null"});
  expect_error(file_with_child(replaced(kLeaf, "\"beta\":2", "\"beta\":true")), {"beta: is true"});
  expect_error(file_with_child(replaced(kLeaf, "\"beta\":2", "\"beta\":{}")), {"beta: is an object"});
  expect_error(file_with_child(replaced(kLeaf, "\"beta\":2", "\"beta\":[2]")), {"beta: is a list"});
  expect_error(file_with_child(replaced(kLeaf, "\"s\"", "\"a/b\"")), {"tree.children[0].name", "'/'"});
  expect_error(file_with_child(replaced(kLeaf, "\"s\"", "\"\"")), {"tree.children[0].name", "empty"});
  expect_error(file_with_child(replaced(kLeaf, "\"s\"", "\"a\\u0007\"")), {"tree.children[0].name", "0x07"});
  expect_error(file_with_child(replaced(kLeaf, "\"s\"", "\"" + std::string(300, 'x') + "\"")), {"300 bytes", "255"});
  expect_error(file_with_child(replaced(kLeaf, "\"s\"", "5")), {"tree.children[0].name: is the number 5"});
}

TEST(BadTopologyFile, Parameters) {
  for (const char* name : {"alpha", "beta", "epsilon", "incast_threshold", "gamma", "delta"}) {
    const std::string path = std::string("tree.children[0].") + name;
    const std::string field = "\"" + std::string(name) + "\":";
    const std::size_t at = kLeaf.find(field) + field.size();
    const auto with = [&](const std::string& value) {
      return file_with_child(std::string(kLeaf).replace(at, 1, value));
    };
    const std::string most = std::string(name) == "incast_threshold" ? "1e+09" : "1e+06";
    expect_error(with("-1"), {path + ": is -1;", "expected a number from 0 to " + most});
    for (const char* absurd : {"1e308", "1e300", "1.1e9", "5e9"}) {
      expect_error(with(absurd), {path + ": is " + absurd, "expected a number from 0 to " + most});
    }
    EXPECT_EQ(topology_error(with(most)), "accepted");
    EXPECT_EQ(topology_error(with("1e-320")), "accepted");  // counts as 0
    expect_error(with("-1e-300"), {path + ": is -1e-300"});
    expect_error(with("1e999"), {"line 1, column", "1e999"});
    expect_error(with("NaN"), {"line 1, column", "not valid JSON"});
    expect_error(with("Infinity"), {"line 1, column", "not valid JSON"});
    EXPECT_EQ(topology_error(with("0")), "accepted");
    // Without the field.
    const std::size_t end = kLeaf.find_first_of(",}", at);
    const std::size_t begin = at - field.size();
    std::string without = kLeaf;
    without.erase(kLeaf[end] == '}' ? begin - 1 : begin, end - begin + 1);
    expect_error(file_with_child(without), {path + ": missing"});
  }
  expect_error(file_with(R"("tree":{"children":[)" + kLeaf + "]}"), {"tree.alpha: missing"});
  expect_error(file_with(R"("tree":{"alpha":1,"beta":2,"children":[)" + kLeaf + "]}"),
               {"tree.beta", "root has no link", "leave this field out"});
}

TEST(BadTopologyFile, Repeat) {
  for (const char* value : {"0", "-1", "1.5", "1e18", "100000001", "99999999999999999999999", "\"4\"", "null"}) {
    expect_error(file_with_child(replaced(kLeaf, "\"name\"", std::string("\"repeat\":") + value + ",\"name\"")),
                 {"tree.children[0].repeat: is", "a whole number from 1 to 100000000"});
  }
  EXPECT_EQ(topology_error(file_with_child(replaced(kLeaf, "\"name\"", "\"repeat\":1e3,\"name\""))), "accepted");
  expect_error(file_with(R"("tree":{"repeat":2,"alpha":1,"gamma":2,"delta":3})"), {"tree.repeat", "root"});
  expect_error(file_with(R"("subtrees":{"a":{"repeat":2,"alpha":1,"gamma":2,"delta":3}},"tree":{"ref":"a"})"),
               {"subtrees.a.repeat"});
}

TEST(BadTopologyFile, TooManyServers) {
  const std::string thousands = replaced(kLeaf, "\"name\"", "\"repeat\":100000,\"name\"");
  expect_error(file_with_child(R"({"name":"rack","repeat":10000,)" + kParams + R"(,"children":[)" + thousands + "]}"),
               {"expected at most 100000000", "10000 x 'rack'"});
}

TEST(BadTopologyFile, ServersAndSwitches) {
  expect_error(file_with_child("{" + kParams + R"(,"gamma":1,"children":[)" + kLeaf + "]}"),
               {"tree.children[0].gamma", "a server has no children"});
  expect_error(file_with_child("{" + kParams + R"(,"kind":"server","children":[)" + kLeaf + "]}"),
               {"tree.children[0].kind: is \"server\"", "has children"});
  expect_error(file_with_child(replaced(kLeaf, "\"name\"", R"("kind":"switch","name")")),
               {"tree.children[0].kind: is \"switch\"", "no children"});
  expect_error(file_with_child(replaced(kLeaf, "\"name\"", R"("kind":"router","name")")),
               {"kind: is \"router\"", "\"server\" or \"switch\""});
  expect_error(file_with_child("{" + kParams + R"(,"children":[]})"), {"tree.children[0].children: is empty"});
  expect_error(file_with(R"("classes":{"s":{"gamma":1,"delta":1}},"nodes":[{"name":"r","alpha":0},
    {"name":"a","parent":"r","class":"s",)" +
                         kParams + R"(},{"name":"b","parent":"a","class":"s",)" + kParams + "}]"),
               {"nodes[1].class", "gamma", "a server has no children"});
}

TEST(BadTopologyFile, References) {
  expect_error(file_with(R"("tree":{"ref":"rack"})"), {"tree.ref: there is no subtree \"rack\"", "no entries"});
  expect_error(file_with(R"("subtrees":{"a":{"alpha":1,"children":[{"ref":"b"}]},"b":{"ref":"c"},
    "c":{"alpha":1,"children":[{"alpha":1,"children":[{"ref":"a"}]}]}},"tree":{"ref":"a"})"),
               {"subtrees.c.children[0].children[0].ref", "cycle: a -> b -> c -> a"});
  expect_error(file_with(R"("subtrees":{"a":{"ref":"a"}},"tree":{"ref":"a"})"), {"cycle: a -> a"});
  expect_error(file_with(R"("subtrees":{"a":)" + kLeaf + R"(,"a":)" + kLeaf + "}"), {"subtrees.a", "twice"});
  expect_error(file_with(R"("subtrees":{"a":)" + kLeaf + R"(},"tree":{"ref":"a","children":[]})"), {"is empty"});
  expect_error(file_with(R"("subtrees":{"a":)" + kLeaf + R"(},"tree":{"ref":"a","children":[)" + kLeaf + "]}"),
               {"tree.children", "not both"});
  expect_error(file_with_child(R"({"class":"fast"})"), {"tree.children[0].class: there is no class \"fast\""});
  expect_error(file_with_child(R"({"class":["fast"]})"), {"tree.children[0].class[0]: there is no class \"fast\""});
  expect_error(file_with_child(R"({"class":[7]})"), {"tree.children[0].class[0]: is the number 7"});
  expect_error(file_with(R"("classes":{"a":{},"a":{}})"), {"classes.a", "twice"});
  expect_error(file_with(R"("subtrees":{"a":)" + kLeaf + R"(},"nodes":[{"name":"a","alpha":1,"gamma":1,"delta":1}])"),
               {"subtrees"});
}

TEST(BadTopologyFile, FlatLists) {
  const auto node = [](const std::string& name, const std::string& parent) {
    return "{\"name\":\"" + name + "\"," +
           (parent.empty() ? "\"alpha\":0" : "\"parent\":\"" + parent + "\"," + kParams) + "}";
  };
  const auto list = [](const std::vector<std::string>& nodes) {
    std::string text;
    for (const std::string& item : nodes) text += (text.empty() ? "" : ",") + item;
    return file_with("\"nodes\":[" + text + "]");
  };
  expect_error(list({node("r", ""), node("a", "x")}), {"nodes[1].parent: there is no node \"x\""});
  expect_error(list({node("r", ""), node("a", "r"), node("a", "r")}), {"nodes[2].name", "nodes[1]", "listed once"});
  expect_error(list({node("r", ""), node("b", "r"), node("a", "r"), node("a", "b")}),
               {"nodes[3].name", "exactly one parent"});
  expect_error(list({node("r", ""), R"({"name":"a","parent":["r","q"]})"}), {"nodes[1].parent", "exactly one parent"});
  expect_error(list({node("r", ""), R"({"name":"a","parent":"r","parent":"q"})"}), {"nodes[1].parent", "twice"});
  expect_error(list({node("r", ""), node("q", "")}),
               {"nodes[1].parent: missing", "\"q\"", "\"r\"", "exactly one root"});
  expect_error(list({node("a", "b"), node("b", "a")}), {"cycle", "a -> b -> a"});
  expect_error(list({node("r", ""), node("x", "c"), node("a", "b"), node("b", "c"), node("c", "a")}),
               {"parents form a cycle"});
  expect_error(list({node("a", "a")}), {"cycle", "a -> a"});
  expect_error(list({R"({"alpha":1})"}), {"nodes[0].name: missing"});
  expect_error(list({R"({"name":"r","children":[]})"}), {"nodes[0].children: unknown field", "parent"});
  expect_error(list({node("r", ""), node("a", "r")}), {"nodes[1].gamma: missing", "without children is a server"});
}

TEST(BadTopologyFile, LargeAndDeep) {
  // Nested children beyond the limit.
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{" + kParams + ",\"children\":[";
  expect_error(file_with_child(deep), {"nested too deeply", "64"});
  // A chain of 65 levels in a flat list, and one of 30,000.
  for (const int length : {65, 30'000}) {
    std::string nodes = R"({"name":"n0","alpha":0})";
    for (int i = 1; i <= length; ++i) {
      nodes += ",{\"name\":\"n" + std::to_string(i) + "\",\"parent\":\"n" + std::to_string(i - 1) + "\"," + kParams +
               (i == length ? ",\"gamma\":0,\"delta\":0}" : "}");
    }
    expect_error(file_with("\"nodes\":[" + nodes + "]"), {"64 levels"});
  }
  // A chain of 30,000 references is long, not wrong.
  std::string subtrees = "\"a0\":" + kLeaf;
  for (int i = 1; i <= 30'000; ++i) {
    subtrees += ",\"a" + std::to_string(i) + "\":{\"ref\":\"a" + std::to_string(i - 1) + "\"}";
  }
  EXPECT_EQ(
      topology_error(file_with(R"("tree":{"alpha":0,"children":[{"ref":"a30000"}]},"subtrees":{)" + subtrees + "}")),
      "accepted");
}

// A rack of two hosts below a root, said in words.
std::string words_file(const std::string& root, const std::string& rack, const std::string& host) {
  return file_with(R"("tree":{"name":"root",)" + root + R"("children":[{"name":"rack","repeat":2,)" + rack +
                   R"("children":[{"name":"host","repeat":2,)" + host + "}]}]}");
}

TEST(TopologyFileInWords, LatenciesAreThoseOfPingPongs) {
  const std::string host = R"("bandwidth":"100Gbit/s","latency":"2us")";
  const Topology said =
      parse_topology(words_file(R"("latency":"3us",)", R"("bandwidth":"400Gbit/s",)", host), "n.json");
  EXPECT_DOUBLE_EQ(said.path_latency(0, 1), 2e-6);
  EXPECT_DOUBLE_EQ(said.path_latency(0, 2), 3e-6);
  EXPECT_DOUBLE_EQ(said.node(0).uplink.beta, 3.2e-10);
  EXPECT_EQ(said.node(0).uplink.epsilon, 0);
  EXPECT_GT(said.node(0).server.delta, 0);
  const Topology usual = parse_topology(words_file("", R"("class":"400GbE",)", host), "n.json");
  EXPECT_DOUBLE_EQ(usual.path_latency(0, 1), 2e-6);
  EXPECT_DOUBLE_EQ(usual.path_latency(0, 2), 2.5e-6);
  const Topology in_rack =
      parse_topology(words_file(R"("latency":"9us",)", R"("bandwidth":"1GB/s","latency":"3us",)", host), "n.json");
  EXPECT_DOUBLE_EQ(in_rack.path_latency(0, 1), 3e-6);
  EXPECT_DOUBLE_EQ(in_rack.path_latency(0, 2), 9e-6);
}

TEST(TopologyFileInWords, FlatListsAndNamedClasses) {
  const Topology t =
      parse_topology(file_with(R"("nodes":[{"name":"a","parent":"sw","class":["NVLink4","H200"]},{"name":"sw"},)"
                               R"({"name":"b","parent":"sw","class":["NVLink4","H200"],"latency":"1us","mu":1e-7}])"),
                     "n.json");
  EXPECT_DOUBLE_EQ(t.path_latency(0, 1), 1.5e-6);
  EXPECT_DOUBLE_EQ(t.node(0).server.delta, 4 / 4.8e12);
  // The file's own class of that name is meant.
  const Topology own = parse_topology(file_with(R"("classes":{"H200":{"bandwidth":"1GB/s"}},"tree":{"children":[)"
                                                R"({"class":"H200","gamma":1,"delta":2,"repeat":2}]})"),
                                      "n.json");
  EXPECT_DOUBLE_EQ(own.node(0).uplink.beta, 4e-9);
  EXPECT_EQ(own.node(0).server.delta, 2);
  // What a named class says of latency gives way to an alpha.
  const Topology alpha =
      parse_topology(file_with(R"("tree":{"alpha":1,"children":[{"class":"10GbE","alpha":3,"repeat":2}]})"), "n.json");
  EXPECT_DOUBLE_EQ(alpha.path_latency(0, 1), 7);
}

TEST(TopologyFileInWords, WhatIsRefused) {
  const auto child = [](const std::string& fields) { return file_with_child("{" + fields + "}"); };
  expect_error(child(R"("bandwidth":"1GB/s","beta":1)"), {"tree.children[0].beta: \"bandwidth\" is there as well"});
  expect_error(child(R"("beta":1,"bandwidth":"1GB/s")"), {"tree.children[0].bandwidth: \"beta\" is there as well"});
  expect_error(child(R"("alpha":1,"latency":"1us")"), {"tree.children[0].latency: \"alpha\" is there as well"});
  expect_error(child(R"("class":"10GbE","beta":1)"), {"tree.children[0].bandwidth: \"beta\" is there as well"});
  expect_error(child(R"("bandwidth":"fast")"), {"tree.children[0].bandwidth: is \"fast\"", "100Gbit/s"});
  expect_error(child(R"("bandwidth":100)"), {"tree.children[0].bandwidth: is ", "100Gbit/s"});
  expect_error(child(R"("latency":"2")"), {"tree.children[0].latency: is \"2\"", "2us"});
  expect_error(child(R"("bandwidth":"1GB/s","epsilon":1)"), {"tree.children[0].incast_threshold: missing"});
  expect_error(child(R"("class":"100gbe")"), {"there is no class \"100gbe\"", "100GbE"});
  expect_error(words_file(R"("bandwidth":"1GB/s",)", R"("class":"10GbE",)", R"("class":"10GbE")"),
               {"tree.bandwidth: the root has no link"});
  expect_error(words_file(R"("latency":"1us",)", R"("class":"10GbE",)", R"("class":"10GbE")"),
               {"tree.latency: is 1.000 us", "need 20.00 us already"});
  expect_error(words_file("", R"("class":["10GbE","DDR5"],)", R"("class":"10GbE")"), {"class: gives gamma to a node"});
  // Nothing is assumed where nothing is said in words.
  expect_error(words_file("", R"("alpha":0,"beta":1,"epsilon":0,"incast_threshold":0,)",
                          R"("alpha":0,"beta":1,"epsilon":0,"incast_threshold":0,"gamma":1,"delta":1)"),
               {"tree.alpha: missing"});
}

TEST(BadTopologyFile, EndsWithTheFirstOfManyErrors) {
  std::string empty;
  std::string classes;
  for (int i = 0; i < 100'000; ++i) {
    empty += i == 0 ? "{}" : ",{}";
    classes += i == 0 ? "\"c\"" : ",\"c\"";
  }
  expect_error(file_with_child(empty), {"tree.children[0].alpha: missing"});
  expect_error(file_with("\"nodes\":[" + empty + "]"), {"nodes[0].name: missing"});
  expect_error(file_with_child("{\"class\":[" + classes + "]}"), {"tree.children[0].class[16]", "at most 16"});
}

TEST(BadTopologyFile, ManyReferencesToALongList) {
  // 5,000 different copies of a list of 5,000 children.
  std::string children;
  std::string references;
  for (int i = 0; i < 5000; ++i) {
    children += (i == 0 ? "" : ",") + replaced(kLeaf, "\"s\"", "\"s" + std::to_string(i) + "\"");
    references += std::string(i == 0 ? "" : ",") + "{\"ref\":\"a\",\"beta\":" + std::to_string(i) + "}";
  }
  expect_error(file_with("\"subtrees\":{\"a\":{" + kParams + ",\"children\":[" + children +
                         "]}},\"tree\":{\"alpha\":0,\"children\":[" + references + "]}"),
               {"copy more than"});
}

}  // namespace
}  // namespace gar
