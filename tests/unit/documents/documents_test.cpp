// Documents: every answer of the library becomes JSON without the command line program.
#include "gar/documents.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "gar/algorithms.hpp"
#include "gar/plan_io.hpp"
#include "gar/profile_io.hpp"
#include "gar/version.hpp"

namespace gar {
namespace {

using Json = nlohmann::ordered_json;

/// A document that is one: it ends with a newline and says what it is.
Json parsed(const std::string& text, const std::string& schema) {
  EXPECT_TRUE(text.ends_with("}\n")) << text;
  Json document = Json::parse(text);
  EXPECT_EQ(document["gar_version"], std::string(version()));
  EXPECT_EQ(document["schema"], schema);
  return document;
}

VectorSize million() { return vector_size_of_count("count", "1e6", DataType::kFloat32); }

TEST(Documents, Topologies) {
  const Topology tree = make_tree({16, 24});
  const Json document = parsed(topology_document(tree), "gar.topo/1");
  EXPECT_EQ(document["num_servers"], 384);
  ASSERT_EQ(document["nodes"].size(), 3U);
  EXPECT_EQ(document["nodes"][0]["children"][0]["count"], 16);
  EXPECT_EQ(document["nodes"][1]["count"], 16);
  EXPECT_FALSE(document["nodes"][2].contains("children"));
  const Json check = parsed(topology_check_document(tree), "gar.topo-check/1");
  EXPECT_EQ(check["valid"], true);
  EXPECT_FALSE(check.contains("nodes"));
  EXPECT_EQ(parsed(topology_error_document("broken"), "gar.topo-check/1")["error"], "broken");
  const Json written =
      parsed(topology_written_document({.topology = tree, .format = "dot", .path = "net.dot", .text = "12345"}),
             "gar.topo-convert/1");
  EXPECT_EQ(written["bytes"], 5);
  EXPECT_FALSE(written.contains("content"));
}

TEST(Documents, NamesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(parsed(topology_error_document("no \xff"), "gar.topo-check/1")["error"], "no \xef\xbf\xbd");
}

TEST(Documents, Predictions) {
  const Topology star = make_tree({4});
  const PredictAnswer answer = predict({star, 1e6, {parse_algorithm("gentree+")}});
  const Json document = parsed(predict_document(star, million(), {}, answer), "gar.predict/1");
  EXPECT_EQ(document["best"], answer.results[0].algorithm());
  EXPECT_EQ(document["results"].size(), answer.results.size());
  EXPECT_FALSE(document["results"][0].contains("corrected_seconds"));
  EXPECT_TRUE(document["flips"]["best"].is_null());
  const SizeCorrection correction{0, 1e9, {1.5, 1.4, 1.6}};
  const Json corrected = parsed(predict_document(star, million(), {}, answer, correction), "gar.predict/1");
  EXPECT_EQ(corrected["results"][0]["corrected_seconds"], 1.5 * answer.results[0].seconds());
}

// What the library writes is what it reads: the plan, and the facts as notes.
TEST(Documents, PlansAreFilesThatCanBeRead) {
  const Topology tree = make_tree({4, 3});
  const PlanRequest request{.topology = tree, .size_floats = 1e6};
  const PlanAnswer answer = plan(request);
  const std::vector<StageCost> stages = answer.priced->critical_stages(1e6);
  std::stringstream plain;
  write_plan_document(request, answer, stages, PlanDetail::kPlain, plain);
  const Json document = parsed(plain.str(), "gar.plan/2");
  EXPECT_EQ(document["predicted_seconds"], answer.seconds());
  EXPECT_EQ(document["stages"].size(), stages.size());
  EXPECT_FALSE(document.contains("explain"));
  EXPECT_EQ(read_plan(plain, "plan.json"), answer.plan);
  std::stringstream explained;
  write_plan_document(request, answer, stages, PlanDetail::kExplained, explained);
  EXPECT_EQ(parsed(explained.str(), "gar.plan/2")["explain"]["compared"].size(),
            answer.asked.size() + answer.considered.size());
  EXPECT_EQ(read_plan(explained, "plan.json"), answer.plan);
}

TEST(Documents, DecisionTablesAndProofs) {
  const Topology star = make_tree({4});
  SwitchChoice choice;
  choice.name = "root";
  choice.algorithm = "cps";
  choice.factors = {4};
  Terms one_second;
  one_second.alpha = 1;
  const DecisionPoint first{.count = 1, .spec = parse_algorithm("cps"), .switches = {choice}, .terms = one_second};
  DecisionPoint last = first;
  last.count = 9;
  const Json table =
      parsed(plan_table_document(star, DataType::kFloat64, {{.first = first, .last = last}}), "gar.plan-table/1");
  EXPECT_EQ(table["dtype"], "float64");
  EXPECT_FALSE(table["rows"][0]["switches"][0].contains("terms"));
  const Plan plan = ring(4);
  const Json proof = parsed(verify_document(plan, verify(plan), "ring.json"), "gar.verify/1");
  EXPECT_EQ(proof["ok"], true);
  EXPECT_TRUE(proof["problem"].is_null());
  EXPECT_EQ(proof["volume_vectors"], 6);  // each of 4 ranks sends 2 * 3/4
}

SimulatedPlan simulated(const Topology& topology, const Plan& plan) {
  SimulatedPlan out;
  out.algorithm = plan.algorithm;
  out.predicted = PricedPlan(plan, topology).cost(1e6);
  out.simulation = simulate(plan, topology, 1e6);
  return out;
}

TEST(Documents, Simulations) {
  Scene scene{make_tree({4}), million(), {}, {}, false};
  scene.what_if.conditions = {parse_condition(Condition::Kind::kDegrade, "degrade", "server0.up=0.5"),
                              parse_condition(Condition::Kind::kSlow, "slow", "1=2"),
                              parse_condition(Condition::Kind::kFail, "fail", "2.uplink")};
  scene.what_if.jitter = 0.1;
  const std::vector<SimulatedPlan> plans{simulated(scene.topology, cps(4)), simulated(scene.topology, ring(4))};
  const Json one = parsed(simulate_document(scene, {plans[0]}, true, {.max_links = 2}), "gar.simulate/2");
  EXPECT_EQ(one["seconds"], plans[0].simulation.seconds);
  EXPECT_EQ(one["links"].size(), 2U);
  EXPECT_EQ(one["results"].size(), 1U);
  EXPECT_EQ(one["results"][0]["seconds"], one["seconds"]);
  ASSERT_EQ(one["what_if"].size(), 4U);
  EXPECT_EQ(one["what_if"][0], Json({{"kind", "degrade"}, {"name", "server0"}, {"link", "up"}, {"value", 0.5}}));
  EXPECT_EQ(one["what_if"][1], Json({{"kind", "slow"}, {"name", "1"}, {"value", 2.0}}));
  EXPECT_EQ(one["what_if"][2], Json({{"kind", "fail"}, {"name", "2"}, {"link", "uplink"}}));
  const Json several = parsed(simulate_document(scene, plans, true, {}), "gar.simulate/2");
  EXPECT_EQ(several["best"], "cps");
  EXPECT_EQ(several["results"].size(), 2U);
  EXPECT_EQ(several["algorithm"], "cps");
  EXPECT_EQ(several["seconds"], several["results"][0]["seconds"]);
  for (const auto& [name, value] : several.items()) EXPECT_TRUE(one.contains(name)) << name;
  const Json about = Json::parse(trace_summary(scene, plans[0], "out of cables"));
  EXPECT_EQ(about["schema"], "gar.trace/1");
  EXPECT_EQ(about["error"], "out of cables");
  EXPECT_EQ(trace_summary(scene, plans[0]).find('\n'), std::string::npos);
}

TEST(Documents, Demonstrations) {
  DemoAnswer answer;
  answer.where = "processes";
  answer.num_ranks = 4;
  answer.seconds = 2;
  const Json alone = parsed(demo_document(answer), "gar.demo/1");
  EXPECT_TRUE(alone["speed"].is_null());
  EXPECT_TRUE(alone["other_seconds"].is_null());
  answer.other = "Open MPI 4.1.4";
  answer.other_seconds = 5;
  EXPECT_EQ(parsed(demo_document(answer), "gar.demo/1")["speed"], 2.5);
}

// Predicted 1 and 2 seconds; simulated 3 and 2: the model's choice takes half as long again as the best.
TEST(Documents, Comparisons) {
  ComparedPlan cps;
  cps.algorithm = "cps";
  cps.predicted.beta = 1;
  cps.simulated.seconds = 3;
  ComparedPlan ring;
  ring.algorithm = "ring";
  ring.predicted.beta = 2;
  ring.simulated.seconds = 2;
  const Comparison comparison{{make_tree({4}), million(), {}, {}, false}, {{million(), {ring, cps}, 1}}, true};
  const Json document = parsed(compare_document(comparison), "gar.compare/1");
  EXPECT_EQ(document["choices"][0]["model_best"], "cps");
  EXPECT_EQ(document["choices"][0]["simulated_best"], "ring");
  EXPECT_EQ(document["choices"][0]["regret"], 0.5);
  EXPECT_EQ(document["results"][1]["difference"], 2.0);
  EXPECT_EQ(document["max_regret"], 0.5);
  EXPECT_EQ(document["mean_difference"], 1.0);  // of 0 and 2
}

TEST(Documents, ProfilesAndDiagnoses) {
  const std::string june = GAR_SOURCE_DIR "/data/profiles/june.json";
  const Profile profile = read_profile_file(june);
  const Json shown = parsed(profile_document(profile, june), "gar.profile-show/1");
  EXPECT_EQ(shown["file"], june);
  EXPECT_EQ(shown["gamma"]["identified"], profile.gamma.is_identified);
  EXPECT_EQ(shown["residuals"]["count"], profile.residuals.size());
  EXPECT_EQ(shown["residuals"]["network"]["count"], parts_of(profile.residuals).network.size());
  EXPECT_EQ(shown["residuals"]["reductions"]["count"], parts_of(profile.residuals).reductions.size());
  const Json same = parsed(profile_diff_document(compare_profiles(profile, profile), "a", "b"), "gar.profile-diff/1");
  EXPECT_EQ(same["num_significant"], 0);

  Observation observation;
  observation.algorithm = parse_algorithm("cps");
  observation.servers = {0, 1, 2};
  observation.size_floats = 1e6;
  observation.seconds = {1};
  const std::vector<Observation> observations{observation};
  const Results results{"OSU", 3, {{.line = 1, .bytes = 4e6, .seconds = 1, .algorithm = "", .label = ""}}};
  const Diagnosis diagnosis = diagnose(profile, observations);
  const Json document = parsed(diagnose_document({.profile_file = june,
                                                  .results_file = "osu.txt",
                                                  .results = results,
                                                  .observations = observations,
                                                  .num_ranks = 3,
                                                  .diagnosis = diagnosis}),
                               "gar.diagnose/1");
  EXPECT_EQ(document["rows"][0]["is_assumed"], true);
  EXPECT_EQ(document["rows"][0]["verdict"], to_string(verdict_of(diagnosis, 0)));
  const Measurements measurements{profile.topology, 0, observations, {}, {}};
  const Json fitted = parsed(fit_document({profile, measurements}), "gar.fit/1");
  EXPECT_EQ(fitted["profile"]["schema"], "gar.profile/2");
  EXPECT_TRUE(fitted["validation_cells"].empty());
}

TEST(FitReport, TellsReductionsFromTheNetwork) {
  Observation reduction;
  reduction.kind = ObservationKind::kReduction;
  reduction.servers = {0};
  reduction.fan_in = 4;
  reduction.size_floats = 1e4;
  Observation mesh;
  mesh.collective = Collective::kAllGather;
  mesh.algorithm = parse_algorithm("cps");
  mesh.servers = {0, 1};
  mesh.size_floats = 1e4;
  Observation gather = mesh;
  gather.kind = ObservationKind::kGather;
  const ResidualParts parts =
      parts_of({{describe(mesh), 1, 1}, {describe(reduction), 1, 2}, {describe(gather), 1, 1}, {"", 1, 1}});
  ASSERT_EQ(parts.network.size(), 3U);
  EXPECT_EQ(parts.network[1].what, describe(gather));
  ASSERT_EQ(parts.reductions.size(), 1U);
  EXPECT_EQ(parts.reductions[0].fitted_s, 2);
}

TEST(FitReport, Verdicts) {
  EXPECT_EQ(verdict_of({"x", 1.0, 1, 1}, 0.1), Verdict::kNormal);
  EXPECT_EQ(verdict_of({"x", 1.2, 1, 1}, 0.1), Verdict::kSlow);
  EXPECT_EQ(verdict_of({"x", 0.8, 1, 1}, 0.1), Verdict::kFast);
}

}  // namespace
}  // namespace gar
