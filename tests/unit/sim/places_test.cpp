// Names of node instances and links.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gar/errors.hpp"
#include "gar/simulate.hpp"
#include "support/random_topology.hpp"

namespace gar {
namespace {

Node server(const std::string& name = "server") { return {name, 1, {2, 3, 4}, {5, 6}, {}}; }
Node inner(const std::string& name, std::vector<ChildRun> children) {
  return {name, 1, {2, 3, 4}, {}, std::move(children)};
}

std::string error_of(const Topology& topology, const std::string& name) {
  try {
    (void)find_place(topology, name);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "found";
}

//            root
//      /      |       \.
//  2 x rack  old   1 x rack     "rack" twice, so they are rack0, rack1 and, of another kind, rack2
//   3 srv   2 srv   1 srv
Topology mixed() {
  return {"t",
          {inner("root", {{1, 2}, {2, 1}, {3, 1}}), inner("rack", {{4, 3}}), inner("old", {{4, 2}}),
           inner("rack", {{4, 1}}), server()},
          0};
}

TEST(FindPlace, FollowsThePath) {
  const Topology t = mixed();
  EXPECT_EQ(find_place(t, "rack0"), (NodePlace{0, 1}));
  EXPECT_EQ(find_place(t, "rack1"), (NodePlace{3, 1}));
  EXPECT_EQ(find_place(t, "rack1/server2"), (NodePlace{5, 2}));
  EXPECT_EQ(find_place(t, "old"), (NodePlace{6, 1}));
  EXPECT_EQ(find_place(t, "old/server1"), (NodePlace{7, 2}));
  EXPECT_EQ(find_place(t, "rack2"), (NodePlace{8, 1}));
  EXPECT_EQ(find_place(t, "rack2/server"), (NodePlace{8, 2}));  // the only one has no number
  EXPECT_EQ(find_place(t, "root"), (NodePlace{0, 0}));
}

TEST(FindPlace, TakesRanks) {
  const Topology t = mixed();
  EXPECT_EQ(find_place(t, "0"), (NodePlace{0, 2}));
  EXPECT_EQ(find_place(t, "8"), (NodePlace{8, 2}));
  EXPECT_EQ(error_of(t, "9"), "there is no rank 9; 't' has ranks 0 to 8");
  EXPECT_EQ(error_of(t, "99999999999999999999"), "there is no rank 99999999999999999999; 't' has ranks 0 to 8");
  const Topology one = make_tree({1});
  EXPECT_EQ(find_place(one, "0"), find_place(one, "server"));
}

TEST(FindPlace, SaysWhatExists) {
  const Topology t = mixed();
  EXPECT_EQ(
      error_of(t, "rak1"),
      "there is no 'rak1'; the children of the root 'root' are rack0..rack1, old, rack2 (servers also go by rank: "
      "0 to 8)");
  EXPECT_EQ(error_of(t, "rack1/server3"),
            "there is no 'rack1/server3': no 'server3'; the children of 'rack1' are server0..server2 (servers also go "
            "by rank: 0 to 8)");
  EXPECT_EQ(error_of(t, "old/server0/disk"),
            "there is no 'old/server0/disk': no 'disk'; 'old/server0' is a server and has nothing below it");
  for (const char* wrong : {"", "/", "rack", "rack01", "rack3", "rack1/", "/rack1", "old0", "-1", "rack0//server0"}) {
    EXPECT_NE(error_of(t, wrong).find("there is no"), std::string::npos) << wrong;
  }
}

TEST(FindPlace, NamesTheNearestOfMany) {
  std::vector<Node> nodes{server("a")};
  std::vector<ChildRun> runs;
  for (int i = 0; i < 40; ++i) {
    nodes.push_back(server((i % 2 == 0 ? "blade-" : "host-") + std::string(1, static_cast<char>('A' + i / 2))));
    runs.push_back({i + 1, 1});
  }
  nodes.push_back(inner("root", runs));
  const Topology t("t", nodes, 41);
  EXPECT_EQ(find_place(t, "host-C"), (NodePlace{5, 1}));
  const std::string message = error_of(t, "hostt-C");
  EXPECT_NE(message.find("host-A, host-B"), std::string::npos) << message;
  EXPECT_EQ(message.find("blade"), std::string::npos) << message;
  EXPECT_NE(message.find("and 34 more"), std::string::npos) << message;
}

TEST(FindPlace, IsTheInverseOfInstanceName) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const Topology t = test::random_topology(random);
    for (std::int64_t rank = 0; rank < t.num_servers(); ++rank) {
      const int leaf = find_place(t, std::to_string(rank)).depth;
      for (int depth = 1; depth <= leaf; ++depth) {
        const std::string name = t.instance_name(rank, depth);
        const NodePlace place = find_place(t, name);
        ASSERT_EQ(place.depth, depth) << "seed " << seed << " " << name;
        ASSERT_LE(place.rank, rank) << "seed " << seed << " " << name;
        ASSERT_EQ(t.instance_name(place.rank, depth), name) << "seed " << seed;
      }
      ASSERT_EQ(find_place(t, t.instance_name(rank, leaf)), (NodePlace{rank, leaf})) << "seed " << seed;
    }
  }
}

// Nothing is expanded: a hundred million servers take no time.
TEST(FindPlace, IsFastAtAnyScale) {
  const Topology t = make_tree({1000, 1000, 100});
  const std::string last = t.instance_name(t.num_servers() - 1, 3);
  EXPECT_EQ(find_place(t, last), (NodePlace{t.num_servers() - 1, 3}));
  for (int i = 0; i < 10'000; ++i) (void)find_place(t, last);
}

TEST(LinkName, SaysDirectionAndNode) {
  const Topology t = mixed();
  EXPECT_EQ(link_name(t, {find_place(t, "rack1"), true}), "downlink of rack1");
  EXPECT_EQ(link_name(t, {find_place(t, "5"), false}), "uplink of rack1/server2");
}

}  // namespace
}  // namespace gar
