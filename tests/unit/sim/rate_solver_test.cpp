// Max-min fair rates by themselves: above each case the inequalities (one for each link, with the flows that cross it)
// and the shares that follow from them. Then random flows that come, arrive and make way, against water filling.
#include "sim/engine/rate_solver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "sim/engine/time.hpp"
#include "sim/network.hpp"
#include "sim/worlds/world.hpp"
#include "support/slow_build.hpp"
#include "support/water_filling.hpp"

namespace gar::sim {
namespace {

using test::Crossed;

constexpr double kMany = 1e9;  // floats: flows that do not end in a test

/// The key of a route is its index here.
struct Routes {
  std::vector<std::vector<Crossed>> paths;
  std::size_t stride = 0;

  template <class Use>
  void for_path(const Route& route, Use use) const {
    for (const Crossed& c : paths[route.key]) use(static_cast<LinkIndex>(c.link), c.times);
  }
  [[nodiscard]] std::size_t path_stride() const { return stride; }
};

LinkState link_of(double capacity) { return {.beta = 1, .scale = capacity}; }

std::vector<LinkState> links_of(const std::vector<double>& capacities) {
  std::vector<LinkState> links;
  for (const double capacity : capacities) links.push_back(link_of(capacity));
  return links;
}

/// Flows on links, in time: events are found by looking at all links.
class Flows {
 public:
  explicit Flows(const std::vector<LinkState>& links, std::size_t stride = 0, const RateOptions& options = {})
      : routes_{.paths = {}, .stride = stride}, solver_(routes_, links, options), due_(links.size(), kNever) {}
  Flows(const Flows&) = delete;
  Flows& operator=(const Flows&) = delete;

  /// Begins a flow at this moment; each is a sender of its own on all its links. Returns its name.
  std::size_t add(std::vector<Crossed> path, double floats = kMany) {
    const std::size_t name = routes_.paths.size();
    for (const Crossed& c : path) solver().add_senders(static_cast<LinkIndex>(c.link), c.times);
    routes_.paths.push_back(std::move(path));
    flow_[name] = solver().add_flow({static_cast<std::uint32_t>(name), 0}, floats, [](LinkIndex, double) {});
    return name;
  }
  std::size_t add(std::initializer_list<std::size_t> links, double floats = kMany) {
    std::vector<Crossed> path;
    for (const std::size_t link : links) path.push_back({link, 1});
    return add(std::move(path), floats);
  }

  /// Lets everything at this moment take effect.
  void solve() {
    for (auto arrived = solver().collect_arrived(); !arrived.empty(); arrived = solver().collect_arrived()) {
      for (const FlowIndex f : arrived) {
        const std::size_t name = solver().route(f).key;
        arrival_[name] = now_;
        incast_[name] = solver().incast_seconds(f);
        flow_.erase(name);
        for (const Crossed& c : routes_.paths[name]) {
          solver().remove_senders(static_cast<LinkIndex>(c.link), c.times);
        }
        solver().remove_flow(f, [](LinkIndex, double) {});
      }
    }
    changed_.clear();
    solver().solve([&](LinkIndex link, double time) { due_[link] = time; },
                   [&](LinkIndex link) { changed_.push_back(link); });
  }
  /// Goes on to the next moment at which a flow arrives. Returns false when there is none.
  bool next() {
    const double time = *std::min_element(due_.begin(), due_.end());
    if (time == kNever) return false;
    advance_to(time);
    for (LinkIndex link = 0; link < due_.size(); ++link) {
      if (due_[link] > now_ * (1 + kTieTime)) continue;
      due_[link] = kNever;
      solver().look_at(link);
    }
    solve();
    return true;
  }
  void advance_to(double time) {
    now_ = time;
    solver().advance_to(now_);
  }

  RateSolver<Routes>& solver() { return solver_; }
  double rate(std::size_t name) { return solver().rate(flow_.at(name)); }
  LinkIndex bottleneck(std::size_t name) { return solver().bottleneck(flow_.at(name)); }
  double arrival(std::size_t name) const { return arrival_.at(name); }
  double incast(std::size_t name) const { return incast_.at(name); }
  double now() const { return now_; }
  /// Flows that are under way, by name.
  const std::map<std::size_t, FlowIndex>& under_way() const { return flow_; }
  const std::vector<Crossed>& path(std::size_t name) const { return routes_.paths[name]; }
  const std::vector<LinkIndex>& changed() const { return changed_; }

 private:
  Routes routes_;
  RateSolver<Routes> solver_;
  double now_ = 0;
  std::vector<double> due_;
  std::map<std::size_t, FlowIndex> flow_;
  std::map<std::size_t, double> arrival_;
  std::map<std::size_t, double> incast_;
  std::vector<LinkIndex> changed_;
};

// --- shares

// a + b + c <= 6. Nothing tells the flows apart: a = b = c = 2.
TEST(RateSolver, FlowsShareALink) {
  Flows flows(links_of({6}));
  const std::size_t a = flows.add({0});
  const std::size_t b = flows.add({0});
  const std::size_t c = flows.add({0});
  flows.solve();
  for (const std::size_t f : {a, b, c}) EXPECT_EQ(flows.rate(f), 2);
  EXPECT_EQ(flows.solver().load(0), 6);
}

// a <= 5, a <= 3, a <= 4. Alone, a flow has the capacity of its narrowest link: a = 3.
TEST(RateSolver, AloneAFlowHasItsNarrowestLink) {
  Flows flows(links_of({5, 3, 4}));
  const std::size_t a = flows.add({0, 1, 2});
  flows.solve();
  EXPECT_EQ(flows.rate(a), 3);
  EXPECT_EQ(flows.bottleneck(a), 1u);
  for (const LinkIndex link : {0u, 1u, 2u}) EXPECT_EQ(flows.solver().load(link), 3);
}

// a + b <= 2, a + c <= 6. The first link is full at 1 each: a = b = 1. On the second one c has what a leaves: c = 5.
TEST(RateSolver, AFlowGetsWhatOthersLeave) {
  Flows flows(links_of({2, 6}));
  const std::size_t a = flows.add({0, 1});
  const std::size_t b = flows.add({0});
  const std::size_t c = flows.add({1});
  flows.solve();
  EXPECT_EQ(flows.rate(a), 1);
  EXPECT_EQ(flows.rate(b), 1);
  EXPECT_EQ(flows.rate(c), 5);
  EXPECT_EQ(flows.bottleneck(a), 0u);
  EXPECT_EQ(flows.bottleneck(c), 1u);
}

// The parking lot: long + a <= 1, long + b <= 2, long + c <= 4. long = a = 1/2, then b = 3/2 and c = 7/2.
TEST(RateSolver, ALongFlowPaysOnceForManyLinks) {
  Flows flows(links_of({1, 2, 4}));
  const std::size_t whole = flows.add({0, 1, 2});
  const std::size_t a = flows.add({0});
  const std::size_t b = flows.add({1});
  const std::size_t c = flows.add({2});
  flows.solve();
  EXPECT_EQ(flows.rate(whole), 0.5);
  EXPECT_EQ(flows.rate(a), 0.5);
  EXPECT_EQ(flows.rate(b), 1.5);
  EXPECT_EQ(flows.rate(c), 3.5);
}

// a + b <= 4, b + c <= 6, c <= 8. a = b = 2, then c <= min(6 - 2, 8) = 4.
TEST(RateSolver, BottlenecksFollowEachOther) {
  Flows flows(links_of({4, 6, 8}));
  const std::size_t a = flows.add({0});
  const std::size_t b = flows.add({0, 1});
  const std::size_t c = flows.add({1, 2});
  flows.solve();
  EXPECT_EQ(flows.rate(a), 2);
  EXPECT_EQ(flows.rate(b), 2);
  EXPECT_EQ(flows.rate(c), 4);
}

// 3 a + b / 2 <= 14: a stands for three flows on the link, b for half a flow. All flows are equal: a = b = 4.
TEST(RateSolver, CountsHowManyFlowsOneStandsFor) {
  Flows flows(links_of({14}));
  const std::size_t a = flows.add(std::vector<Crossed>{{0, 3}});
  const std::size_t b = flows.add(std::vector<Crossed>{{0, 0.5}});
  flows.solve();
  EXPECT_EQ(flows.rate(a), 4);
  EXPECT_EQ(flows.rate(b), 4);
  EXPECT_EQ(flows.solver().num_flows(0), 3.5);
}

// Capacity 12 / (1 + (w - 1) / 2) with w senders: 12, 8, 6. a <= 12; a + b <= 8; a + b + c <= 6.
TEST(RateSolver, CapacityFallsWithSenders) {
  Flows flows({{.beta = 1, .epsilon = 0.5, .threshold = 1, .scale = 12}});
  const std::size_t a = flows.add({0});
  flows.solve();
  EXPECT_EQ(flows.rate(a), 12);
  flows.add({0});
  flows.solve();
  EXPECT_EQ(flows.rate(a), 4);
  flows.add({0});
  flows.solve();
  EXPECT_EQ(flows.rate(a), 2);
}

// --- changes

// a <= 4 and b <= 4 on the outer links, a + b <= 20 on the inner one, which limits neither: when c comes to b's link,
// a's link is not looked at. b + c <= 4.
TEST(RateSolver, AChangeStaysInItsRegion) {
  Flows flows(links_of({4, 20, 4}));
  const std::size_t a = flows.add({0, 1});
  const std::size_t b = flows.add({1, 2});
  flows.solve();
  const std::size_t c = flows.add({2});
  flows.solve();
  EXPECT_EQ(flows.rate(a), 4);
  EXPECT_EQ(flows.rate(b), 2);
  EXPECT_EQ(flows.rate(c), 2);
  EXPECT_EQ(flows.changed(), (std::vector<LinkIndex>{2}));
  EXPECT_EQ(flows.solver().load(1), 6);
}

// a + b <= 10 and b + c <= 4. While c is there b = c = 2 and a = 8. When c has gone, b <= 4 is too much for the first
// link, on which a has 8: it joins the region, and a + b <= 10 and b <= 4 give b = 4, a = 6.
TEST(RateSolver, ALinkThatLimitsOthersJoinsTheRegion) {
  Flows flows(links_of({10, 4}));
  const std::size_t a = flows.add({0});
  const std::size_t b = flows.add({0, 1});
  const std::size_t c = flows.add({1}, 2);
  flows.solve();
  EXPECT_EQ(flows.rate(a), 8);
  EXPECT_EQ(flows.rate(b), 2);
  ASSERT_TRUE(flows.next());
  EXPECT_EQ(flows.arrival(c), 1);
  EXPECT_EQ(flows.rate(a), 6);
  EXPECT_EQ(flows.rate(b), 4);
}

// a + b <= 8 and b + c <= 2: b = c = 1, a = 7. A second flow to b's link, b + c + d <= 2, slows b to 2/3, so the first
// link has more for a: a = 8 - 2/3.
TEST(RateSolver, WhatOneFlowLosesAnotherGets) {
  Flows flows(links_of({8, 2}));
  const std::size_t a = flows.add({0});
  const std::size_t b = flows.add({0, 1});
  flows.add({1});
  flows.solve();
  EXPECT_EQ(flows.rate(a), 7);
  flows.add({1});
  flows.solve();
  EXPECT_DOUBLE_EQ(flows.rate(b), 2.0 / 3);
  EXPECT_DOUBLE_EQ(flows.rate(a), 8 - 2.0 / 3);
}

// a <= 2 and b <= 2, and on the link that they share a + b <= 5, which is spare. It stays so with a third flow that is
// limited to 1 elsewhere. With one that is limited to 9 the shared link is full: all three have 5/3.
TEST(RateSolver, ASpareLinkBecomesABottleneck) {
  Flows flows(links_of({5, 2, 2, 1, 9}));
  const std::size_t a = flows.add({0, 1});
  const std::size_t b = flows.add({0, 2});
  flows.solve();
  EXPECT_EQ(flows.rate(a), 2);
  const std::size_t slow = flows.add({0, 3}, 1);
  flows.solve();
  EXPECT_EQ(flows.rate(slow), 1);
  EXPECT_EQ(flows.rate(a), 2);
  ASSERT_TRUE(flows.next());
  const std::size_t fast = flows.add({0, 4});
  flows.solve();
  for (const std::size_t f : {a, b, fast}) {
    EXPECT_DOUBLE_EQ(flows.rate(f), 5.0 / 3);
    EXPECT_EQ(flows.bottleneck(f), 0u);
  }
}

// --- time

// Flows of 2 and 6 floats on a link of 4. Both have 2 until the first arrives at 1; the second has 4 floats left, and 4
// alone, so it arrives at 2.
TEST(RateSolver, TheRestIsFaster) {
  Flows flows(links_of({4}));
  const std::size_t a = flows.add({0}, 2);
  const std::size_t b = flows.add({0}, 6);
  flows.solve();
  ASSERT_TRUE(flows.next());
  EXPECT_EQ(flows.arrival(a), 1);
  EXPECT_EQ(flows.rate(b), 4);
  ASSERT_TRUE(flows.next());
  EXPECT_EQ(flows.arrival(b), 2);
  EXPECT_FALSE(flows.next());
  EXPECT_EQ(flows.solver().num_flows(0), 0);
  EXPECT_EQ(flows.solver().load(0), 0);
}

// A flow of 8 floats has 4 per second until another one comes at 1, then 2. The other one, of 3 floats, has 2 from 1 to
// 2.5. By then the first one has one float left, which takes a quarter of a second alone: it arrives at 2.75.
TEST(RateSolver, WhatIsLeftIsBroughtUpToDate) {
  Flows flows(links_of({4}));
  const std::size_t a = flows.add({0}, 8);
  flows.solve();
  flows.advance_to(1);
  const std::size_t b = flows.add({0}, 3);
  flows.solve();
  ASSERT_TRUE(flows.next());
  EXPECT_EQ(flows.arrival(b), 2.5);
  ASSERT_TRUE(flows.next());
  EXPECT_EQ(flows.arrival(a), 2.75);
}

// Seven flows of 1/3 each on a link of 0.7 have 0.1 each; rounding must not make seven moments of one.
TEST(RateSolver, EqualFlowsArriveTogether) {
  Flows flows(links_of({0.7}));
  for (int i = 0; i < 7; ++i) flows.add({0}, 1.0 / 3);
  flows.solve();
  ASSERT_TRUE(flows.next());
  EXPECT_TRUE(flows.under_way().empty());
  EXPECT_NEAR(flows.now(), 10.0 / 3, 1e-12);
}

// A flow without floats arrives at once where its link is looked at, and takes nothing from the one that is there.
TEST(RateSolver, AnEmptyFlowArrivesAtOnce) {
  Flows flows(links_of({4}));
  const std::size_t a = flows.add({0}, 8);
  flows.solve();
  flows.advance_to(1);
  const std::size_t empty = flows.add({0}, 0);
  flows.solve();
  EXPECT_EQ(flows.arrival(empty), 1);
  EXPECT_EQ(flows.rate(a), 4);
  ASSERT_TRUE(flows.next());
  EXPECT_EQ(flows.arrival(a), 2);
}

// Capacity 8 / (1 + (w - 1)): 8 for one sender, 4 for two. a has 2 until b, of 2 floats, arrives at 1, and then the
// remaining 4 floats at 8: it arrives at 1.5. Incast took half of the time with two senders: half a second of both. The
// link was full all the time.
TEST(RateSolver, KeepsWhatALinkDid) {
  Flows flows({{.beta = 1, .epsilon = 1, .threshold = 1, .scale = 8}, link_of(32)});
  const std::size_t a = flows.add({0, 1}, 6);
  const std::size_t b = flows.add({0}, 2);
  flows.solve();
  EXPECT_EQ(flows.rate(a), 2);
  ASSERT_TRUE(flows.next());
  ASSERT_TRUE(flows.next());
  EXPECT_EQ(flows.arrival(a), 1.5);
  EXPECT_EQ(flows.incast(a), 0.5);
  EXPECT_EQ(flows.incast(b), 0.5);
  const LinkSums first = flows.solver().sums_until_now(0);
  EXPECT_EQ(first.busy, 1.5);
  EXPECT_EQ(first.full, 1.5);
  EXPECT_EQ(first.incast, 0.5);
  const LinkSums second = flows.solver().sums_until_now(1);
  EXPECT_EQ(second.busy, 1.5);
  EXPECT_EQ(second.full, (1 * 2.0 + 0.5 * 8.0) / 32);
  EXPECT_EQ(second.incast, 0);

  flows.solver().repeat(10, 3, std::vector<LinkSums>(2));
  EXPECT_EQ(flows.solver().sums(0).busy, 6);
  EXPECT_EQ(flows.solver().sums(0).incast, 2);
}

// --- random cases

/// All rates against water filling over the same flows, and against the definition: every flow crosses a full link on
/// which no flow is faster.
void expect_fair(Flows& flows, std::size_t num_links) {
  std::vector<double> capacities;
  for (LinkIndex l = 0; l < num_links; ++l) {
    capacities.push_back(flows.solver().state(l).capacity(flows.solver().num_senders(l)));
  }
  std::vector<std::size_t> names;
  std::vector<std::vector<Crossed>> paths;
  std::vector<double> load(num_links, 0);
  std::vector<double> fastest(num_links, 0);
  for (const auto& [name, flow] : flows.under_way()) {
    names.push_back(name);
    paths.push_back(flows.path(name));
    for (const Crossed& c : paths.back()) {
      load[c.link] += c.times * flows.rate(name);
      fastest[c.link] = std::max(fastest[c.link], flows.rate(name));
    }
  }
  const std::vector<double> rates = test::water_filling(capacities, paths);
  constexpr double kClose = 1e-9;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double rate = flows.rate(names[i]);
    EXPECT_NEAR(rate, rates[i], kClose * rates[i]) << "flow " << names[i];
    EXPECT_TRUE(std::any_of(paths[i].begin(), paths[i].end(),
                            [&](const Crossed& c) {
                              return load[c.link] >= capacities[c.link] * (1 - kClose) &&
                                     rate >= fastest[c.link] * (1 - kClose);
                            }))
        << "flow " << names[i] << " has no bottleneck";
  }
  for (std::size_t l = 0; l < num_links; ++l) {
    EXPECT_NEAR(flows.solver().load(static_cast<LinkIndex>(l)), load[l], kClose * capacities[l]) << "link " << l;
  }
}

/// What is drawn.
struct RandomCase {
  bool keeps_paths = false;  // in the solver; then every flow stands for one
  bool has_incast = false;
  bool on_graph = false;            // of bottlenecks
  double share_of_equal_flows = 0;  // so that many end together
};

void play(std::uint64_t seed, const RandomCase& drawn) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto number = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  const auto share = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  const auto num_links = static_cast<std::size_t>(number(1, 12));
  std::vector<LinkState> links;
  for (std::size_t l = 0; l < num_links; ++l) {
    LinkState link = link_of(share() < 0.5 ? number(1, 4) : 0.5 + 10 * share());
    if (drawn.has_incast) {
      link.epsilon = share() < 0.5 ? 0 : share();
      link.threshold = number(1, 3);
    }
    links.push_back(link);
  }
  const GraphUse graph = drawn.on_graph ? GraphUse::kAlways : GraphUse::kWherePays;
  Flows flows(links, drawn.keeps_paths ? num_links : 0, {.graph = graph});
  for (int moment = 0; moment < 30; ++moment) {
    for (int i = number(0, 4); i > 0; --i) {
      std::vector<Crossed> path;
      for (std::size_t l = 0; l < num_links; ++l) {
        if (share() < 0.4) path.push_back({l, drawn.keeps_paths ? 1.0 : number(1, 4) / 2.0});
      }
      if (path.empty()) path.push_back({0, 1});
      flows.add(std::move(path), share() < drawn.share_of_equal_flows ? 2 : 0.1 + 5 * share());
    }
    flows.solve();
    expect_fair(flows, num_links);
    if (share() < 0.7 && !flows.next()) continue;
    expect_fair(flows, num_links);
    if (::testing::Test::HasFailure()) return;
  }
  while (flows.next()) expect_fair(flows, num_links);
  EXPECT_TRUE(flows.under_way().empty());
  for (LinkIndex l = 0; l < num_links; ++l) {
    EXPECT_EQ(flows.solver().num_flows(l), 0);
    EXPECT_EQ(flows.solver().load(l), 0);
  }
}

TEST(RateSolverRandom, AgreesWithWaterFilling) {
  for (std::uint64_t seed = 1; seed <= test::in_slow_build<std::uint64_t>(100, 300); ++seed) {
    play(seed, {.share_of_equal_flows = 0.3});
    play(seed, {.keeps_paths = true, .share_of_equal_flows = 0.3});
    play(seed, {.has_incast = true, .share_of_equal_flows = 0.8});
    play(seed, {.keeps_paths = true, .on_graph = true, .share_of_equal_flows = 0.3});
    play(seed, {.keeps_paths = true, .has_incast = true, .on_graph = true, .share_of_equal_flows = 0.8});
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace gar::sim
