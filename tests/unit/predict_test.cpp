// Which flat algorithm is best, and where that changes with the size and the number of servers.
#include "gar/predict.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/topology.hpp"

namespace gar {
namespace {

std::string best_at(const Topology& topology, double size) {
  return Predictor(topology, classic_algorithms()).at(size).front().algorithm();
}

TEST(Predictor, BestKindIsTheNameOfTheBest) {
  for (const char* network : {"ss24", "star:7", "sym384", "tree:3x4"}) {
    const Topology topology = topology_from_spec(network);
    Predictor predictor(topology, classic_algorithms());
    for (const double size : {1.0, 1e5, 1e7, 1e9}) {
      EXPECT_EQ(predictor.best_kind(size), predictor.at(size).front().spec.name) << network << ", " << size;
    }
  }
}

TEST(Predictor, PredictionsKeepTheirPrice) {
  Predictor predictor(builtin_topology("ss24"), classic_algorithms());
  for (const Prediction& p : predictor.at(1e7)) {
    ASSERT_NE(p.priced, nullptr) << p.algorithm();
    EXPECT_EQ(p.priced->cost(1e7), p.terms) << p.algorithm();
  }
}

// The flip's own size has another best than the size next to it on the near side.
TEST(Predictor, SizeFlipsAreWhereTheBestChanges) {
  const Topology ss24 = builtin_topology("ss24");
  Predictor predictor(ss24, classic_algorithms());
  const Flips flips = predictor.size_flips(1e8);
  const std::string here = best_at(ss24, 1e8);
  EXPECT_EQ(here, "hcps:8x3");
  ASSERT_TRUE(flips.below);
  EXPECT_EQ(flips.below->algorithm, "cps");
  EXPECT_EQ(best_at(ss24, flips.below->at), "cps");
  EXPECT_EQ(best_at(ss24, flips.below->at * (1 + 2e-6)), here);
  EXPECT_FALSE(flips.above);
  EXPECT_EQ(flips.searched_from, 1);
  EXPECT_EQ(best_at(ss24, flips.searched_to), here);

  const Flips small = predictor.size_flips(1e3);
  ASSERT_TRUE(small.above);
  EXPECT_EQ(small.above->algorithm, here);
  EXPECT_NEAR(small.above->at, flips.below->at, 4e-6 * small.above->at);
}

TEST(Predictor, NoFlipsWithoutAChoice) {
  Predictor none(builtin_topology("ss24"), {});
  EXPECT_FALSE(none.size_flips(1e6).below);
  EXPECT_FALSE(none.size_flips(1e6).above);
  Predictor one(builtin_topology("ss24"), {parse_algorithm("ring")});
  EXPECT_FALSE(one.size_flips(1e6).below);
  EXPECT_FALSE(one.size_flips(1e6).above);
}

TEST(ServersPerSwitch, NeedsEqualLowestSwitches) {
  EXPECT_EQ(servers_per_switch(topology_from_spec("star:5")), 5);
  EXPECT_EQ(servers_per_switch(topology_from_spec("tree:3x4")), 4);
  EXPECT_EQ(servers_per_switch(builtin_topology("asy384")), 0);
  EXPECT_EQ(servers_per_switch(Topology("one", {{"server", 1, {}, {}, {}}}, 0)), 0);
}

TEST(ServersPerSwitch, CanBeVaried) {
  const Topology tree = topology_from_spec("tree:3x4");
  const std::optional<Topology> more = with_servers_per_switch(tree, 7);
  ASSERT_TRUE(more);
  EXPECT_EQ(more->num_servers(), 21);
  EXPECT_EQ(servers_per_switch(*more), 7);
  EXPECT_EQ(more->num_switches(), tree.num_switches());
  EXPECT_FALSE(with_servers_per_switch(tree, 0));
  EXPECT_FALSE(with_servers_per_switch(builtin_topology("asy384"), 4));
}

// The same as trying every number of servers nearby.
TEST(RankFlips, AreWhereTheKindChanges) {
  const Topology ss24 = builtin_topology("ss24");
  const double size = 1e7;
  const auto kind = [&](std::int64_t servers) {
    return Predictor(*with_servers_per_switch(ss24, servers), classic_algorithms()).best_kind(size);
  };
  const std::optional<Flips> flips = rank_flips(ss24, classic_algorithms(), size);
  ASSERT_TRUE(flips);
  for (const auto& [flip, direction] : {std::pair(flips->below, -1), std::pair(flips->above, 1)}) {
    if (!flip) continue;
    const auto at = static_cast<std::int64_t>(flip->at);
    EXPECT_EQ(kind(at), flip->algorithm);
    EXPECT_NE(kind(at), kind(24));
    for (std::int64_t servers = 24; servers != at; servers += direction) EXPECT_EQ(kind(servers), kind(24)) << servers;
  }
  EXPECT_TRUE(flips->below || flips->above);
}

TEST(RankFlips, NeedAlikeSwitchesAndNoFactors) {
  EXPECT_FALSE(rank_flips(builtin_topology("asy384"), classic_algorithms(), 1e6));
  EXPECT_FALSE(rank_flips(builtin_topology("ss24"), {parse_algorithm("cps"), parse_algorithm("hcps:8x3")}, 1e6));
}

}  // namespace
}  // namespace gar
