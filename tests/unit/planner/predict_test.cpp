// Which algorithm is best, and where that changes, against the closed forms of one switch.
//
// N servers on a switch with paths of latency A, w_t = 2, e = N - 1 - w_t senders too many. Derived in
// closed_forms_test.cpp:
//   cps    2 A         + S (N-1)/N (2 beta + 2 e epsilon + gamma) + S (N+1)/N delta
//   ring   2 (N-1) A   + S (N-1)/N (2 beta + gamma)               + S 3 (N-1)/N delta
// CPS has fewer steps, the ring no incast:
//   ring - cps = 2 (N-2) A - S (2 (N-1) e epsilon - (2 N - 4) delta) / N
#include "gar/predict.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gar/planner.hpp"
#include "gar/topology_io.hpp"
#include "support/slow_build.hpp"

namespace gar {
namespace {

constexpr double kNodeAlpha = 1e-5;  // A = 3e-5: a switch and two servers
constexpr double kEpsilon = 1e-10;
constexpr double kDelta = 4.9e-10;

PaperParams params() {
  PaperParams out;
  out.alpha = kNodeAlpha;
  out.server_link = {1e-9, kEpsilon, 2};
  out.inner_link = {1e-9, kEpsilon, 2};
  out.server = {2e-10, kDelta};
  return out;
}
Topology star(std::int64_t n) { return make_tree({n}, params()); }

ModelOptions senders() {
  ModelOptions out;
  out.degree = IncastDegree::kSenders;
  return out;
}

const AlgorithmSpec kCps{"cps", {}, false};
const AlgorithmSpec kRing{"ring", {}, false};

/// The best of the algorithms that have a closed form without factors; the first of equals.
std::string best_by_closed_form(std::int64_t n, double size_floats, bool is_all) {
  const OneSwitch p = one_switch_params(star(n), IncastDegree::kSenders);
  std::string best = "cps";
  double least = closed_cps(n, size_floats, p).total();
  const auto offer = [&](const char* name, const Terms& terms) {
    if (terms.total() >= least) return;
    least = terms.total();
    best = name;
  };
  offer("ring", closed_ring(n, size_floats, p));
  if (!is_all) return best;
  offer("rhd", closed_rhd(n, size_floats, p));
  offer("reduce-broadcast", closed_reduce_broadcast(n, size_floats, p));
  return best;
}

// N = 12, e = 9: ring - cps = 20 A - S (198 epsilon - 20 delta) / 12 = 6e-4 - S 1e-8 / 12, which is 0 at S = 720,000.
TEST(SizeFlips, WhereTheRingOvertakesCps) {
  constexpr double kFlip = 720'000;
  Predictor predictor(star(12), {kCps, kRing}, senders());
  for (const double below : {1.0, 1000.0, 719'990.0}) {
    const Flips flips = predictor.size_flips(below);
    EXPECT_FALSE(flips.below.has_value()) << below;
    ASSERT_TRUE(flips.above.has_value()) << below;
    EXPECT_EQ(flips.above->algorithm, "ring");
    EXPECT_NEAR(flips.above->at, kFlip, 1) << below;
    EXPECT_EQ(predictor.at(below).front().algorithm(), "cps");
  }
  for (const double above : {720'010.0, 1e7, 1e15}) {
    const Flips flips = predictor.size_flips(above);
    EXPECT_FALSE(flips.above.has_value()) << above;
    ASSERT_TRUE(flips.below.has_value()) << above;
    EXPECT_EQ(flips.below->algorithm, "cps");
    EXPECT_NEAR(flips.below->at, kFlip, 1) << above;
    EXPECT_EQ(predictor.at(above).front().algorithm(), "ring");
  }
}

TEST(SizeFlips, AreSoughtUpTo1e15FloatsAndNotWhereNothingIsAsked) {
  Predictor alone(star(12), {kCps}, senders());
  const Flips flips = alone.size_flips(1000);
  EXPECT_FALSE(flips.below.has_value());
  EXPECT_FALSE(flips.above.has_value());
  EXPECT_EQ(flips.searched_from, 1);
  EXPECT_EQ(flips.searched_to, 1e15);
  Predictor none(star(12), {}, senders());
  EXPECT_FALSE(none.size_flips(1000).above.has_value());
  Predictor both(star(12), {kCps, kRing}, senders());
  EXPECT_FALSE(both.size_flips(0.5).above.has_value()) << "a vector has at least one element";
}

// On both sides of a flip at() says what the flip says, also where a family (hcps) has many members.
TEST(SizeFlips, AgreeWithWhatIsBestOnBothSides) {
  for (const std::vector<std::int64_t>& factors : {std::vector<std::int64_t>{12}, {24}, {3, 4}, {2, 9}}) {
    Predictor predictor(make_tree(factors, params()), classic_algorithms(), senders());
    for (const double size : {10.0, 1e4, 1e6, 1e9}) {
      const std::string here = predictor.at(size).front().algorithm();
      const Flips flips = predictor.size_flips(size);
      if (flips.above) {
        EXPECT_GT(flips.above->at, size);
        EXPECT_NE(flips.above->algorithm, here);
        EXPECT_EQ(predictor.at(flips.above->at).front().algorithm(), flips.above->algorithm);
        EXPECT_EQ(predictor.at(std::max(size, flips.above->at * (1 - 1e-5) - 1)).front().algorithm(), here);
      }
      if (flips.below) {
        EXPECT_LT(flips.below->at, size);
        EXPECT_NE(flips.below->algorithm, here);
        EXPECT_EQ(predictor.at(flips.below->at).front().algorithm(), flips.below->algorithm);
        EXPECT_EQ(predictor.at(std::min(size, flips.below->at * (1 + 1e-5) + 1)).front().algorithm(), here);
      }
    }
  }
}

TEST(BestKind, IsTheLeastOfTheClosedForms) {
  const std::vector<AlgorithmSpec> algorithms{kCps, kRing, {"rhd", {}, false}, {"reduce-broadcast", {}, false}};
  for (std::int64_t n = 2; n <= 33; ++n) {
    Predictor predictor(star(n), algorithms, senders());
    for (double size = 1; size < 1e12; size *= 31) {
      EXPECT_EQ(predictor.best_kind(size), best_by_closed_form(n, size, true)) << n << " servers, " << size;
    }
  }
}

// best_kind stops early where at() settles every factorisation; the name must be the same.
TEST(BestKind, IsTheNameOfTheBestPrediction) {
  for (const std::vector<std::int64_t>& factors :
       {std::vector<std::int64_t>{1}, {2}, {7}, {12}, {30}, {4, 6}, {3, 3}, {2, 2, 5}}) {
    for (double size = 1; size < 1e12; size *= 97) {
      // Two predictors: what one has priced before must not matter to the other.
      Predictor kinds(make_tree(factors, params()), classic_algorithms(), senders());
      Predictor all(make_tree(factors, params()), classic_algorithms(), senders());
      EXPECT_EQ(kinds.best_kind(size), all.at(size).front().spec.name) << factors.size() << " levels, " << size;
    }
  }
}

/// The nearest number of servers at which the closed forms prefer something else; nothing up to the limit.
std::optional<std::int64_t> closed_form_flip(std::int64_t here, std::int64_t direction, double size_floats,
                                             std::int64_t last) {
  const std::string kind = best_by_closed_form(here, size_floats, false);
  for (std::int64_t n = here + direction; direction < 0 ? n >= last : n <= last; n += direction) {
    if (best_by_closed_form(n, size_floats, false) != kind) return n;
  }
  return std::nullopt;
}

TEST(RankFlips, AreWhereTheClosedFormsChange) {
  int num_flips = 0;
  for (const std::int64_t here : {3, 8, 12, 40}) {
    for (double size = 1e3; size < 1e10; size *= 7) {
      const std::optional<Flips> flips = rank_flips(star(here), {kCps, kRing}, size, senders());
      ASSERT_TRUE(flips.has_value());
      for (const bool is_above : {false, true}) {
        const std::optional<Flip>& found = is_above ? flips->above : flips->below;
        const double searched = is_above ? flips->searched_to : flips->searched_from;
        const auto expected = closed_form_flip(here, is_above ? 1 : -1, size, static_cast<std::int64_t>(searched));
        ASSERT_EQ(found.has_value(), expected.has_value()) << here << " servers, " << size;
        if (!found) continue;
        ++num_flips;
        EXPECT_EQ(found->at, static_cast<double>(*expected)) << here << " servers, " << size;
        EXPECT_EQ(found->algorithm, best_by_closed_form(*expected, size, false));
        EXPECT_EQ(searched, found->at);
      }
    }
  }
  EXPECT_GT(num_flips, 8) << "this test compares nothing";
}

// On a tree the servers of every rack vary; numbers of ranks are those of the whole network. Sixteen steps of one, then
// 2, 4, 8, ... as long as a rack has at most 2 * 4 + 32 servers: 4 + 16 + 2 + 4 + 8 = 34 are the last.
TEST(RankFlips, CountTheRanksOfAllSwitches) {
  const std::optional<Flips> flips = rank_flips(make_tree({3, 4}, params()), {kCps}, 1e6, senders());
  ASSERT_TRUE(flips.has_value());
  EXPECT_FALSE(flips->below || flips->above);
  EXPECT_EQ(flips->searched_from, 3);
  EXPECT_EQ(flips->searched_to, 3 * 34);
}

// At powers of two RHD sits nobody out, and may win there alone: the ranges are those of the other numbers, and are
// true of each of them; so are the exceptions.
TEST(RankFlips, PowersOfTwoAreNamedOneByOne) {
  constexpr double kSame = 1 + 1e-9;  // of two that take equally long either may be named
  int num_exceptions = 0;
  for (const std::int64_t here : test::in_slow_build<std::vector<std::int64_t>>({5, 12, 31}, {5, 12, 16, 31, 40})) {
    for (const double size : {1e4, 1e6, 3e7, 1e9}) {
      const std::optional<Flips> flips = rank_flips(star(here), classic_algorithms(), size, senders());
      ASSERT_TRUE(flips.has_value());
      num_exceptions += static_cast<int>(flips->exceptions.size());
      for (std::int64_t n = std::max<std::int64_t>(3, here - 16); n <= here + 16; ++n) {
        const bool is_power = (n & (n - 1)) == 0;
        if (!is_power && (n < flips->searched_from || n > flips->searched_to)) continue;
        std::string said = flips->best_at(static_cast<double>(n));
        for (const Flip& exception : flips->exceptions) {
          EXPECT_EQ(std::fmod(std::log2(exception.at), 1), 0);
          if (exception.at == static_cast<double>(n)) said = exception.algorithm;
        }
        std::vector<Prediction> all = Predictor(star(n), classic_algorithms(), senders()).at(size);
        const auto of_said = std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.spec.name == said; });
        ASSERT_NE(of_said, all.end());
        EXPECT_LE(of_said->seconds(), kSame * all.front().seconds())
            << n << " of " << here << " servers, " << size << " floats: said is " << said << ", not "
            << all.front().algorithm();
      }
    }
  }
  EXPECT_GT(num_exceptions, 0) << "this test has seen no exception";
}

TEST(RankFlips, NeedOpenFactorsAndSwitchesThatAreAlike) {
  EXPECT_FALSE(rank_flips(star(12), {{"hcps", {3, 4}, false}}, 1e6, senders()).has_value());
  EXPECT_FALSE(rank_flips(builtin_topology("asy384"), {kCps, kRing}, 1e6, senders()).has_value());
}

/// A switch with racks of these many servers.
Topology switches_with(const std::vector<int>& servers) {
  const std::string link = R"("alpha":0,"beta":1e-9,"epsilon":0,"incast_threshold":9)";
  std::string children;
  for (const int n : servers) {
    children += (children.empty() ? "" : ",") + (R"({"name":"rack",)" + link + R"(,"children":[{"name":"server",)") +
                link + R"(,"gamma":1e-10,"delta":1e-10,"repeat":)" + std::to_string(n) + "}]}";
  }
  return parse_topology(R"({"schema":"gar.topology/1","tree":{"alpha":0,"children":[)" + children + "]}}", "racks");
}

TEST(ServersPerSwitch, IsZeroWhereSwitchesDiffer) {
  EXPECT_EQ(servers_per_switch(star(5)), 5);
  EXPECT_EQ(servers_per_switch(star(1)), 1);
  EXPECT_EQ(servers_per_switch(make_tree({3, 4})), 4);
  EXPECT_EQ(servers_per_switch(make_tree({2, 3, 7})), 7);
  EXPECT_EQ(servers_per_switch(switches_with({3, 3})), 3);
  EXPECT_EQ(servers_per_switch(switches_with({3, 2})), 0);
  EXPECT_EQ(servers_per_switch(builtin_topology("asy384")), 0);
}

TEST(WithServersPerSwitch, ChangesTheLowestSwitchesAlone) {
  const std::optional<Topology> changed = with_servers_per_switch(make_tree({3, 4}), 9);
  ASSERT_TRUE(changed.has_value());
  const Topology expected = make_tree({3, 9});
  ASSERT_EQ(changed->num_nodes(), expected.num_nodes());
  EXPECT_EQ(changed->num_servers(), 27);
  EXPECT_EQ(changed->num_switches(), 4);
  for (NodeId id = 0; id < expected.num_nodes(); ++id) {
    EXPECT_EQ(changed->node(id).children, expected.node(id).children);
    EXPECT_EQ(changed->node(id).uplink, expected.node(id).uplink);
    EXPECT_EQ(changed->node(id).server, expected.node(id).server);
    EXPECT_EQ(changed->node(id).alpha, expected.node(id).alpha);
  }
  EXPECT_EQ(with_servers_per_switch(star(5), 1)->num_servers(), 1);
  EXPECT_EQ(with_servers_per_switch(switches_with({2, 2}), 5)->num_servers(), 10);
}

TEST(WithServersPerSwitch, IsNothingWhereThereIsNoSuchNetwork) {
  EXPECT_FALSE(with_servers_per_switch(switches_with({3, 2}), 4).has_value());
  EXPECT_FALSE(with_servers_per_switch(star(5), 0).has_value());
  EXPECT_FALSE(with_servers_per_switch(star(5), -1).has_value());
}

TEST(Predict, GentreePlusComesFirstWhereItIsAsFastAsGentree) {
  PredictRequest request{make_tree({4}), 10, {parse_algorithm("gentree"), parse_algorithm("gentree+")}};
  const PredictAnswer answer = predict(request);
  ASSERT_EQ(answer.results.size(), 2U);
  EXPECT_EQ(answer.results[0].best_seconds(), answer.results[1].best_seconds());
  EXPECT_EQ(answer.results[0].algorithm(), "gentree+");
}

// Of a thousand servers hundreds of groupings are compared, and a page waits for the answer: few of them may be priced,
// even of a prime number.
TEST(Predict, PricesFewGroupings) {
  const auto priced = [](const Topology& network, double size) {
    const Prediction p = Predictor(network, {{"hcps", {}, false}}).at(size).front();
    EXPECT_GT(p.num_considered, 200) << network.name();
    EXPECT_TRUE(p.is_complete);
    return p.num_priced;
  };
  for (const double size : {6.4e4, 1e8}) {
    EXPECT_LE(priced(make_tree({1000}), size), 30) << size;
    EXPECT_LE(priced(make_tree({997}), size), 100) << size;
    EXPECT_LE(priced(make_tree({25, 40}), size), 60) << size;
  }
}

// What gentree+ was compared with in chunks has the same price in the list of predictions.
TEST(Predict, PricesRivalsInChunksAsThePlannerDoes) {
  const Topology network = make_tree({2, 4});
  constexpr double kSize = 1e8;
  PredictRequest request{network, kSize, classic_algorithms()};
  request.algorithms.push_back(parse_algorithm("gentree+"));
  const PredictAnswer answer = predict(request);
  const TreePlan planned = gentree_plus(network, kSize);
  int num_found = 0;
  double least = 0;
  for (const PredictRow& row : answer.results) {
    EXPECT_TRUE(row.is_chunked);
    EXPECT_LE(row.best_seconds(), row.whole.total());
    EXPECT_GE(row.best_seconds(), least) << "best first";
    least = row.best_seconds();
    EXPECT_EQ(row.plan->num_ranks, 8);
    EXPECT_EQ(row.terms, row.algorithm() == "gentree+" ? row.chunked : row.whole);
    for (const PlanCandidate& candidate : planned.considered) {
      if (candidate.algorithm != row.algorithm()) continue;
      EXPECT_EQ(row.chunked, candidate.terms) << row.algorithm();
      EXPECT_EQ(row.num_chunks, candidate.num_chunks) << row.algorithm();
      ++num_found;
    }
  }
  EXPECT_EQ(answer.results.front().algorithm(), "gentree+");
  EXPECT_GE(num_found, 3);
}

}  // namespace
}  // namespace gar
