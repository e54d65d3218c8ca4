// The builders, their names, and the pieces that they are made of.
#include "gar/algorithms.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gar/errors.hpp"
#include "gar/topology.hpp"
#include "gar/verify.hpp"
#include "support/plans.hpp"

namespace gar {
namespace {

using test::Factors;

// What an exception of type E says; empty when nothing is thrown.
template <class E, class F>
std::string message_of(F f) {
  try {
    (void)f();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' does not contain '" << part << "'";
}

TEST(ParseAlgorithm, Names) {
  for (const char* text : {"reduce-broadcast", "ring", "rhd", "cps", "hcps", "hring", "acps", "recursive-doubling",
                           "recursive-multiplying", "binomial", "gather"}) {
    const AlgorithmSpec spec = parse_algorithm(text);
    EXPECT_EQ(spec.name, text);
    EXPECT_TRUE(spec.factors.empty());
    EXPECT_FALSE(spec.uneven);
    EXPECT_EQ(to_string(spec), text);
  }
}

TEST(ParseAlgorithm, Factors) {
  EXPECT_EQ(parse_algorithm("hcps:8x3").factors, (Factors{8, 3}));
  EXPECT_EQ(parse_algorithm("hcps:24").factors, Factors{24});
  EXPECT_EQ(parse_algorithm("hring:4x6x2").factors, (Factors{4, 6, 2}));
  EXPECT_EQ(parse_algorithm("acps:4+3+1").factors, (Factors{4, 3, 1}));
  EXPECT_FALSE(parse_algorithm("hcps:8x3").uneven);
  EXPECT_TRUE(parse_algorithm("hcps:~9x11").uneven);
  for (const char* text : {"hcps:8x3", "hcps:~9x11", "hring:4x6x2", "acps:4+3+1", "recursive-multiplying:4x4"}) {
    EXPECT_EQ(to_string(parse_algorithm(text)), text);
  }
}

TEST(ParseAlgorithm, Errors) {
  for (const char* text : {"",          "tree",       "RING",           "cps ",
                           ":",         "cps:3",      "ring:",          "rhd:2x2",
                           "hcps:",     "hcps:8x",    "hcps:x3",        "hcps:0x3",
                           "hcps:8xx3", "hcps:-2x3",  "hcps:8+3",       "hcps:8.5x2",
                           "hcps:~",    "hcps:~~2x2", "hcps:8x3 ",      "hring:~2x3",
                           "acps:4x3",  "acps:+",     "hcps:100000001", "hcps:99999999999999999999999999",
                           "hcps:8x\n3"}) {
    const std::string message = message_of<InvalidArgument>([&] { return parse_algorithm(text); });
    SCOPED_TRACE(text);
    expect_contains(message, "expected one of reduce-broadcast, ring, rhd, cps, hcps, hcps:8x3 (factors)");
  }
  expect_contains(message_of<InvalidArgument>([] { return parse_algorithm("tree"); }), "unknown algorithm 'tree'");
  expect_contains(message_of<InvalidArgument>([] { return parse_algorithm("cps:3"); }), "'cps' takes no factors");
}

// Whatever the registry lists can be parsed, printed, and either built or left to a planner.
TEST(Registry, RowsAreConsistent) {
  std::set<std::string_view> names;
  std::set<int> orders;
  for (const AlgorithmInfo& info : algorithms()) {
    SCOPED_TRACE(info.name);
    EXPECT_TRUE(names.insert(info.name).second);
    EXPECT_FALSE(info.words.empty());
    EXPECT_TRUE(info.forms.starts_with(info.name));
    EXPECT_EQ(find_algorithm(info.name), &info);
    const AlgorithmSpec spec = parse_algorithm(info.name);
    EXPECT_EQ(to_string(spec), info.name);
    EXPECT_EQ(is_tree_planner(spec), info.needs_network());
    EXPECT_EQ(needs_factors(spec), info.finds_factors);
    EXPECT_TRUE(info.comparison_order == 0 || !info.needs_network());
    EXPECT_TRUE(info.comparison_order == 0 || orders.insert(info.comparison_order).second);
    if (info.parameters == AlgorithmParameters::kNone && !info.needs_network()) {
      EXPECT_EQ(build_plan(spec, 12).algorithm, info.name);
    } else {
      EXPECT_THROW((void)build_plan(spec, 12), InvalidArgument);
    }
  }
  EXPECT_EQ(find_algorithm("tree"), nullptr);
}

TEST(BuildPlan, NamesItself) {
  for (const char* text : {"reduce-broadcast", "ring", "rhd", "cps", "hcps:4x3", "hcps:~4x3", "hcps:3x2x2", "hring:6x2",
                           "acps:7+5", "acps:4+4+4", "recursive-doubling", "recursive-multiplying:4x3",
                           "recursive-multiplying:3x3", "binomial", "gather"}) {
    const Plan plan = build_plan(parse_algorithm(text), 12);
    EXPECT_EQ(plan.algorithm, text);
    EXPECT_EQ(plan.num_ranks, 12);
    EXPECT_EQ(plan.collective, Collective::kAllReduce);
    EXPECT_TRUE(verify(plan).ok) << text;
  }
}

TEST(BuildPlan, Errors) {
  const auto message = [](const char* text, std::int64_t n) {
    return message_of<InvalidArgument>([&] { return build_plan(parse_algorithm(text), n); });
  };
  expect_contains(message("hcps", 24), "'hcps' needs factors here, as in hcps:8x3");
  expect_contains(message("acps", 24), "'acps' needs factors here, as in acps:4+3");
  expect_contains(message("hcps:5x5", 24),
                  "factors 5x5 do not multiply to 24 servers; expected factors of at least 2 with product 24, or "
                  "uneven groups as in hcps:~5x5");
  expect_contains(message("hcps:24x1", 24), "do not multiply to 24");
  expect_contains(message("hring:4x5", 24), "factors 4x5 do not multiply to 24");
  expect_contains(message("hcps:100000000x100000000x100000000", 64), "do not multiply to 64");
  expect_contains(message("acps:4+3", 24), "acps:4+3: the group sizes add up to 7, not to 24 servers");
  expect_contains(message("hcps:~4x5", 24),
                  "innermost groups of 24 servers have up to 5, so the first factor must be 5");
  expect_contains(message("hcps:~2x99", 24), "factor 99 does not fit 24 servers; expected 2 to 24");
  expect_contains(message("hcps:~24x1", 24), "factor 1 does not fit 24 servers");
  expect_contains(message("cps", 0), "0 ranks; expected 1 to 100000000");
  expect_contains(message("rhd", -3), "-3 ranks");
  expect_contains(message("ring", kMaxServers + 1), "expected 1 to 100000000");
  expect_contains(message("recursive-multiplying", 24), "'recursive-multiplying' needs factors here");
  expect_contains(message("recursive-multiplying:5x5", 24),
                  "factors 5x5 do not fit 24 servers; expected factors of at least 2 whose product is at most 24: "
                  "servers beyond it fold into a partner");
  expect_contains(message("recursive-multiplying:4x1", 24), "factors 4x1 do not fit 24 servers");
  expect_contains(message("recursive-multiplying:100000000x100000000x100000000", 64), "do not fit 64 servers");
  EXPECT_THROW((void)recursive_multiplying(2, {}), InvalidArgument);
  EXPECT_THROW((void)acps({}), InvalidArgument);
  EXPECT_THROW((void)acps({3, 0}), InvalidArgument);
  EXPECT_THROW((void)acps({kMaxServers, kMaxServers}), InvalidArgument);
  EXPECT_THROW((void)uneven_hcps(7, {}), InvalidArgument);
}

TEST(BuildPlan, OneRankHasNothingToDo) {
  for (const Plan& plan : {reduce_broadcast(1), ring(1), rhd(1), cps(1), hcps(1, {}), hierarchical_ring(1, {}),
                           acps({1}), gather(1), recursive_doubling(1), recursive_multiplying(1, {}), binomial(1),
                           as_reduce_scatter(cps(1)), as_all_gather(ring(1))}) {
    SCOPED_TRACE(plan.algorithm);
    const PlanIndex index(plan);
    EXPECT_EQ(index.num_steps(), 0);
    EXPECT_TRUE(index.program(0).steps.empty());
    EXPECT_TRUE(verify(plan).ok);
  }
}

// Ordered factorisations: 1, 1, 2, 1, 3, 1, 4, 2, 3, 1, 8, ... for n = 2, 3, ...; 2^(k-1) for the k-th power of a
// prime.
TEST(OrderedFactorisations, Counts) {
  const std::map<std::int64_t, std::size_t> known{{1, 0},   {2, 1},   {4, 2},   {6, 3},   {8, 4},  {12, 8},
                                                  {24, 20}, {36, 26}, {48, 48}, {64, 32}, {97, 1}, {1024, 512}};
  for (const auto& [n, count] : known) EXPECT_EQ(ordered_factorisations(n).size(), count) << n;
  EXPECT_EQ(ordered_factorisations(12),
            (std::vector<Factors>{{12}, {6, 2}, {4, 3}, {3, 4}, {3, 2, 2}, {2, 6}, {2, 3, 2}, {2, 2, 3}}));
  EXPECT_EQ(ordered_factorisations(1024, 10).size(), 10U);
}

// HCPS 2 x 3: neighbours first. Ranks 0..5, digit 0 = rank % 2, digit 1 = rank / 2.
TEST(Builders, HcpsStages) {
  const Plan plan = hcps(6, {2, 3});
  ASSERT_EQ(plan.subplans.size(), 1U);
  EXPECT_EQ(plan.subplans[0].children, (std::vector<SubPlanRun>{{kLeaf, 6}}));
  EXPECT_EQ(plan.subplans[0].stages,
            (std::vector<Stage>{{StageKind::kDirect, 1, 2, {}}, {StageKind::kDirect, 2, 3, {}}}));
  EXPECT_EQ(PlanIndex(plan).held_after(plan.root, 3), (std::vector<Interval>{{4, 5}}));  // half 1, third 1
}

// 6 = 4 + 2: ranks 1 and 3 fold into 0 and 2; then 0 2 4 5 halve twice.
TEST(Builders, RhdFolds) {
  const Plan plan = rhd(6);
  const PlanIndex index(plan);
  EXPECT_EQ(index.num_steps(), 2 * (1 + 2));
  EXPECT_EQ(index.num_active_before(plan.root), 4);
  std::vector<std::int64_t> active;
  for (std::int64_t k = 0; k < 4; ++k) active.push_back(index.rank_of_active(plan.root, k));
  EXPECT_EQ(active, (std::vector<std::int64_t>{0, 2, 4, 5}));
  EXPECT_TRUE(index.held_after(plan.root, 1).empty());
}

// 6 = 4 + 2, as above; the exchanges of 0 2 4 5 happen once, the fold has its mirror image.
TEST(Builders, RecursiveDoublingFolds) {
  const Plan plan = recursive_doubling(6);
  const PlanIndex index(plan);
  EXPECT_EQ(index.num_steps(), 1 + 2 + 1);
  EXPECT_EQ(index.num_mirrored_steps(), 1);
  EXPECT_EQ(index.num_active_before(plan.root), 4);
  EXPECT_EQ(index.held_after(plan.root, 4), (std::vector<Interval>{{0, 1}}));
  EXPECT_TRUE(index.held_after(plan.root, 1).empty());
  const Message whole{0, true, 0, 1};
  Message from = whole;
  Message to = whole;
  to.accumulate = false;
  from.peer = to.peer = 5;
  EXPECT_EQ(index.program(4).steps[0], (Step{1, {to}, {from}}));
  from.peer = to.peer = 0;
  EXPECT_EQ(index.program(4).steps[1], (Step{2, {to}, {from}}));
  EXPECT_EQ(index.program(4).steps.size(), 2U);
  EXPECT_EQ(index.program(1).steps.size(), 2U);
  EXPECT_EQ(index.program(1).steps.back().number, 3);
}

// 11 ranks in 2 x 2 groups of 3, 3, 3 and 2, whose first ranks exchange.
TEST(Builders, RecursiveMultiplyingFoldsInEvenGroups) {
  const Plan plan = recursive_multiplying(11, {2, 2});
  const PlanIndex index(plan);
  EXPECT_EQ(index.num_steps(), 4);
  std::vector<std::int64_t> active;
  for (std::int64_t k = 0; k < 4; ++k) active.push_back(index.rank_of_active(plan.root, k));
  EXPECT_EQ(active, (std::vector<std::int64_t>{0, 3, 6, 9}));
}

TEST(Builders, GatherIsOneStep) {
  const VerifyReport report = verify(gather(5));
  EXPECT_EQ(report.num_steps, 1);
  EXPECT_EQ(report.num_messages, 20);
  EXPECT_EQ(report.max_fan_in, 5);
}

// 6 ranks: 0 <- 1, 2 <- 3 and 4 <- 5; then 0 <- 2; then 0 <- 4; and back.
TEST(Builders, BinomialTree) {
  const Plan plan = binomial(6);
  const PlanIndex index(plan);
  EXPECT_EQ(index.num_steps(), 2 * 3);
  EXPECT_EQ(index.program(4).steps.size(), 4U);
  EXPECT_EQ(index.program(4).steps[1].number, 2);
  EXPECT_EQ(index.program(4).steps[1].sends.front().peer, 0);
  EXPECT_LE(binomial(1'000'000).subplans.size(), 40U);
}

TEST(Stages, MessagesOfAStep) {
  const auto of = [](StageKind kind, std::int64_t radix) { return messages_per_step(Stage{kind, 1, radix, {}}); };
  EXPECT_EQ(of(StageKind::kDirect, 5), 4);
  EXPECT_EQ(of(StageKind::kExchange, 5), 4);
  EXPECT_EQ(of(StageKind::kRing, 5), 1);
  EXPECT_EQ(of(StageKind::kRing, 1), 0);
  EXPECT_EQ(of(StageKind::kExchange, 1), 0);
  EXPECT_EQ(of(StageKind::kPlace, 1), 0);
}

// 7 ranks in 3 groups: 3 + 2 + 2; a prime number of ranks in two even steps.
TEST(Builders, UnevenHcpsGroups) {
  const Plan plan = uneven_hcps(7, {3, 3});
  const SubPlan& top = plan.subplans[static_cast<std::size_t>(plan.root)];
  ASSERT_EQ(top.children.size(), 2U);
  EXPECT_EQ(top.children[0].count, 1);
  EXPECT_EQ(top.children[1].count, 2);
  const PlanIndex index(plan);
  EXPECT_EQ(index.num_ranks(top.children[0].subplan), 3);
  EXPECT_EQ(index.num_ranks(top.children[1].subplan), 2);
  EXPECT_EQ(index.num_steps(), 4);
  // Equal groups are digits and need no explicit target.
  EXPECT_EQ(uneven_hcps(12, {4, 3}).subplans.back().stages, (std::vector<Stage>{{StageKind::kDirect, 4, 3, {}}}));
}

// Every rank's new interval is cut out of the one it holds, all of them are equally large, together they are the
// vector.
TEST(AcpsTarget, EqualSharesInsideTheHoldings) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const std::int64_t n = test::uniform(random, 2, 60);
    const Factors groups = test::random_groups(random, n);
    const Plan plan = acps(groups);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + plan.algorithm);
    const PlanIndex index(plan);
    const SubPlan& top = plan.subplans[static_cast<std::size_t>(plan.root)];
    std::vector<std::vector<Interval>> held;  // before the last stage
    for (const SubPlanRun& run : top.children) {
      for (std::int64_t c = 0; c < run.count; ++c) {
        for (std::int64_t r = 0; r < index.num_ranks(run.subplan); ++r) {
          held.push_back(run.subplan == kLeaf ? std::vector<Interval>{{0, plan.num_units}}
                                              : index.held_after(run.subplan, r));
        }
      }
    }
    std::vector<std::int64_t> share(static_cast<std::size_t>(n), 0);
    std::int64_t reached = 0;
    for (const Piece& p : top.stages.front().target) {
      EXPECT_EQ(p.begin, reached);
      reached = p.end;
      share[static_cast<std::size_t>(p.owner)] += p.end - p.begin;
      const Interval own = held[static_cast<std::size_t>(p.owner)].front();
      EXPECT_TRUE(own.begin <= p.begin && p.end <= own.end) << "rank " << p.owner;
    }
    EXPECT_EQ(reached, plan.num_units);
    // Where the least common multiple of all group sizes is too fine, shares are rounded to whole units.
    const bool is_exact = plan.num_units < (std::int64_t{1} << 49);
    for (const std::int64_t s : share) EXPECT_LE(std::abs(s - plan.num_units / n), is_exact ? 0 : n);
    EXPECT_LE(top.stages.front().target.size(), static_cast<std::size_t>(2 * n));
    ASSERT_FALSE(HasFailure());
  }
}

TEST(AcpsTarget, NeedsAHolderForEveryUnit) {
  EXPECT_THROW((void)acps_target({{{0, 2, 0}}, {{0, 1, 1}}}, 2, 4), InvalidArgument);
}

// Block r ends at rank r, wherever the AllReduce leaves it: digits leave them in another order, Reduce-Broadcast and
// RHD on awkward numbers leave them at some ranks only.
TEST(Halves, RankOrder) {
  for (std::int64_t n = 2; n <= 24; ++n) {
    std::mt19937_64 random(static_cast<std::uint64_t>(n));
    for (const Plan& plan : test::plans_of_all_builders(random, n, 3)) {
      SCOPED_TRACE(plan.algorithm + " on " + std::to_string(n));
      if (!has_halves(plan)) {
        EXPECT_THROW((void)as_reduce_scatter(plan), InvalidArgument);
        EXPECT_THROW((void)as_all_gather(plan), InvalidArgument);
        continue;
      }
      const Plan scatter = as_reduce_scatter(plan);
      const Plan gather = as_all_gather(plan);
      EXPECT_EQ(scatter.collective, Collective::kReduceScatter);
      EXPECT_EQ(gather.collective, Collective::kAllGather);
      const VerifyReport s = verify(scatter);
      const VerifyReport g = verify(gather);
      EXPECT_TRUE(s.ok) << s.problem;
      EXPECT_TRUE(g.ok) << g.problem;
      EXPECT_EQ(s.num_steps, g.num_steps);
      EXPECT_EQ(s.volume_units, g.volume_units);
      const bool goes_home = scatter.subplans.back().stages.size() > plan.subplans.back().stages.size();
      EXPECT_EQ(s.num_steps + g.num_steps, PlanIndex(plan).num_steps() + (goes_home ? 2 : 0));
    }
  }
}

// What a rank holds beyond a block goes to those who lack it, and nothing else moves: six ranks, of which two pairs
// fold, end with a quarter of the vector or nothing.
TEST(Halves, MoveNoMoreThanTheyMust) {
  const Plan whole = rhd(6);
  const Plan scatter = as_reduce_scatter(whole);
  const Stage& last = scatter.subplans.back().stages.back();
  ASSERT_EQ(last.kind, StageKind::kPlace);
  const PlanIndex index(whole);
  const std::int64_t scale = scatter.num_units / whole.num_units;
  std::int64_t kept = 0;
  for (const Piece& before : index.placement_after(whole.root)) {
    for (const Piece& after : last.target) {
      if (after.owner != before.owner) continue;
      kept += std::max<std::int64_t>(
          std::min(after.end, before.end * scale) - std::max(after.begin, before.begin * scale), 0);
    }
  }
  EXPECT_EQ(kept, scatter.num_units / 6 * 4);  // four ranks keep a block each
}

TEST(Halves, ByCollective) {
  const Plan plan = hcps(6, {3, 2});
  EXPECT_EQ(as_collective(plan, Collective::kAllReduce), plan);
  EXPECT_EQ(as_collective(plan, Collective::kReduceScatter), as_reduce_scatter(plan));
  EXPECT_EQ(as_collective(plan, Collective::kAllGather), as_all_gather(plan));
  EXPECT_NO_THROW((void)as_collective(make_explicit(plan), Collective::kAllReduce));
}

TEST(FactorWords, AreJoined) {
  EXPECT_EQ(factor_words({8, 3}), "8x3");
  EXPECT_EQ(factor_words({16}), "16");
}

TEST(CollectiveNames, OursAndOlderSpellings) {
  EXPECT_EQ(to_string(Collective::kAllReduce), "allreduce");
  EXPECT_EQ(to_string(Collective::kReduceScatter), "reduce-scatter");
  EXPECT_EQ(to_string(Collective::kAllGather), "allgather");
  for (const Collective collective : kCollectives) EXPECT_EQ(parse_collective(to_string(collective)), collective);
  for (const char* text : {"all_reduce", "all-reduce"}) EXPECT_EQ(parse_collective(text), Collective::kAllReduce);
  for (const char* text : {"reduce_scatter", "reducescatter"})
    EXPECT_EQ(parse_collective(text), Collective::kReduceScatter);
  for (const char* text : {"all_gather", "all-gather"}) EXPECT_EQ(parse_collective(text), Collective::kAllGather);
  for (const char* text : {"", "broadcast", "AllReduce", "all reduce", "allreduce ", "-allreduce"})
    EXPECT_FALSE(parse_collective(text)) << text;
}

TEST(Halves, Errors) {
  EXPECT_THROW((void)as_reduce_scatter(make_explicit(cps(3))), InvalidArgument);
  expect_contains(message_of<InvalidArgument>([] { return as_reduce_scatter(recursive_doubling(4)); }),
                  "the plan 'recursive-doubling' ends in exchanges of whole intervals, so it has no reduce-scatter; "
                  "expected plans without exchanges, such as rhd, cps and ring");
  Plan fine = reduce_broadcast(9);
  fine.num_units = std::int64_t{1} << 60;
  fine.subplans[0].stages[0].target[0].end = fine.num_units;
  EXPECT_NO_THROW((void)PlanIndex(fine));
  EXPECT_THROW((void)as_reduce_scatter(fine), InvalidArgument);
}

}  // namespace
}  // namespace gar
