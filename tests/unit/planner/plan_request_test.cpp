// The door of the planner: every algorithm by name gives what a direct call gives, priced once; policies; errors.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/model.hpp"
#include "gar/planner.hpp"
#include "gar/predict.hpp"
#include "gar/topology.hpp"
#include "gar/topology_io.hpp"
#include "gar/verify.hpp"
#include "support/terms.hpp"

namespace gar {
namespace {

struct Direct {
  Plan plan;
  std::vector<SwitchChoice> switches;
};

/// What the functions behind the door say.
Direct call_directly(const std::string& algorithm, const Topology& topology, double size) {
  if (algorithm == "gentree+") {
    TreePlan tree = gentree_plus(topology, size, {.exchanges = false});  // these networks have no mu
    return {tree.plan, tree.switches};
  }
  if (algorithm == "gentree" || algorithm == "gentree-norearrange") {
    TreePlan tree = gentree(topology, size, {algorithm == "gentree", {}});
    return {tree.plan, tree.switches};
  }
  const AlgorithmSpec best = Predictor(topology, {parse_algorithm(algorithm)}).at(size).front().spec;
  return {topology.num_servers() == 1 ? cps(1) : build_plan(best, topology.num_servers()), {}};
}

/// Pricing the plan again gives the same bits.
void expect_priced(const PlanAnswer& answer, const PlanRequest& request) {
  ASSERT_NE(answer.priced, nullptr);
  ModelOptions options = request.model;
  options.overlap = true;
  const PricedPlan again(answer.plan, request.topology, options);
  for (const double size : {request.size_floats, 2 * request.size_floats + 1}) {
    EXPECT_EQ(answer.priced->cost(size), again.cost(size)) << size;
  }
  EXPECT_EQ(answer.terms, again.cost(request.size_floats));
  EXPECT_EQ(answer.priced->max_incast_excess(), again.max_incast_excess());
  const std::vector<StageCost> stages = answer.priced->critical_stages(request.size_floats);
  const std::vector<StageCost> stages_again = again.critical_stages(request.size_floats);
  ASSERT_EQ(stages.size(), stages_again.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    EXPECT_EQ(stages[i].label, stages_again[i].label);
    EXPECT_EQ(stages[i].at(request.size_floats), stages_again[i].at(request.size_floats));
  }
}

/// Racks of four and of three servers with the paper's parameters.
Topology four_and_three() {
  const PaperParams p;
  return Topology("four-and-three",
                  {{"server", p.alpha, p.server_link, p.server, {}},
                   {"big", p.alpha, p.inner_link, {}, {{0, 4}}},
                   {"small", p.alpha, p.inner_link, {}, {{0, 3}}},
                   {"root", p.alpha, {}, {}, {{1, 1}, {2, 1}}}},
                  3);
}

/// A tree whose servers pay a little for every message: without that nothing ends in exchanges.
Topology with_mu(const std::vector<std::int64_t>& factors) {
  PaperParams p;
  p.server.mu = 1e-9;
  return make_tree(factors, p);
}

std::vector<Topology> small_networks() {
  std::vector<Topology> out{four_and_three()};
  for (const char* spec : {"star:1", "star:2", "star:7", "ss24", "tree:3x4", "tree:2x3x2", "tree:5x16"}) {
    out.push_back(topology_from_spec(spec));
  }
  return out;
}

TEST(PlanRequest, AnswersWhatDirectCallsAnswer) {
  for (const Topology& network : small_networks()) {
    for (const char* algorithm :
         {"reduce-broadcast", "ring", "rhd", "cps", "hcps", "hring", "gentree", "gentree-norearrange", "gentree+"}) {
      for (const double size : {1.0, 1e7}) {
        SCOPED_TRACE(std::string(algorithm) + " on " + network.name() + ", " + std::to_string(size) + " floats");
        const PlanRequest request{.topology = network, .size_floats = size, .algorithms = {parse_algorithm(algorithm)}};
        const PlanAnswer answer = plan(request);
        const Direct direct = call_directly(algorithm, request.topology, size);
        EXPECT_EQ(answer.plan, direct.plan);
        EXPECT_EQ(answer.spec.name, algorithm);
        EXPECT_EQ(answer.bound.seconds(), lower_bound(request.topology, size).seconds());
        EXPECT_FALSE(answer.passed_over);
        ASSERT_EQ(answer.asked.size(), 1U);
        EXPECT_EQ(answer.asked[0].algorithm, to_string(answer.spec));
        EXPECT_EQ(answer.asked[0].terms, answer.terms);
        if (is_tree_planner(answer.spec)) {
          EXPECT_EQ(plan_words(answer.switches), plan_words(direct.switches));
        } else {
          EXPECT_EQ(answer.switches.size(), request.topology.num_servers() == 1 ? 0U : 1U);
        }
        expect_priced(answer, request);
      }
    }
  }
}

TEST(PlanRequest, MeansGenTreePlusByDefault) {
  const Topology topology = topology_from_spec("tree:3x4");
  const PlanAnswer answer = plan({.topology = topology, .size_floats = 1e6});
  EXPECT_EQ(answer.spec.name, "gentree+");
  EXPECT_EQ(answer.plan, gentree_plus(topology, 1e6).plan);
  ASSERT_FALSE(answer.considered.empty());
  EXPECT_EQ(answer.considered.front().terms, answer.terms);
  EXPECT_TRUE(verify(answer.plan).ok);
}

TEST(PlanRequest, TakesTheBestOfSeveralAndTheFirstOfEqualOnes) {
  PlanRequest request{.topology = builtin_topology("ss24"), .size_floats = 1e8};
  for (const char* name : {"ring", "cps", "hcps", "rhd"}) request.algorithms.push_back(parse_algorithm(name));
  const PlanAnswer answer = plan(request);
  EXPECT_EQ(to_string(answer.spec), Predictor(request.topology, request.algorithms).at(1e8).front().algorithm());
  ASSERT_EQ(answer.asked.size(), 4U);
  EXPECT_EQ(answer.asked[0].algorithm, "ring");
  EXPECT_EQ(answer.asked[2].algorithm, to_string(answer.spec));
  EXPECT_GT(answer.num_considered, 1);
  for (const PlanCandidate& c : answer.asked) EXPECT_LE(answer.seconds(), c.seconds()) << c.algorithm;

  // On two servers CPS and RHD are the same plan.
  request.topology = topology_from_spec("star:2");
  request.algorithms = {parse_algorithm("rhd"), parse_algorithm("cps")};
  EXPECT_EQ(plan(request).spec.name, "rhd");
}

TEST(PlanRequest, HalvesThePlan) {
  PlanRequest request{.topology = topology_from_spec("star:7"), .size_floats = 1e6};
  request.algorithms = {parse_algorithm("rhd")};
  const Plan whole = plan(request).plan;
  request.collective = Collective::kReduceScatter;
  const PlanAnswer scatter = plan(request);
  EXPECT_EQ(scatter.plan, as_reduce_scatter(whole));
  expect_priced(scatter, request);
  request.collective = Collective::kAllGather;
  const PlanAnswer gather = plan(request);
  EXPECT_EQ(gather.plan, as_all_gather(whole));
  expect_priced(gather, request);
}

TEST(PlanRequest, KeepsToTheModelOptions) {
  PlanRequest request{.topology = builtin_topology("ss24"), .size_floats = 1e8};
  request.model.max_chunks = 1;
  EXPECT_EQ(plan(request).plan.num_chunks, 1);
  request.model = {.kind = ModelKind::kAbc};
  const PlanAnswer abc = plan(request);
  EXPECT_EQ(abc.terms.epsilon, 0);
  EXPECT_EQ(abc.plan, gentree_plus(request.topology, 1e8, request.model).plan);
  expect_priced(abc, request);
}

TEST(PlanRequest, JudgesOptimalityWhenAsked) {
  PlanRequest request{.topology = topology_from_spec("star:8"), .size_floats = 1e6};
  request.algorithms = {parse_algorithm("cps")};
  EXPECT_FALSE(plan(request).optimality);
  request.with_optimality = true;
  const PlanAnswer answer = plan(request);
  ASSERT_TRUE(answer.optimality);
  EXPECT_TRUE(answer.optimality->bandwidth);
  EXPECT_TRUE(answer.optimality->latency);
  request.collective = Collective::kReduceScatter;
  EXPECT_FALSE(plan(request).optimality);
}

TEST(PlanRequest, RefusesWhatDoesNotFit) {
  PlanRequest request{.topology = topology_from_spec("star:7"), .size_floats = 1e6};
  for (const char* algorithm : {"hcps:2x3", "hring:3x3", "acps:4+4", "acps"}) {
    request.algorithms = {parse_algorithm("ring"), parse_algorithm(algorithm)};
    EXPECT_THROW((void)plan(request), InvalidArgument) << algorithm;
    EXPECT_THROW(check_algorithm(parse_algorithm(algorithm), 7), InvalidArgument) << algorithm;
  }
  request.algorithms.clear();
  for (const double size : {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    request.size_floats = size;
    EXPECT_THROW((void)plan(request), InvalidArgument) << size;
  }
}

TEST(CheckAlgorithm, AcceptsWhatCanBePlanned) {
  for (const char* algorithm : {"ring", "rhd", "cps", "hcps", "hring", "hcps:2x3", "hcps:~2x3", "acps:4+2",
                                "reduce-broadcast", "gentree", "gentree-norearrange", "gentree+"}) {
    EXPECT_NO_THROW(check_algorithm(parse_algorithm(algorithm), 6)) << algorithm;
  }
  for (const char* algorithm : {"ring", "hcps", "gentree+"}) {
    EXPECT_NO_THROW(check_algorithm(parse_algorithm(algorithm), 1)) << algorithm;
  }
}

// 12 servers on one switch, 1e5 floats: beta alone takes 2 * 11/12 * 1e5 * 1.28e-6 s = 235 ms. Ranks of a ring pass 22
// steps of 3 alpha each.
PlanRequest lossy_star(double alpha, double epsilon, double incast_threshold, double gamma = 1e-10) {
  PaperParams params;
  params.alpha = alpha;
  params.server_link = {1.28e-6, epsilon, incast_threshold};
  params.server = {gamma, 1e-10};
  PlanRequest request{.topology = make_tree({12}, params), .size_floats = 1e5, .policy = Policy::kRuntime};
  request.model.max_chunks = 1;
  return request;
}

TEST(Policy, RuntimeTakesARingWhereOverlappingStagesWereMeasuredToCostMore) {
  PlanRequest request = lossy_star(1e-5, 9e-8, 1);  // 22 * 30 us = 0.7 ms, 0.2% of the whole
  EXPECT_EQ(plan(request).spec.name, "gentree+");   // nothing was measured
  request.overlap = 1.03;
  const PlanAnswer ring = plan(request);
  EXPECT_EQ(ring.spec.name, "ring");
  EXPECT_EQ(ring.plan, gar::ring(12));
  expect_priced(ring, request);
  request.policy = Policy::kModel;
  const PlanAnswer best = plan(request);
  EXPECT_EQ(best.spec.name, "gentree+");
  EXPECT_FALSE(best.passed_over);
  ASSERT_TRUE(ring.passed_over);
  EXPECT_EQ(ring.passed_over->algorithm, plan_name(best));
  EXPECT_DOUBLE_EQ(ring.passed_over->excess, ring.seconds() / best.seconds() - 1);
  EXPECT_LE(ring.passed_over->excess, 0.03);
  const std::string words = choice_words(ring, request.topology);
  EXPECT_EQ(words.find("predicted to take 0.2% longer than "), 0U) << words;
  EXPECT_NE(words.find("measured to take 3.0% longer"), std::string::npos) << words;
}

TEST(Policy, RuntimeFollowsTheModelOtherwise) {
  PlanRequest slow = lossy_star(1e-3, 9e-8, 1);  // 22 * 3 ms = 66 ms, more than 3%
  slow.overlap = 1.03;
  for (PlanRequest request : {slow, lossy_star(1e-5, 9e-8, 1)}) {
    const PlanAnswer runtime = plan(request);
    request.policy = Policy::kModel;
    const PlanAnswer model = plan(request);
    EXPECT_EQ(runtime.spec.name, "gentree+");
    EXPECT_EQ(runtime.plan, model.plan);
    EXPECT_FALSE(runtime.passed_over);
  }
  PlanRequest request = lossy_star(1e-5, 9e-8, 1);
  request.overlap = 1.03;
  request.algorithms = {parse_algorithm("cps")};  // what was asked for is not replaced
  EXPECT_EQ(plan(request).spec.name, "cps");
}

// Chunks let stages overlap, and then their senders meet. Adding takes 0.4% of the time, which chunks hide.
TEST(Policy, RuntimeCutsNoVectorWhereMeetingSendersCostMoreThanItGains) {
  PlanRequest lossy = lossy_star(1e-5, 9e-8, 1, 1e-8);
  lossy.model.max_chunks = 1000;
  EXPECT_EQ(plan(lossy).plan.num_chunks, 1);
  lossy.policy = Policy::kModel;
  lossy.model.simulates = false;  // by price alone
  EXPECT_GT(plan(lossy).plan.num_chunks, 1);
  PlanRequest lossless = lossy_star(1e-5, 0, 0, 1e-8);
  lossless.model.max_chunks = 1000;
  EXPECT_GT(plan(lossless).plan.num_chunks, 1);
}

// Short vectors: the transport's gather or Recursive Doubling where they are predicted to be the fastest, at the price
// that they have there.
TEST(Policy, RuntimeConsidersTheTransportsGatherAndRecursiveDoubling) {
  PaperParams params;
  params.alpha = 1e-5;  // a path takes 3e-5
  params.server_link = {1e-9, 0, 1};
  params.server = {1e-12, 1e-12, 5e-6};
  PlanRequest request{.topology = make_tree({8}, params), .size_floats = 2, .policy = Policy::kRuntime};
  request.quick_gather = message_gather(8);
  EXPECT_EQ(request.quick_gather.num_rounds, 3);
  const PlanAnswer short_one = plan(request);
  EXPECT_EQ(short_one.spec.name, "recursive-doubling");  // three rounds as well, and fewer bytes
  EXPECT_FALSE(short_one.is_quick);
  EXPECT_EQ(std::count_if(short_one.considered.begin(), short_one.considered.end(),
                          [](const PlanCandidate& c) { return c.algorithm == "gather"; }),
            1);
  const double step = 3e-5 + 10e-6;
  EXPECT_NEAR(short_one.seconds(), 3 * step, 1e-3 * step);
  request.quick_gather = {.max_bytes = 100, .num_rounds = 1, .is_read_in_place = true};
  const PlanAnswer at_once = plan(request);
  EXPECT_TRUE(at_once.is_quick);
  EXPECT_EQ(at_once.plan, gather(8));
  EXPECT_NEAR(at_once.seconds(), 3e-5 + 70e-6, 1e-8);
  EXPECT_EQ(choice_words(at_once, request.topology).find("all vectors at once; least predicted time"), 0U);
  request.size_floats = 26;  // more than it takes
  EXPECT_FALSE(plan(request).is_quick);
  request.size_floats = 2;
  request.model.exchanges = false;
  EXPECT_EQ(plan(request).spec.name, "gentree+");
  request.algorithms = {parse_algorithm("gather")};
  EXPECT_TRUE(plan(request).is_quick);
  request.policy = Policy::kModel;
  EXPECT_FALSE(plan(request).is_quick);
}

TEST(QuickGather, CostsWhatItsRoundsTake) {
  PaperParams params;
  params.alpha = 1e-5;
  params.server_link = {1e-9, 1e-9, 1};
  params.server = {1e-12, 1e-12, 1e-6};
  const Topology star = make_tree({8}, params);
  const PricedPlan direct(gather(8), star);
  EXPECT_EQ(message_gather(1).max_bytes, 0);
  EXPECT_EQ(message_gather(2).num_rounds, 1);
  EXPECT_EQ(message_gather(2).header_bytes, 0);
  EXPECT_EQ(message_gather(9).num_rounds, 4);
  EXPECT_EQ(message_gather(1000).max_bytes, 0);
  const Terms plain = direct.cost(100);
  const Terms quick = cost_of({.max_bytes = 1e3, .num_rounds = 3}, direct, 8, Collective::kAllReduce, 100);
  EXPECT_DOUBLE_EQ(quick.alpha, 3 * plain.alpha);
  EXPECT_DOUBLE_EQ(quick.mu, 3 * 2e-6);
  EXPECT_DOUBLE_EQ(quick.beta, plain.beta);
  EXPECT_GT(plain.epsilon, 0);
  EXPECT_EQ(quick.epsilon, 0);
  EXPECT_EQ(quick.delta, plain.delta);
  const Terms scattered = cost_of({.max_bytes = 1e3, .num_rounds = 3}, direct, 8, Collective::kReduceScatter, 100);
  EXPECT_DOUBLE_EQ(scattered.delta, plain.delta / 8);
  const Terms gathered = cost_of({.max_bytes = 1e3, .num_rounds = 3}, direct, 8, Collective::kAllGather, 800);
  EXPECT_DOUBLE_EQ(gathered.beta, plain.beta);
  EXPECT_EQ(gathered.gamma, 0);
  const Terms shared =
      cost_of({.max_bytes = 1e3, .num_rounds = 1, .is_read_in_place = true}, direct, 8, Collective::kAllReduce, 100);
  EXPECT_DOUBLE_EQ(shared.beta, plain.beta / 7);
  EXPECT_DOUBLE_EQ(shared.mu, plain.mu);
}

TEST(PlanWords, NameSwitchesFactorsAndReasons) {
  EXPECT_EQ(plan_words({}), "nothing to do");
  const Topology sym384 = builtin_topology("sym384");
  const PlanAnswer answer = plan({.topology = sym384, .size_floats = 1e8});
  EXPECT_EQ(plan_words(answer.switches), "rack hcps 8x3; root cps 16");
  EXPECT_EQ(plan_name(answer), "gentree+");
  EXPECT_EQ(choice_words(answer, sym384).find("rack hcps 8x3; root cps 16; least predicted time on 'sym384'; next is "),
            0U)
      << choice_words(answer, sym384);

  const PlanAnswer flat = plan({.topology = builtin_topology("ss24"), .size_floats = 1e8});
  EXPECT_EQ(plan_name(flat), "hcps:8x3");
  const PlanAnswer small = plan({.topology = with_mu({24}), .size_floats = 1e3});
  EXPECT_EQ(plan_name(small), "gather");
  ASSERT_EQ(small.switches.size(), 1U);
  EXPECT_EQ(exchange_words(small.switches[0]),
            "groups exchange all that they hold, so nothing has to be gathered back: fewer steps, more bytes");
  EXPECT_EQ(exchange_words(flat.switches[0]), "");
  PlanAnswer mixed = small;
  mixed.switches[0].algorithm = "hcps+exchange";
  mixed.switches[0].factors = {12, 2};
  EXPECT_EQ(plan_name(mixed), "gentree+");  // no name on the command line builds it
  EXPECT_EQ(exchange_words(mixed.switches[0]).find("the last groups of 2 exchange all"), 0U);
}

// A gather of a short vector: one step. It has no halves, and a communicator does not take it by itself.
TEST(PlanWords, SentencesNeedNoKnowledgeOfNames) {
  SwitchChoice rack;
  rack.name = "rack";
  rack.algorithm = "hcps";
  rack.factors = {8, 3};
  EXPECT_EQ(plan_sentence({rack}), "groups of 8, then of 3 (hcps 8x3)");
  SwitchChoice root;
  root.name = "root";
  root.algorithm = "cps";
  root.factors = {16};
  EXPECT_EQ(plan_sentence({rack, root}), "rack: groups of 8, then of 3 (hcps 8x3); root: all 16 at once (cps 16)");
  root.algorithm = "gather";
  EXPECT_EQ(plan_sentence({root}), "gather 16");
  rack.is_uneven = true;
  EXPECT_EQ(plan_sentence({rack}), "groups of up to 8, then of 3 (hcps ~8x3)");
  EXPECT_EQ(plan_words({rack}), "rack hcps ~8x3");
  EXPECT_EQ(plan_sentence({}), "nothing to do");
}

TEST(PlanWords, SharesHaveNames) {
  SwitchChoice root;
  EXPECT_EQ(share_words(root), "");
  for (const char* name : {"rack0", "rack1", "rack2", "rack3"}) root.shares.push_back({name, 0.25});
  for (const char* name : {"rack4", "rack5", "rack6"}) root.shares.push_back({name, 0});
  root.shares.push_back({"slow", 0});
  EXPECT_EQ(share_words(root), "rack0 to rack3 25.0% each; rack4 to rack6 and slow nothing");
  root.shares = {{"a", 0.5}, {"b", 0.125}, {"c", 0.25}, {"d", 0.125}};
  EXPECT_EQ(share_words(root), "a 50.0%; c 25.0%; b and d 12.5% each");
  root.shares.clear();
  for (int i = 1; i <= 20; ++i) root.shares.push_back({"s" + std::to_string(i), i / 210.0});
  EXPECT_EQ(share_words(root), "s20 9.5%; s19 9.0%; s18 8.6%; s17 8.1%; s16 7.6%; ...; s3 1.4%; s2 1.0%; s1 0.5%");
}

// 23 servers have no factors: groups of 8, 8 and 7. What the root's stages cost is all that the plan costs.
TEST(PlanWords, UnevenGroupsAreCandidatesAndHaveAName) {
  for (const Collective collective : kCollectives) {
    const PlanAnswer answer = plan({.topology = make_tree({23}), .size_floats = 2.3e7, .collective = collective});
    ASSERT_EQ(answer.switches.size(), 1U);
    const SwitchChoice& root = answer.switches.front();
    if (!root.is_uneven) continue;
    EXPECT_EQ(plan_name(answer), "hcps:~" + factor_words(root.factors));
    const double whole = answer.priced->pipelined_cost(2.3e7, 1).total();
    EXPECT_NEAR(root.seconds(), whole, 1e-9 * whole) << to_string(collective);
    const auto chosen = std::find_if(root.candidates.begin(), root.candidates.end(), [&](const SwitchCandidate& c) {
      return c.is_uneven && c.factors == root.factors;
    });
    ASSERT_NE(chosen, root.candidates.end());
    EXPECT_NEAR(chosen->terms.total(), whole, 1e-9 * whole) << to_string(collective);
  }
  EXPECT_TRUE(plan({.topology = make_tree({23}), .size_floats = 2.3e7}).switches.front().is_uneven);
}

// Two switches that differ and are both called "fast" are named by their paths; two that are equal are one line.
TEST(PlanWords, NamesThatAreNotUniqueBecomePaths) {
  const auto network = [](int in_b) {
    const auto centre = [](const char* name, int servers) {
      return std::string(R"({"name":")") + name +
             R"(","bandwidth":"100Gbit/s","children":[{"name":"fast","bandwidth":"400Gbit/s","children":[{"repeat":)" +
             std::to_string(servers) + R"(,"bandwidth":"100Gbit/s"}]},{"name":"gate","bandwidth":"10Gbit/s"}]})";
    };
    return parse_topology(R"({"schema":"gar.topology/1","tree":{"name":"wan","children":[)" + centre("dcA", 4) + "," +
                              centre("dcB", in_b) + "]}}",
                          "centres");
  };
  for (const char* algorithm : {"gentree", "gentree+"}) {
    const auto names_in = [&](const Topology& topology) {
      std::vector<std::string> names;
      for (const SwitchChoice& s :
           plan({.topology = topology, .size_floats = 1e7, .algorithms = {parse_algorithm(algorithm)}}).switches) {
        if (s.name.find("fast") != std::string::npos) names.push_back(s.name);
      }
      return names;
    };
    EXPECT_EQ(names_in(network(3)), (std::vector<std::string>{"dcA/fast", "dcB/fast"})) << algorithm;
    EXPECT_EQ(names_in(network(4)), (std::vector<std::string>{"fast"})) << algorithm;
  }
}

TEST(Exchanges, ArePlannedForShortVectorsAndLeftOutWhereTheyCannotBe) {
  EXPECT_TRUE(has_halves(plan({.topology = builtin_topology("ss24"), .size_floats = 100}).plan));  // without mu
  PlanRequest request{.topology = with_mu({24}), .size_floats = 100};
  const PlanAnswer all = plan(request);
  EXPECT_FALSE(has_halves(all.plan));
  EXPECT_EQ(PlanIndex(all.plan).num_steps(), 1);
  EXPECT_TRUE(verify(all.plan).ok);
  request.model.exchanges = false;
  const PlanAnswer without = plan(request);
  EXPECT_TRUE(has_halves(without.plan));
  EXPECT_LT(all.seconds(), without.seconds());
  request.model.exchanges = true;
  request.collective = Collective::kAllGather;
  EXPECT_TRUE(verify(plan(request).plan).ok);
  request.collective = Collective::kAllReduce;
  request.policy = Policy::kRuntime;  // nobody says how a transport would gather
  EXPECT_FALSE(plan(request).plan.algorithm == "gather");
  request.algorithms = {parse_algorithm("recursive-doubling")};  // what was asked for is taken
  EXPECT_EQ(plan(request).plan.algorithm, "recursive-doubling");
  request.collective = Collective::kReduceScatter;
  EXPECT_THROW((void)plan(request), InvalidArgument);
  // Where cutting the vector pays, it is not short.
  EXPECT_TRUE(has_halves(plan({.topology = with_mu({24}), .size_floats = 1e7}).plan));
  EXPECT_TRUE(has_halves(plan({.topology = with_mu({16, 24}), .size_floats = 1e7}).plan));
}

// Racks that scatter, and an exchange between them.
TEST(Exchanges, StandAboveScatteringStages) {
  const Topology tree = with_mu({2, 8});
  bool has_mixed = false;
  for (double size = 1; size < 1e8; size *= 2) {
    const PlanAnswer answer = plan({.topology = tree, .size_floats = size});
    EXPECT_TRUE(verify(answer.plan).ok);
    if (has_halves(answer.plan)) continue;
    EXPECT_LT(answer.seconds(), plan({.topology = tree, .size_floats = size, .model = {.exchanges = false}}).seconds());
    const PlanIndex index(answer.plan);
    has_mixed = has_mixed || index.num_mirrored_steps() > 0;
  }
  EXPECT_TRUE(has_mixed);
}

}  // namespace
}  // namespace gar
