// Decision tables, and the search for changes behind them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/planner.hpp"
#include "gar/topology.hpp"
#include "planner/changes.hpp"
#include "support/random_topology.hpp"

namespace gar {
namespace {

// a from 1, b from 10, c from 100, a again from 1000.
std::string step(std::int64_t x) { return x < 10 ? "a" : x < 100 ? "b" : x < 1000 ? "c" : "a"; }

ChangeSearch<std::int64_t> step_search() {
  ChangeSearch<std::int64_t> search;
  search.best = step;
  search.middle = [](std::int64_t near, std::int64_t far) -> std::optional<std::int64_t> {
    if (std::abs(far - near) <= 1) return std::nullopt;
    return (near + far) / 2;
  };
  return search;
}

TEST(Changes, AllInOrder) {
  ChangeSearch<std::int64_t> search = step_search();
  search.is_trusted = [](std::int64_t near, std::int64_t far) { return far - near < 4; };
  std::vector<std::pair<std::int64_t, std::string>> found;
  EXPECT_TRUE(find_changes<std::int64_t>(search, {1, "a"}, {2000, "a"}, [&](const KnownBest<std::int64_t>& change) {
    found.emplace_back(change.place, change.best);
    return true;
  }));
  EXPECT_EQ(found, (std::vector<std::pair<std::int64_t, std::string>>{{10, "b"}, {100, "c"}, {1000, "a"}}));
}

TEST(Changes, TrustsEqualEndsUnlessTold) {
  EXPECT_FALSE(first_change<std::int64_t>(step_search(), {1, "a"}, {2000, "a"}));
}

TEST(Changes, TheNearestOneInBothDirections) {
  const auto up = first_change<std::int64_t>(step_search(), {1, "a"}, {500, "c"});
  ASSERT_TRUE(up);
  EXPECT_EQ(up->place, 10);
  EXPECT_EQ(up->best, "b");
  const auto down = first_change<std::int64_t>(step_search(), {500, "c"}, {1, "a"});
  ASSERT_TRUE(down);
  EXPECT_EQ(down->place, 99);
  EXPECT_EQ(down->best, "b");
}

DecisionTableRequest table_of(const char* network, const std::vector<const char*>& algorithms) {
  DecisionTableRequest request{.plan = {.topology = topology_from_spec(network)}, .from = 1000, .to = 1'000'000'000};
  for (const char* name : algorithms) request.plan.algorithms.push_back(parse_algorithm(name));
  return request;
}

/// Rows follow each other without gaps, neighbours differ, and each end is what plan() says.
void expect_sound(const std::vector<DecisionRow>& rows, const DecisionTableRequest& request) {
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.front().first.count, request.from);
  EXPECT_EQ(rows.back().last.count, request.to);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) {
      EXPECT_EQ(rows[i].first.count, rows[i - 1].last.count + 1);
      EXPECT_NE(rows[i].first.words(), rows[i - 1].first.words());
    }
    for (const DecisionPoint& point : {rows[i].first, rows[i].last}) {
      PlanRequest one = request.plan;
      one.size_floats = static_cast<double>(point.count * request.element_bytes) / 4;
      const PlanAnswer answer = plan(one);
      EXPECT_EQ(to_string(point.spec), to_string(answer.spec)) << point.count;
      EXPECT_EQ(point.terms, answer.terms) << point.count;
      EXPECT_EQ(point.num_chunks, answer.plan.num_chunks) << point.count;
      EXPECT_EQ(plan_words(point.switches), plan_words(answer.switches)) << point.count;
    }
  }
}

// On ss24 hcps 8x3 overtakes cps where its 2 more steps (39.48 ms of latency) are worth what it saves in incast.
TEST(DecisionTable, FindsTheCrossover) {
  const DecisionTableRequest request = table_of("ss24", {"cps", "hcps", "ring", "rhd"});
  const std::vector<DecisionRow> rows = decision_table(request);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].first.words(), "cps: root cps 24");
  EXPECT_EQ(rows[1].first.words(), "hcps:8x3: root hcps 8x3");
  // At the border both cost the same, up to the resolution.
  EXPECT_NEAR(rows[0].last.terms.total(), rows[1].first.terms.total(), 2e-4 * rows[1].first.terms.total());
  expect_sound(rows, request);
}

TEST(DecisionTable, OfGenTreePlusOnATree) {
  DecisionTableRequest request = table_of("tree:3x4", {});
  request.to = 100'000'000;
  expect_sound(decision_table(request), request);
}

TEST(DecisionTable, CountsElementsAndReportsProgress) {
  DecisionTableRequest request = table_of("ss24", {"cps", "hcps"});
  const std::int64_t in_floats = decision_table(request).back().first.count;
  request.element_bytes = 8;
  std::int64_t last = 0;
  request.progress = [&](std::int64_t num_planned, std::int64_t count) {
    EXPECT_EQ(num_planned, last + 1);
    EXPECT_GE(count, request.from);
    last = num_planned;
  };
  const std::int64_t in_doubles = decision_table(request).back().first.count;
  EXPECT_NEAR(static_cast<double>(in_doubles), static_cast<double>(in_floats) / 2,
              2e-4 * static_cast<double>(in_doubles));
  EXPECT_GT(last, 2);
}

// Merged rows cover the same sizes; what stands in them is at most 1% from the best plan, at both ends of exact rows.
TEST(DecisionTable, MergesRowsThatAreNearlyAsGood) {
  DecisionTableRequest request = table_of("tree:4x12@100Gbit/s+400Gbit/s", {});
  request.to = 10'000'000;
  const std::vector<DecisionRow> exact = decision_table(request);
  request.merge = 0.01;
  const std::vector<DecisionRow> merged = decision_table(request);
  ASSERT_FALSE(merged.empty());
  EXPECT_LT(merged.size(), exact.size());
  EXPECT_EQ(merged.front().first.count, request.from);
  EXPECT_EQ(merged.back().last.count, request.to);
  std::size_t row = 0;
  for (const DecisionRow& one : exact) {
    while (merged[row].last.count < one.first.count) {
      ++row;
      EXPECT_EQ(merged[row].first.count, merged[row - 1].last.count + 1);
    }
    EXPECT_LE(one.last.count, merged[row].last.count);
    for (const DecisionPoint* end : {&merged[row].first, &merged[row].last}) {
      for (const DecisionPoint* best : {&one.first, &one.last}) {
        if (end->count == best->count) {
          EXPECT_LE(end->terms.total(), 1.01 * best->terms.total());
        }
      }
    }
    EXPECT_EQ(merged[row].first.words(), merged[row].last.words());
  }
}

TEST(DecisionTable, RefusesAnEmptyRange) {
  DecisionTableRequest request = table_of("ss24", {"cps"});
  request.from = 0;
  EXPECT_THROW(decision_table(request), InvalidArgument);
  request.from = request.to;
  EXPECT_THROW(decision_table(request), InvalidArgument);
  request.from = 1;
  request.merge = -1;
  EXPECT_THROW(decision_table(request), InvalidArgument);
}

// What chunks wait for each other, which is simulated, is in the times at both ends of a row.
TEST(DecisionTable, BothEndsHaveWhatWasSimulated) {
  constexpr std::int64_t kFloats = 30'000'000;
  int num_compared = 0;
  for (std::uint64_t seed = 1; seed <= 200 && num_compared == 0; ++seed) {
    std::mt19937_64 random(seed);
    test::RandomTopologyOptions options;
    options.min_servers = 4;
    options.max_servers = 8;
    options.decades = 1;
    options.same_per_level = false;
    PlanRequest request{.topology = test::random_topology(random, options), .size_floats = kFloats};
    const PlanAnswer there = plan(request);
    if (there.priced->waiting() <= 0) continue;
    const std::vector<DecisionRow> rows =
        decision_table({.plan = request, .from = kFloats - 1000, .to = kFloats, .merge = 0.05});
    const DecisionPoint& last = rows.back().last;
    ASSERT_EQ(last.count, kFloats);
    if (plan_words(last.switches) != plan_words(there.switches)) continue;
    EXPECT_NEAR(last.terms.total(), there.seconds(), 1e-9 * there.seconds()) << "seed " << seed;
    const DecisionPoint& first = rows.front().first;
    if (rows.size() == 1) {
      EXPECT_NEAR(first.terms.total(), last.terms.total(), 0.01 * last.terms.total());
    }
    ++num_compared;
  }
  EXPECT_GT(num_compared, 0);
}

}  // namespace
}  // namespace gar
