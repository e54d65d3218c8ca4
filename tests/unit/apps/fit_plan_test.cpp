// What `gar fit` measures for which network, in which order, and how it spends a budget.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "apps/gar/verbs/fit_options.hpp"
#include "gar/errors.hpp"
#include "gar/fit_design.hpp"
#include "measure/fit/counters.hpp"
#include "measure/fit/links.hpp"
#include "measure/fit/network.hpp"

namespace gar::cli {
namespace {

using Servers = std::vector<std::int64_t>;

const FitSizes kSizes{{1000, 10000, 100000}, {16384, 262144}};

std::vector<Observation> cells_of(const std::vector<FitGroup>& groups) {
  std::vector<Observation> out;
  for (const FitGroup& group : groups) out.insert(out.end(), group.cells.begin(), group.cells.end());
  return out;
}

template <class Predicate>
std::set<Servers> servers_where(const std::vector<FitGroup>& groups, Predicate predicate) {
  std::set<Servers> out;
  for (const Observation& cell : cells_of(groups)) {
    if (predicate(cell)) out.insert(cell.servers);
  }
  return out;
}

bool is_mesh(const Observation& o) {
  return o.kind == ObservationKind::kCollective && o.collective == Collective::kAllGather && o.algorithm.name == "cps";
}

/// Servers 0 to n - 1 for every n of 2..most.
std::set<Servers> first_ones(std::int64_t most) {
  std::set<Servers> out;
  Servers servers{0};
  for (std::int64_t s = 1; s < most; ++s) {
    servers.push_back(s);
    out.insert(servers);
  }
  return out;
}

TEST(FitPlan, StarMeasuresEveryNumberOfRanks) {
  const Topology star = topology_from_spec("star:6");
  const std::vector<FitGroup> groups = plan_fit(star, kSizes, {});
  EXPECT_EQ(servers_where(groups, is_mesh), first_ones(6));
  EXPECT_EQ(servers_where(groups,
                          [](const Observation& o) {
                            return o.collective == Collective::kAllReduce && o.kind == ObservationKind::kCollective;
                          }),
            first_ones(6));
  // Without messages there is no x-to-1; nothing is held out or admitted.
  for (const Observation& cell : cells_of(groups)) {
    EXPECT_NE(cell.kind, ObservationKind::kGather);
    EXPECT_TRUE(cell.is_fitted);
    EXPECT_EQ(cell.max_senders, 0);
    EXPECT_TRUE(std::is_sorted(cell.servers.begin(), cell.servers.end()));
    if (cell.collective == Collective::kAllGather) {
      const auto n = static_cast<double>(cell.servers.size());
      EXPECT_EQ(std::fmod(cell.size_floats, n), 0) << "blocks of whole floats";
    }
  }
}

TEST(FitPlan, MeshAndShiftAreMeasuredInTurns) {
  for (const FitGroup& group : plan_fit(topology_from_spec("star:5"), kSizes, {})) {
    if (!is_mesh(group.cells.front()) || group.cells.front().servers.size() == 2) continue;
    ASSERT_EQ(group.cells.size(), 2U);
    EXPECT_EQ(group.cells[1].algorithm.name, "ring");
    EXPECT_EQ(group.cells[1].size_floats, group.cells[0].size_floats);
    EXPECT_EQ(group.cells[1].servers, group.cells[0].servers);
  }
}

TEST(FitPlan, NothingTwice) {
  for (const char* spec : {"star:2", "star:3", "star:15", "tree:3x4", "tree:2x2x2", "tree:4x1"}) {
    const std::vector<Observation> cells = cells_of(plan_fit(topology_from_spec(spec), kSizes, {true, true, true, 2}));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        EXPECT_FALSE(is_same_cell(cells[i], cells[k])) << spec << ": " << describe(cells[i]);
      }
    }
  }
}

TEST(FitPlan, EssentialsComeFirstAndIdentifyEveryParameter) {
  for (const char* spec : {"star:2", "star:4", "star:16", "tree:3x4"}) {
    const std::vector<FitGroup> groups = plan_fit(topology_from_spec(spec), kSizes, {true, true, true, 0});
    const auto end = std::find_if(groups.begin(), groups.end(), [](const FitGroup& g) { return !g.is_essential; });
    EXPECT_TRUE(std::none_of(end, groups.end(), [](const FitGroup& g) { return g.is_essential; })) << spec;
    std::set<double> pair_lengths;
    std::set<std::int64_t> fan_ins;
    std::size_t most_ranks = 0;
    for (const Observation& cell : cells_of({groups.begin(), end})) {
      EXPECT_TRUE(cell.is_fitted) << spec;
      if (is_mesh(cell) && cell.servers == Servers{0, 1}) pair_lengths.insert(cell.size_floats);
      if (cell.kind == ObservationKind::kReduction) fan_ins.insert(cell.fan_in);
      if (cell.collective == Collective::kAllReduce) most_ranks = std::max(most_ranks, cell.servers.size());
    }
    EXPECT_GE(pair_lengths.size(), 4U) << spec;
    EXPECT_EQ(*pair_lengths.begin(), 2) << spec;
    EXPECT_EQ(fan_ins, (std::set<std::int64_t>{2, 3, 4, 6, 8, 12, 16})) << spec;
    EXPECT_EQ(most_ranks, static_cast<std::size_t>(topology_from_spec(spec).num_servers())) << spec;
  }
}

// root -- rack0: 0 1 2 3, rack1: 4 5 6 7, rack2: 8 9 10 11
TEST(FitPlan, TreeLoadsEveryLevel) {
  const std::vector<ServerSet> sets = server_sets(topology_from_spec("tree:3x4"));
  const std::vector<ServerSet> expected{
      {{0, 1}, 0, 2, 1},
      {{0, 1, 2}, 0, 3, 1},
      {{0, 1, 2, 3}, 0, 4, 1},
      {{0, 4}, 1, 2, 1},
      {{0, 4, 8}, 1, 3, 1},
      {{0, 1, 4, 5}, 1, 2, 2},
      {{0, 1, 4, 5, 8, 9}, 1, 3, 2},
      {{0, 1, 2, 3, 4, 5, 6, 7}, 1, 2, 4},
      {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 1, 3, 4},
  };
  EXPECT_EQ(sets, expected);
}

TEST(FitPlan, PairsAcrossALevelAreMeasuredWithShortMessages) {
  const std::vector<FitGroup> groups = plan_fit(topology_from_spec("tree:3x4"), kSizes, {});
  EXPECT_TRUE(servers_where(groups, [](const Observation& o) {
                return is_mesh(o) && o.size_floats == 2;
              }).contains(Servers{0, 4}));
}

TEST(FitPlan, ManyRanksAreThinnedOut) {
  const std::vector<std::int64_t> counts = participant_counts(100);
  EXPECT_EQ(counts.front(), 2);
  EXPECT_EQ(counts.back(), 100);
  EXPECT_EQ(counts[14], 16);
  EXPECT_LT(counts.size(), 30U);
  EXPECT_TRUE(std::is_sorted(counts.begin(), counts.end()));
  EXPECT_EQ(participant_counts(2), (std::vector<std::int64_t>{2}));
}

TEST(FitPlan, CurvesAreRefined) {
  EXPECT_EQ(refinement_levels(1), (std::vector<int>{0}));
  EXPECT_EQ(refinement_levels(2), (std::vector<int>{0, 0}));
  EXPECT_EQ(refinement_levels(5), (std::vector<int>{0, 2, 1, 2, 0}));
  EXPECT_TRUE(refinement_levels(0).empty());
}

TEST(FitPlan, MessagesAddGathers) {
  const auto is_gather = [](const Observation& o) { return o.kind == ObservationKind::kGather; };
  std::set<Servers> expected = first_ones(5);
  expected.erase(Servers{0, 1});
  EXPECT_EQ(servers_where(plan_fit(topology_from_spec("star:5"), kSizes, {true, false, false, 0}), is_gather),
            expected);
}

TEST(FitPlan, IncastAddsReceiversThatAdmitSenders) {
  const Topology star = topology_from_spec("star:5");
  const std::vector<FitGroup> plain = plan_fit(star, kSizes, {true, true, true, 0});
  const std::vector<FitGroup> admitting = plan_fit(star, kSizes, {true, true, true, 2});
  EXPECT_GT(cells_of(admitting).size(), cells_of(plain).size());
  for (const Observation& cell : cells_of(admitting)) {
    EXPECT_TRUE(cell.is_fitted || cell.is_native || cell.max_senders == 2) << describe(cell);
    EXPECT_TRUE(cell.max_senders == 0 || cell.servers.size() > 2) << describe(cell);
  }
}

TEST(FitPlan, HeldOutCasesAreWhatWasNotFitted) {
  const std::vector<FitGroup> groups = plan_fit(topology_from_spec("star:15"), kSizes, {true, true, true, 0});
  std::set<std::size_t> counts;
  std::set<double> short_floats;
  for (const FitGroup& group : groups) {
    if (!is_held_out(group)) continue;
    const Observation& first = group.cells.front();
    const bool has_exchanges = std::any_of(group.cells.begin(), group.cells.end(),
                                           [](const Observation& o) { return o.algorithm.name == "gather"; });
    if (has_exchanges) short_floats.insert(first.size_floats);
    counts.insert(first.servers.size());
    EXPECT_EQ(std::count(kSizes.collective.begin(), kSizes.collective.end(), first.size_floats), 0);
    EXPECT_TRUE(group.cells.back().is_native);
    for (const Observation& cell : group.cells) EXPECT_EQ(cell.size_floats, first.size_floats);
  }
  EXPECT_EQ(counts, (std::set<std::size_t>{6, 8, 9, 12, 13, 15}));
  const std::vector<double> expected = held_out_short_sizes(kSizes.collective);
  EXPECT_EQ(expected.front(), 2);  // 8 bytes
  EXPECT_GT(8 * expected.back(), 0.5 * kSizes.collective.front());
  EXPECT_LT(expected.back(), 0.5 * kSizes.collective.front());
  EXPECT_EQ(short_floats, (std::set<double>{expected.begin(), expected.end()}));
  EXPECT_TRUE(held_out_short_sizes({2, 100}).empty());
  EXPECT_EQ(held_out_sizes(kSizes.collective).size(), 3U);
  EXPECT_EQ(held_out_sizes({5000}).size(), 3U);
  EXPECT_EQ(held_out_counts(2), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(held_out_counts(5), (std::vector<std::int64_t>{3, 4, 5}));
}

TEST(FitPlan, HeldOutAlgorithmsHaveAllPairsOfFactorsAndOneTriple) {
  std::vector<std::string> names;
  for (const AlgorithmSpec& spec : held_out_algorithms(12)) names.push_back(to_string(spec));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::count_if(names.begin(), names.end(), [](const std::string& n) { return n.starts_with("hcps:"); }), 5);
  for (const char* name : {"ring", "rhd", "cps", "hcps:2x6", "hcps:6x2", "hcps:3x4", "hcps:4x3"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
  EXPECT_EQ(held_out_algorithms(13).size(), 3U);
}

TEST(FitPlan, ChosenSizesFitTheBudget) {
  // 25 Mbit/s: 1.34e-6 s per float, twice in an AllReduce.
  const std::vector<double> slow = choose_sizes({1e-3, 2.7e-6}, 60, 4e6);
  ASSERT_EQ(slow.size(), 3U);
  EXPECT_NEAR(slow.back() * 2.7e-6, 60.0 / 100, 0.1);
  EXPECT_LE(slow.front(), slow.back() / 10);
  // A fast one is limited by memory.
  const std::vector<double> fast = choose_sizes({1e-6, 1e-10}, 60, 4e6);
  EXPECT_EQ(fast.back(), 4e6);
  EXPECT_GE(fast.size(), 4U);
  for (std::size_t i = 1; i < fast.size(); ++i) EXPECT_LE(fast[i], 5 * fast[i - 1]);
  // Too slow for anything: the least.
  EXPECT_GE(choose_sizes({10, 1}, 1, 4e6).front(), 1);
  EXPECT_EQ(two_digits(123456), 120000);
  EXPECT_EQ(two_digits(0.2), 1);
  EXPECT_EQ(two_digits(9.6), 10);
}

/// Runs a schedule with operations that take what `seconds` says; the number of repetitions of every group.
template <class F>
std::vector<std::size_t> spend(std::vector<FitGroup>& groups, double budget_s, F seconds) {
  double elapsed = 0;
  while (const std::optional<FitVisit> visit = next_visit(groups, budget_s, elapsed)) {
    FitGroup& group = groups[visit->group];
    for (Observation& cell : group.cells) {
      for (int i = 0; i < visit->repetitions; ++i) {
        cell.seconds.push_back(seconds(visit->group, cell.seconds.size()));
        elapsed += cell.seconds.back();
      }
    }
  }
  std::vector<std::size_t> out;
  for (const FitGroup& group : groups) out.push_back(group.cells.front().seconds.size());
  return out;
}

TEST(FitSchedule, EverythingOnceThenWhatIsUncertain) {
  std::vector<FitGroup> groups = plan_fit(topology_from_spec("star:4"), kSizes, {});
  // Group 3 jumps between two values, the others are steady.
  const std::vector<std::size_t> counts =
      spend(groups, 1000, [](std::size_t group, std::size_t i) { return group == 3 && i % 2 == 0 ? 0.02 : 0.01; });
  EXPECT_TRUE(has_essentials(groups));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (i == 3) {
      EXPECT_GE(counts[i], 30U);
    } else {
      EXPECT_GE(counts[i], 3U);
      EXPECT_LE(counts[i], 6U);
    }
  }
}

TEST(FitSchedule, AShortBudgetLeavesOutTheEndOfThePlan) {
  std::vector<FitGroup> groups = plan_fit(topology_from_spec("star:8"), kSizes, {});
  const std::vector<std::size_t> counts = spend(groups, 3, [](std::size_t, std::size_t) { return 0.02; });
  const auto first_left_out = std::find(counts.begin(), counts.end(), 0U);
  ASSERT_NE(first_left_out, counts.end());
  EXPECT_TRUE(std::all_of(first_left_out, counts.end(), [](std::size_t c) { return c == 0; }));
  EXPECT_TRUE(next_visit(groups, 3, 0).has_value());
  EXPECT_FALSE(next_visit(groups, 3, 3).has_value());
}

TEST(FitSchedule, TooShortForTheEssentialsIsNoticed) {
  std::vector<FitGroup> groups = plan_fit(topology_from_spec("star:8"), kSizes, {});
  spend(groups, 0.1, [](std::size_t, std::size_t) { return 0.02; });
  EXPECT_FALSE(has_essentials(groups));
}

TEST(FitSchedule, HeldOutCasesGetTheirShare) {
  std::vector<FitGroup> groups = plan_fit(topology_from_spec("star:8"), kSizes, {true, false, true, 0});
  spend(groups, 60, [](std::size_t, std::size_t) { return 0.15; });
  EXPECT_TRUE(has_essentials(groups));
  EXPECT_TRUE(std::any_of(groups.begin(), groups.end(),
                          [](const FitGroup& g) { return is_held_out(g) && !g.cells.front().seconds.empty(); }));
}

TEST(FitSchedule, UncertaintyFallsWithRepetitions) {
  Observation cell;
  cell.seconds = {1, 1.1, 0.9};
  const double few = uncertainty(cell);
  for (int i = 0; i < 9; ++i) cell.seconds.insert(cell.seconds.end(), {1, 1.1, 0.9});
  EXPECT_LT(uncertainty(cell), few);
  cell.seconds = {1, 1};
  EXPECT_GT(uncertainty(cell), 0.05) << "two say little, even when they agree";
}

TEST(FitPlan, WhatWasMeasuredIsTakenOver) {
  const Topology star = topology_from_spec("star:4");
  std::vector<FitGroup> before = plan_fit(star, kSizes, {true, false, true, 0});
  for (FitGroup& group : before) {
    for (Observation& cell : group.cells) cell.seconds = {1};
  }
  std::vector<FitGroup> after = plan_fit(star, kSizes, {true, false, true, 2});
  take_over(after, before);
  for (const Observation& cell : cells_of(after)) {
    EXPECT_EQ(cell.seconds.empty(), cell.max_senders > 0) << describe(cell);
  }
}

/// Every mesh with a shift beside it takes `seconds`, and so much is sent again.
void set_meshes(std::vector<FitGroup>& groups, double seconds, double retransmits) {
  for (FitGroup& group : groups) {
    for (Observation& cell : group.cells) cell.seconds = {1, 1.05, 0.95};
    if (!is_mesh(group.cells.front()) || group.cells.size() != 2) continue;
    group.cells.front().seconds = {seconds};
    group.cells.front().retransmits = retransmits;
    group.cells.back().retransmits = 0;
  }
}

TEST(FitPlan, IncastIsSeenInTheMesh) {
  const Topology star = topology_from_spec("star:4");
  std::vector<FitGroup> groups = plan_fit(star, kSizes, {});
  EXPECT_FALSE(has_incast(star, groups)) << "nothing is measured";
  set_meshes(groups, 1.05, 3);
  EXPECT_FALSE(has_incast(star, groups));
  set_meshes(groups, 1.5, 0);
  EXPECT_TRUE(has_incast(star, groups));
  set_meshes(groups, 1.05, 500);
  EXPECT_TRUE(has_incast(star, groups));
}

// 0 1 | 2 3: with both servers of each rack a mesh sends four blocks over an uplink, a shift two.
TEST(FitPlan, AMeshThatSendsMoreIsNoIncast) {
  const Topology tree = topology_from_spec("tree:2x2");
  std::vector<FitGroup> groups = plan_fit(tree, kSizes, {});
  set_meshes(groups, 1.9, 0);
  EXPECT_FALSE(has_incast(tree, groups));
  set_meshes(groups, 1.9, 500);
  EXPECT_TRUE(has_incast(tree, groups));
}

// Hosts 0 0 1 1 2: ranks 0 1, 2 3, 4.
TEST(FitNetwork, HostsBecomeATree) {
  const Topology tree = discovered_topology({0, 0, 1, 1, 2});
  EXPECT_EQ(tree.num_servers(), 5);
  EXPECT_EQ(tree.height(tree.root()), 2);
  EXPECT_EQ(tree.instance_name(3, 2), "host1/rank1");
  EXPECT_EQ(discovered_topology({0, 0, 0}).height(0), 0);
  EXPECT_EQ(discovered_topology({0, 0, 0}).num_servers(), 3);
  const Topology hosts = discovered_topology({0, 1, 2});
  EXPECT_EQ(hosts.instance_name(1, 1), "host1");
  // Dealt out one by one: no tree.
  const Topology dealt = discovered_topology({0, 1, 0, 1});
  EXPECT_EQ(dealt.height(dealt.root()), 1);
}

TEST(FitNetwork, GivenTopologiesArePlaced) {
  const Topology tree = topology_from_spec("tree:2x2");
  EXPECT_EQ(place_on(tree, {0, 1, 2, 3}).num_servers(), 4);
  const Topology crowded = place_on(topology_from_spec("star:2"), {0, 0, 0, 1, 1, 1});
  EXPECT_EQ(crowded.num_servers(), 6);
  EXPECT_EQ(crowded.height(crowded.root()), 2);
  EXPECT_THROW(place_on(topology_from_spec("star:3"), {0, 0, 0, 1, 1, 1}), InvalidArgument);
  EXPECT_THROW(place_on(topology_from_spec("star:2"), {0, 1, 0, 1}), InvalidArgument);
}

TEST(FitNetwork, CoresAreSharedBelowTheLowestSwitch) {
  EXPECT_EQ(shared_cores(topology_from_spec("star:8"), 8, 8), 0);
  EXPECT_EQ(shared_cores(topology_from_spec("star:8"), 2, 8), 2);
  EXPECT_DOUBLE_EQ(shared_cores(topology_from_spec("tree:3x4"), 2, 12), 2.0 * 4 / 12);
}

TEST(FitLinks, PairsOfARoundShareNoLink) {
  const Topology tree = topology_from_spec("tree:3x4");
  std::vector<int> host_of(12);
  std::iota(host_of.begin(), host_of.end(), 0);
  std::set<std::string> seen;
  for (const std::vector<LinkPair>& round : link_rounds(tree, host_of)) {
    std::set<std::string> in_round;
    for (const LinkPair& pair : round) {
      for (const LinkPair::End* end : {&pair.a, &pair.b}) {
        EXPECT_TRUE(in_round.insert(end->name).second) << end->name << " twice in a round";
        seen.insert(end->name);
      }
      EXPECT_EQ(pair.num_servers, pair.a.level == 0 ? 1 : 4);
    }
  }
  EXPECT_EQ(seen.size(), 15U) << "12 servers and 3 racks";
  EXPECT_TRUE(link_rounds(tree, std::vector<int>(12, 0)).empty()) << "one host has no cables";
}

// Of four links in a ring of pairs, the third takes twice as long; both of its pairs say so, its neighbours' others do
// not.
TEST(FitLinks, ASlowLinkIsFound) {
  std::vector<int> host_of{0, 1, 2, 3};
  std::vector<PairTimes> times;
  for (const std::vector<LinkPair>& round : link_rounds(topology_from_spec("star:4"), host_of)) {
    for (const LinkPair& pair : round) {
      const double beta = pair.a.first_server == 2 || pair.b.first_server == 2 ? 2e-6 : 1e-6;
      const auto seconds = [&](double floats) { return std::vector<double>(3, 1e-3 + beta * floats); };
      times.push_back({pair, seconds(2500), seconds(10000)});
    }
  }
  const std::vector<LinkProfile> links = links_of(times, 10000);
  ASSERT_EQ(links.size(), 4U);
  for (const LinkProfile& link : links) {
    EXPECT_NEAR(link.beta.value, link.name == "server2" ? 2e-6 : 1e-6, 1e-12) << link.name;
    EXPECT_TRUE(link.beta.is_identified);
  }
}

TEST(FitLinks, AnUplinkThatIsNotFullIsNotIdentified) {
  std::vector<PairTimes> times;
  LinkPair servers{{"rack0/server0", 0, 0}, {"rack0/server1", 0, 1}, 1};
  LinkPair racks{{"rack0", 1, 0}, {"rack1", 1, 4}, 4};
  times.push_back({servers, {0.0025, 0.0025, 0.0025}, {0.01, 0.01, 0.01}});
  times.push_back({racks, {0.0026, 0.0026, 0.0026}, {0.0101, 0.0101, 0.0101}});
  const std::vector<LinkProfile> links = links_of(times, 10000);
  ASSERT_EQ(links.size(), 4U);
  for (const LinkProfile& link : links) EXPECT_EQ(link.beta.is_identified, link.level == 0) << link.name;
}

TEST(FitCounters, RetransmitsAreReadByName) {
  EXPECT_EQ(parse_retransmits("Ip: a b\nIp: 1 2\nTcp: RtoMin OutSegs RetransSegs InErrs\nTcp: 200 5000 17 0\n"), 17);
  EXPECT_EQ(parse_retransmits("Tcp: RtoMin OutSegs\nTcp: 200 5000\n"), -1);
  EXPECT_EQ(parse_tcp_counter("Tcp: RtoMin OutSegs\nTcp: 200 5000\n", "OutSegs"), 5000);
  EXPECT_EQ(parse_retransmits(""), -1);
  EXPECT_GE(read_congestion().retransmits, 0);
}

TEST(FitCounters, PauseFramesNotTheirDuration) {
  EXPECT_TRUE(is_pause_counter("rx_prio3_pause"));
  EXPECT_TRUE(is_pause_counter("tx_pause_ctrl_phy"));
  EXPECT_FALSE(is_pause_counter("rx_prio3_pause_duration"));
  EXPECT_FALSE(is_pause_counter("rx_bytes"));
}

TEST(FitOptions, Durations) {
  EXPECT_EQ(parse_duration("--budget", "60s"), 60);
  EXPECT_EQ(parse_duration("--budget", "1.5"), 1.5);
  EXPECT_EQ(parse_duration("--budget", "500ms"), 0.5);
  EXPECT_EQ(parse_duration("--budget", "2min"), 120);
  for (const char* text : {"", "s", "-1s", "0", "60 s", "60x", "1e300", "nan", "2d"}) {
    EXPECT_THROW(parse_duration("--budget", text), UsageError) << text;
  }
}

}  // namespace
}  // namespace gar::cli
