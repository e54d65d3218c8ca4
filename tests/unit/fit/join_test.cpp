// Measurements of several runs as one, and rows of a benchmark as observations.
#include <gtest/gtest.h>

#include "gar/errors.hpp"
#include "gar/fit.hpp"
#include "gar/topology.hpp"

namespace gar {
namespace {

Observation cell(const std::string& algorithm, std::vector<double> seconds) {
  Observation out;
  out.algorithm = parse_algorithm(algorithm);
  out.servers = {0, 1, 2, 3};
  out.size_floats = 1000;
  out.seconds = std::move(seconds);
  return out;
}

Measurements of_star(std::vector<Observation> observations) {
  Measurements out{make_tree({4}), 2, std::move(observations), {}, {}, false};
  out.provenance.hosts = {"a"};
  out.provenance.seconds = 1;
  return out;
}

TEST(Join, TheSameCellGetsMoreRepetitions) {
  Measurements all = of_star({cell("ring", {1, 2})});
  all.observations[0].retransmits = 10;
  Measurements more = of_star({cell("ring", {3}), cell("cps", {4})});
  more.observations[0].retransmits = 40;
  more.provenance.hosts = {"a", "b"};
  join(all, more);
  ASSERT_EQ(all.observations.size(), 2U);
  EXPECT_EQ(all.observations[0].seconds, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(all.observations[0].retransmits, 20);  // per repetition
  EXPECT_EQ(all.observations[1].seconds, (std::vector<double>{4}));
  EXPECT_EQ(all.provenance.seconds, 2);
  EXPECT_EQ(all.provenance.hosts, (std::vector<std::string>{"a", "b"}));
}

TEST(Join, AnotherNetworkOrMachineIsRefused) {
  Measurements all = of_star({cell("ring", {1})});
  Measurements other = of_star({cell("ring", {1})});
  other.topology = make_tree({5});
  EXPECT_THROW(join(all, other), InvalidArgument);
  other = of_star({cell("ring", {1})});
  other.cores = 8;
  EXPECT_THROW(join(all, other), InvalidArgument);
  EXPECT_EQ(all.observations[0].seconds.size(), 1U);
}

TEST(Results, RowsThatDoNotSayWhatRanAreTheBest) {
  ResultRow known;
  known.bytes = 4000;
  known.seconds = 0.5;
  known.algorithm = "ring";
  ResultRow unknown = known;
  unknown.algorithm.clear();
  const std::vector<Observation> star = observations_of({known, unknown}, make_tree({4}), 3);
  ASSERT_EQ(star.size(), 2U);
  EXPECT_EQ(star[0].algorithm.name, "ring");
  EXPECT_EQ(star[0].servers, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(star[0].size_floats, 1000);
  EXPECT_EQ(star[0].seconds, (std::vector<double>{0.5}));
  EXPECT_FALSE(star[1].algorithm.name.empty());
  EXPECT_EQ(star[1].plan, nullptr);
  const std::vector<Observation> tree = observations_of({unknown}, make_tree({2, 2}), 4);
  EXPECT_NE(tree[0].plan, nullptr);  // only a tree planner finds it
}

}  // namespace
}  // namespace gar
