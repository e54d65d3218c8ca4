// The command line's side of the simulator: what-if flags, words, the condensed path, and traces.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "apps/gar/verbs/simulate_options.hpp"
#include "gar/algorithms.hpp"
#include "gar/critical_path.hpp"
#include "gar/errors.hpp"
#include "gar/explain_simulation.hpp"
#include "gar/planner.hpp"
#include "gar/trace.hpp"

namespace gar::cli {
namespace {

void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << "\nin: " << text;
}

std::string usage_error(const SimulationArgs& args) {
  try {
    (void)parse_what_if(args);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

std::string apply_error(const SimulationArgs& args, const Topology& topology) {
  try {
    SimulationOptions options;
    apply(parse_what_if(args), topology, options);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

SimulationOptions options_of(const SimulationArgs& args, const Topology& topology) {
  SimulationOptions options;
  apply(parse_what_if(args), topology, options);
  return options;
}

TEST(WhatIf, ParsesEveryFlag) {
  SimulationArgs args;
  args.slow = {"rack3/server5=2", "17=1.5"};
  args.degrade = {"rack3.uplink=0.5", "a.b=c.up=2e-1"};  // names may contain dots and equal signs
  args.fail = {"rack1.down"};
  args.background = {"5.uplink=0.3"};
  args.jitter = "0.05";
  args.seed = "7";
  const WhatIf w = parse_what_if(args);
  ASSERT_EQ(w.conditions.size(), 6U);
  EXPECT_EQ(w.conditions[0].name, "rack3/server5");
  EXPECT_EQ(w.conditions[0].value, 2);
  EXPECT_EQ(w.conditions[1].name, "17");
  EXPECT_TRUE(w.conditions[2].up && w.conditions[2].down);
  EXPECT_EQ(w.conditions[3].name, "a.b=c");
  EXPECT_TRUE(w.conditions[3].up && !w.conditions[3].down);
  EXPECT_EQ(w.conditions[3].value, 0.2);
  EXPECT_TRUE(!w.conditions[4].up && w.conditions[4].down);
  EXPECT_EQ(w.conditions[4].value, 0);
  EXPECT_EQ(w.conditions[5].value, 0.3);
  EXPECT_EQ(w.jitter, 0.05);
  EXPECT_EQ(w.seed, 7U);
  EXPECT_FALSE(w.is_empty());
  EXPECT_TRUE(parse_what_if({}).is_empty());
  EXPECT_EQ(what_if_words(w),
            (std::vector<std::string>{"calculation of rack3/server5 takes 2 times as long",
                                      "calculation of rank 17 takes 1.5 times as long",
                                      "the link of rack3 has 50% of its capacity",
                                      "the uplink of a.b=c has 20% of its capacity", "the downlink of rack1 has failed",
                                      "other traffic takes 30% of the link of rank 5", "jitter of 5%, seed 7"}));
}

TEST(WhatIf, SharesMayBePercentages) {
  SimulationArgs args;
  args.degrade = {"rack3.uplink=50%"};
  args.background = {"5.uplink=2.5%"};
  args.jitter = "5%";
  args.tolerance = "0.1%";
  const WhatIf w = parse_what_if(args);
  EXPECT_EQ(w.conditions[0].value, 0.5);
  EXPECT_EQ(w.conditions[1].value, 0.025);
  EXPECT_EQ(w.jitter, 0.05);
  EXPECT_EQ(parse_tolerance(args), 1e-3);
  args = {};
  args.slow = {"rack3=200%"};  // a factor is no share
  EXPECT_NE(usage_error(args).find("'200%' is not a number"), std::string::npos);
  args = {};
  args.tolerance = "20%";
  EXPECT_THROW(static_cast<void>(parse_tolerance(args)), UsageError);
}

TEST(WhatIf, SaysWhatIsAccepted) {
  using List = std::vector<std::string>;
  SimulationArgs args;
  const auto slow = [&](const char* text) {
    args = {};
    args.slow = List{text};
    return usage_error(args);
  };
  const auto degrade = [&](const char* text) {
    args = {};
    args.degrade = List{text};
    return usage_error(args);
  };
  const auto background = [&](const char* text) {
    args = {};
    args.background = List{text};
    return usage_error(args);
  };
  const auto fail = [&](const char* text) {
    args = {};
    args.fail = List{text};
    return usage_error(args);
  };
  expect_contains(slow("rack3"), {"--slow 'rack3'", "'=' and a number are missing", "expected NAME=FACTOR"});
  expect_contains(slow("rack3=fast"), {"'fast' is not a number"});
  expect_contains(slow("rack3=nan"), {"'nan' is not a number"});
  expect_contains(slow("rack3=2x"), {"'2x' is not a number"});
  expect_contains(slow("rack3="), {"'' is not a number"});
  expect_contains(slow("rack3=0"), {"0 is out of range", "a factor from 1e-9 to 1e9"});
  expect_contains(slow("=2"), {"the name is missing"});
  expect_contains(degrade("rack3=0.5"), {"which link is not said", "NAME.uplink=CAPACITY"});
  expect_contains(degrade("rack3.sideways=0.5"), {"'.sideways' is no link of a node"});
  expect_contains(degrade("rack3.uplink=-1"), {"-1 is out of range", "a capacity from 1e-9 to 1e9, or 0"});
  expect_contains(degrade(".uplink=1"), {"the name is missing"});
  expect_contains(background("rack3.uplink=1"), {"1 is out of range", "a share from 0 to 0.999999999"});
  expect_contains(fail("rack3"), {"--fail 'rack3'", "NAME.uplink (both directions)"});
  expect_contains(fail("rack3.uplink=0"), {"is no link of a node"});
  for (const char* jitter : {"-0.1", "x", "", "inf", "0.1x"}) {
    args = {};
    args.jitter = jitter;
    expect_contains(usage_error(args), {"--jitter", "expected a share"});
  }
  for (const char* seed : {"-1", "x", "", "1.5", "18446744073709551616"}) {
    args = {};
    args.seed = seed;
    expect_contains(usage_error(args), {"--seed", "expected a whole number"});
  }
}

TEST(WhatIf, FindsPlacesInTheNetwork) {
  const Topology t = make_tree({4, 3});
  SimulationArgs args;
  args.slow = {"rack1=2", "rack1/server1=3", "0=1.5"};
  args.degrade = {"rack2.uplink=0.5", "rack2.up=0.5"};
  args.background = {"rack2.down=0.25", "11.uplink=0.1"};
  args.fail = {"rack3.up"};
  const SimulationOptions o = options_of(args, t);
  std::map<std::int64_t, double> slow;
  for (const SlowServer& s : o.slow_servers) slow[s.rank] = s.factor;
  EXPECT_EQ(slow, (std::map<std::int64_t, double>{{0, 1.5}, {3, 2}, {4, 6}, {5, 2}}));  // factors multiply
  ASSERT_EQ(o.links.size(), 5U);                                                        // one per direction
  const auto at = [&](NodePlace node, bool up) {
    for (const LinkCondition& c : o.links) {
      if (c.node == node && c.up == up && c.down != up) return c;
    }
    ADD_FAILURE() << node.rank << " " << node.depth;
    return LinkCondition{};
  };
  EXPECT_EQ(at({6, 1}, true).capacity, 0.25);
  EXPECT_EQ(at({6, 1}, false).capacity, 0.5);
  EXPECT_EQ(at({6, 1}, false).background, 0.25);
  EXPECT_EQ(at({9, 1}, true).capacity, 0);
  EXPECT_EQ(at({11, 2}, true).background, 0.1);
  EXPECT_EQ(at({11, 2}, false).background, 0.1);
}

TEST(WhatIf, NamesWhatDoesNotExist) {
  const Topology t = make_tree({16, 3});
  SimulationArgs args;
  args.degrade = {"rak3.uplink=0.5"};
  expect_contains(apply_error(args, t), {"--degrade rak3.uplink=0.5: there is no 'rak3'", "rack0..rack15"});
  args = {};
  args.slow = {"48=2"};
  expect_contains(apply_error(args, t), {"--slow 48=2: there is no rank 48", "ranks 0 to 47"});
  args = {};
  args.fail = {"root.uplink"};
  expect_contains(apply_error(args, t), {"--fail root.uplink", "is the root and has no link"});
  args = {};
  args.background = {"rack0.up=0.6", "rack0.uplink=0.6"};
  expect_contains(apply_error(args, t), {"--background rack0.uplink=0.6", "nothing of that link is left"});
}

// A network with its conditions takes as long as the simulator says of the network under them.
TEST(WhatIf, NetworksWithConditionsAreThoseThatAreSimulated) {
  const Topology t = make_tree({4, 3});
  SimulationArgs args;
  args.slow = {"rack1=2", "rack1/server1=3", "0=1.5"};
  args.degrade = {"rack2.uplink=0.5", "rack2.uplink=50%", "rack1/server2.uplink=0.1"};
  const WhatIf what_if = parse_what_if(args);
  const Topology changed = with_conditions(t, what_if);
  EXPECT_EQ(changed.num_servers(), 12);
  EXPECT_EQ(changed.name(), t.name() +
                                " --slow rack1=2 --slow rack1/server1=3 --slow 0=1.5 --degrade rack2.uplink=0.5"
                                " --degrade rack2.uplink=50% --degrade rack1/server2.uplink=0.1");
  for (std::int64_t rank = 0; rank < 12; ++rank) EXPECT_EQ(changed.instance_name(rank, 2), t.instance_name(rank, 2));
  SimulationOptions options;
  apply(what_if, t, options);
  for (const char* name : {"cps", "ring", "rhd"}) {
    const Plan plan = build_plan(parse_algorithm(name), 12);
    const double seconds = simulate(plan, t, 1e7, options).seconds;
    EXPECT_NEAR(simulate(plan, changed, 1e7).seconds, seconds, 1e-9 * seconds) << name;
    EXPECT_GT(seconds, simulate(plan, t, 1e7).seconds) << name;
  }
  EXPECT_EQ(with_conditions(t, {}).name(), t.name());
}

TEST(WhatIf, PlansAreMadeForSomeConditionsOnly) {
  const Topology t = make_tree({4, 3});
  const auto refusal = [&](const char* degrade, const char* fail) -> std::string {
    SimulationArgs args;
    if (*degrade != 0) args.degrade = {degrade};
    if (*fail != 0) args.fail = {fail};
    try {
      static_cast<void>(with_conditions(t, parse_what_if(args)));
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "accepted";
  };
  expect_contains(refusal("rack1.up=0.5", ""), {"equal directions", "expected rack1.uplink=0.5"});
  expect_contains(refusal("rack1.uplink=0", ""), {"nothing is left of this link"});
  expect_contains(refusal("root.uplink=0.5", ""), {"the root has no link"});
  expect_contains(refusal("rak1.uplink=0.5", ""), {"there is no 'rak1'"});
  expect_contains(refusal("", "rack1.uplink"), {"gar simulate has the rest"});
}

TEST(Words, NameTheBottleneckOfAStage) {
  const Topology t = make_tree({16, 3});
  StageUse stage;
  stage.begin = 1;
  stage.end = 2;
  stage.busiest = {find_place(t, "rack7"), true};
  stage.busy_seconds = 0.92;
  stage.incast_seconds = 0.92 * 0.31;
  EXPECT_EQ(bottleneck_words(t, stage, false), "downlink of rack7, 92% busy, incast 31% of it");
  stage.incast_seconds = 0;
  EXPECT_EQ(bottleneck_words(t, stage, false), "downlink of rack7, 92% busy");
  stage.busy_seconds = 0.2;
  EXPECT_EQ(bottleneck_words(t, stage, false), "latency and waiting; downlink of rack7, 20% busy");
  EXPECT_EQ(bottleneck_words(t, stage, true), "downlink of rack7, 20% of the stage");
  stage.calculation_seconds = 0.7;
  EXPECT_EQ(bottleneck_words(t, stage, false), "calculation, 70%; downlink of rack7, 20% busy");
}

TEST(Words, CompareTimes) {
  EXPECT_EQ(difference_words(1.03, 1), "3.0% longer");
  EXPECT_EQ(difference_words(0.98, 1), "2.0% less");
  EXPECT_EQ(difference_words(1, 1), "as long");
}

// Two hops in stage 0, one in stage 1, one in stage 0 again.
TEST(Path, IsCondensedByStage) {
  Simulation s;
  s.stages.resize(2);
  s.stages[0].first_step = 0;
  s.stages[0].num_steps = 2;
  s.stages[1].first_step = 2;
  const auto hop = [](std::int64_t from, std::int64_t rank, std::int64_t chunk, std::int64_t step, double begin) {
    PathHop h;
    h.is_message = from != rank;
    h.from = from;
    h.rank = rank;
    h.chunk = chunk;
    h.step = step;
    h.begin = begin;
    h.end = begin + 1;
    h.terms = {0.25, 0.5, 0.125, 0.125, 0};
    h.link = {{from, 1}, false};
    return h;
  };
  s.path = {hop(0, 1, 0, 0, 0), hop(1, 2, 0, 1, 1), hop(2, 2, 0, 2, 2), hop(2, 0, 1, 0, 3)};
  EXPECT_EQ(stage_of_step(s.stages, 1), 0U);
  EXPECT_EQ(stage_of_step(s.stages, 2), 1U);
  EXPECT_EQ(path_hops(s).size(), 4U);
  const std::vector<PathPart> parts = path_parts(s);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].num_hops, 2);
  EXPECT_EQ(parts[0].from, 0);
  EXPECT_EQ(parts[0].rank, 2);
  EXPECT_EQ(parts[0].end, 2);
  EXPECT_EQ(parts[0].terms.total(), 2);
  EXPECT_EQ(parts[0].num_links, 2);
  EXPECT_FALSE(parts[1].has_message);
  EXPECT_EQ(parts[2].first_chunk, 1);
  const std::vector<PathPart> by_stage = path_by_stage(s);
  ASSERT_EQ(by_stage.size(), 2U);
  EXPECT_EQ(by_stage[0].num_hops, 3);
  EXPECT_EQ(by_stage[0].last_chunk, 1);
  const Topology t = make_tree({3});
  EXPECT_EQ(waiting_words(t, parts[0]),
            "1.00 s on the uplink of server0 and 1 other; 500 ms of latency; 500 ms reducing");
}

using Json = nlohmann::ordered_json;

// Slices of one track, as {begin, end} in nanoseconds, in the order of the file.
using Slices = std::vector<std::pair<std::int64_t, std::int64_t>>;

struct Trace {
  Json document;
  std::map<std::int64_t, std::string> threads;
  std::map<std::int64_t, Slices> slices;                   ///< by thread
  std::map<std::string, double> microseconds_of_category;  ///< summed up
};

std::int64_t nanoseconds(const Json& micros) { return std::llround(micros.get<double>() * 1000); }

Trace parsed(const std::string& text) {
  Trace out;
  out.document = Json::parse(text);
  for (const Json& event : out.document["traceEvents"]) {
    const std::string ph = event["ph"];
    EXPECT_TRUE(ph == "X" || ph == "M" || ph == "C") << event;
    if (ph == "M" && event["name"] == "thread_name") out.threads[event["tid"]] = event["args"]["name"];
    if (ph != "X") continue;
    EXPECT_GE(event["dur"].get<double>(), 0);
    out.microseconds_of_category[event["cat"]] += event["dur"].get<double>();
    const std::int64_t begin = nanoseconds(event["ts"]);
    out.slices[event["tid"]].emplace_back(begin, begin + nanoseconds(event["dur"]));
  }
  return out;
}

// Two slices of one track are apart or one holds the other.
void expect_nested(const Slices& slices) {
  Slices sorted = slices;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  std::vector<std::int64_t> open;
  for (const auto& [begin, end] : sorted) {
    while (!open.empty() && open.back() <= begin) open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(end, open.back()) << "a slice from " << begin << " sticks out";
    }
    open.push_back(end);
  }
}

TEST(Trace, NestsAndSumsUp) {
  const Topology t = make_tree({3});
  const Plan plan = cps(3);
  std::ostringstream out;
  TraceWriter trace(out, plan, t);
  trace.on_rank(0, 3);
  trace.on_link({{0, 1}, true}, 3);
  const LinkId link{{0, 1}, true};
  trace.on_load({.link = link, .time = 0.25, .flows = 6, .senders = 2});
  trace.on_flow({.from = 1, .to = 0, .flowing = 0.25, .end = 1, .floats = 100, .alike = 6});
  trace.on_load({.link = link, .time = 1, .flows = 0, .senders = 0});
  trace.on_step({.rank = 0, .chunk = 0, .step = 0, .start = 0, .received = 1, .done = 1.5});
  trace.on_step({.rank = 0, .chunk = 1, .step = 0, .start = 1, .received = 2, .done = 2});    // overlaps another chunk
  trace.on_step({.rank = 0, .chunk = 0, .step = 1, .start = 1.5, .received = 3, .done = 3});  // fits behind the first
  trace.on_load({.link = link, .time = 2, .flows = 1, .senders = 1});
  trace.finish(3, R"({"complete": false})");
  EXPECT_EQ(trace.error(), 0);
  const Trace parsed_trace = parsed(out.str());
  std::vector<std::string> names;
  for (const auto& [tid, name] : parsed_trace.threads) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"server0 (3 alike)", "downlink of server0 (3 alike)",
                                             "server0 (3 alike), overlapping"}));
  for (const auto& [tid, slices] : parsed_trace.slices) expect_nested(slices);
  EXPECT_EQ(parsed_trace.microseconds_of_category.at("step"), 4e6);
  EXPECT_EQ(parsed_trace.microseconds_of_category.at("receive"), 3.5e6);
  EXPECT_EQ(parsed_trace.microseconds_of_category.at("reduce"), 0.5e6);
  EXPECT_EQ(parsed_trace.microseconds_of_category.at("load"), 1.75e6);  // the open one is closed at the end
  EXPECT_EQ(parsed_trace.document["otherData"]["complete"], false);
  const auto& events = parsed_trace.document["traceEvents"];
  const auto receive = std::find_if(events.begin(), events.end(), [](const Json& e) { return e["name"] == "receive"; });
  ASSERT_NE(receive, events.end());
  EXPECT_EQ((*receive)["args"]["messages"], 2);  // of six, each of the three ranks got two
  EXPECT_EQ((*receive)["args"]["floats"], 200);
  EXPECT_EQ((*receive)["args"]["stage"], "3-way exchange");
}

TEST(Trace, ReportsAFailingFile) {
  const Topology t = make_tree({3});
  const Plan plan = cps(3);
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  TraceWriter trace(out, plan, t);
  trace.on_rank(0, 1);
  EXPECT_NE(trace.error(), 0);
}

TEST(StageLabels, FollowTheWayOfARank) {
  const Topology t = make_tree({2, 3});
  const Plan plan = gentree(t, 1e8).plan;
  const std::vector<StageLabels::Span> spans = StageLabels(plan).of_rank(4);
  ASSERT_EQ(spans.size(), 4U);
  EXPECT_EQ(spans[0].first, 0);
  expect_contains(spans[0].label, {"rack level"});
  expect_contains(spans[1].label, {"root level"});
  expect_contains(spans[2].label, {"root level", "(AllGather)"});
  EXPECT_EQ(spans[3].first, 3);
  expect_contains(spans[3].label, {"rack level", "(AllGather)"});
}

// A whole simulation: every rank's steps are there, and what a track shows is what the simulation says.
void expect_sound_trace(const Plan& plan, const Topology& t, const SimulationOptions& base) {
  std::ostringstream out;
  TraceWriter trace(out, plan, t);
  SimulationOptions options = base;
  options.observer = &trace;
  const Simulation s = simulate(plan, t, 1e7, options);
  trace.finish(s.seconds, "{}");
  const Trace p = parsed(out.str());
  std::int64_t last = 0;
  for (const auto& [tid, slices] : p.slices) {
    expect_nested(slices);
    for (const auto& slice : slices) last = std::max(last, slice.second);
  }
  EXPECT_EQ(last, std::llround(s.seconds * 1e9));
  std::map<std::string, double> busy;
  for (const auto& [tid, slices] : p.slices) {
    for (const auto& [begin, end] : slices) busy[p.threads.at(tid)] += 1e-9 * static_cast<double>(end - begin);
  }
  for (const LinkUse& use : s.links) {
    std::string name = link_name(t, use.link);
    if (use.count > 1) name += " (" + std::to_string(use.count) + " alike)";
    ASSERT_TRUE(busy.count(name)) << name;
    EXPECT_NEAR(busy[name], use.busy_seconds, 1e-6 * s.seconds) << name;
  }
}

TEST(Path, AddsUpToTheWholeTime) {
  const Topology t = make_tree({2, 3});
  SimulationOptions options;
  options.engine = SimulationEngine::kFlows;
  options.slow_servers = {{4, 3}};
  options.links = {{{3, 1}, true, false, 0.05, 0}};
  Plan chunked = hcps(6, {3, 2});
  chunked.num_chunks = 4;
  for (const Plan& plan : {cps(6), ring(6), chunked}) {
    const Simulation s = simulate(plan, t, 1e7, options);
    for (const std::vector<PathPart>& parts : {path_hops(s), path_parts(s), path_by_stage(s)}) {
      Terms sum;
      for (const PathPart& part : parts) sum += part.terms;
      EXPECT_NEAR(sum.total(), s.seconds, 1e-6 * s.seconds) << plan.algorithm;
      EXPECT_NEAR(sum.alpha, s.terms.alpha, 1e-6 * s.seconds) << plan.algorithm;
      EXPECT_NEAR(sum.epsilon, s.terms.epsilon, 1e-6 * s.seconds) << plan.algorithm;
    }
  }
}

TEST(Trace, ShowsWhatTheSimulationDid) {
  const Topology t = make_tree({2, 3});
  for (const SimulationEngine engine : {SimulationEngine::kFlows, SimulationEngine::kClasses}) {
    SimulationOptions options;
    options.engine = engine;
    expect_sound_trace(cps(6), t, options);
    expect_sound_trace(ring(6), t, options);
    expect_sound_trace(gentree(t, 1e7).plan, t, options);
    Plan chunked = hcps(6, {3, 2});
    chunked.num_chunks = 4;
    expect_sound_trace(chunked, t, options);
    options.barrier = true;
    expect_sound_trace(chunked, t, options);
  }
}

}  // namespace
}  // namespace gar::cli
