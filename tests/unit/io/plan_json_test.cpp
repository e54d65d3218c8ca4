// Plan files: what is written is read back, and what is wrong is named.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/plan_io.hpp"
#include "gar/verify.hpp"
#include "io/plan/json.hpp"
#include "support/explicit_plan.hpp"
#include "support/temp_folder.hpp"

namespace gar {
namespace {

std::string text_of(const Plan& plan) {
  std::ostringstream out;
  write_plan(plan, out);
  return out.str();
}

Plan parse(const std::string& text) {
  std::istringstream in(text);
  return read_plan(in, "plan.json");
}

/// The error message of a text that is not a plan.
std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const ParseError& error) {
    return error.what();
  }
  return "no error";
}

#define EXPECT_REFUSED(text, part) EXPECT_NE(error_of(text).find(part), std::string::npos) << error_of(text)

/// A document of two ranks with these fields in place of the sub-plans.
std::string document(const std::string& fields) {
  return R"({"schema":"gar.plan/2","algorithm":"x","collective":"allreduce","num_ranks":2,"num_units":4,)" + fields +
         "}";
}
std::string with_subplan(const std::string& subplan) { return document(R"("root":0,"subplans":[)" + subplan + "]"); }
std::string with_programs(const std::string& programs) { return document("\"programs\":" + programs); }

TEST(PlanJson, SubPlansComeBack) {
  for (Plan plan : {ring(7), rhd(11), cps(24), hcps(24, {8, 3}), hierarchical_ring(12, {3, 4}), uneven_hcps(23, {5, 5}),
                    acps({4, 3, 1}), reduce_broadcast(5), recursive_doubling(11), recursive_multiplying(9, {3, 3}),
                    gather(4), binomial(7), as_reduce_scatter(hcps(12, {4, 3})), as_all_gather(rhd(6))}) {
    plan.count = 12'345;
    EXPECT_EQ(parse(text_of(plan)), plan) << text_of(plan);
  }
}

TEST(PlanJson, ProgramsComeBack) {
  for (const Plan& plan : {ring(5), cps(6), acps({4, 3, 1}), as_all_gather(rhd(6))}) {
    const Plan explicit_plan = make_explicit(plan);
    EXPECT_EQ(parse(text_of(explicit_plan)), explicit_plan);
  }
  const Plan idle = test::idle_plan(3, 1);
  EXPECT_EQ(parse(text_of(idle)), idle);
}

TEST(PlanJson, OneRankComesBack) {
  EXPECT_EQ(parse(text_of(cps(1))), cps(1));
  EXPECT_EQ(parse(text_of(test::idle_plan(1, 3))), test::idle_plan(1, 3));
}

TEST(PlanJson, LabelsAreEscaped) {
  Plan plan = cps(2);
  plan.algorithm = "a \"quoted\"\nname \\ \x01";
  plan.subplans[0].label = "caf\xc3\xa9";
  Plan shown = plan;  // control characters are made visible
  shown.algorithm = R"(a "quoted"\x0aname \ \x01)";
  EXPECT_EQ(parse(text_of(plan)), shown);
  plan.subplans[0].label = "broken \xff text";  // not UTF-8: written with a replacement, still a valid file
  EXPECT_NO_THROW(parse(text_of(plan)));
}

TEST(PlanJson, FileFollowsTheDistinctSubPlans) {
  EXPECT_LT(text_of(cps(100'000'000)).size(), 300U);
  EXPECT_LT(text_of(uneven_hcps(509, {23, 23})).size(), 3'000'000U);
}

TEST(PlanJson, FieldsInAnyOrder) {
  const Plan plan = parse(
      R"({"subplans":[{"stages":[["ring",1,3]],"children":[[-1,3]]}],"num_units":3,"root":0,"num_ranks":3,
          "schema":"gar.plan/2"})");
  EXPECT_EQ(plan.num_ranks, 3);
  EXPECT_EQ(plan.collective, Collective::kAllReduce);
  EXPECT_TRUE(verify(plan).ok);
}

// Files of version 1 spell the collectives with underscores.
TEST(PlanJson, OlderFilesAreRead) {
  const Plan scatter = as_reduce_scatter(cps(3));
  const Plan gather = as_all_gather(cps(3));
  EXPECT_NE(text_of(scatter).find(R"("collective":"reduce-scatter")"), std::string::npos);
  EXPECT_NE(text_of(gather).find(R"("collective":"allgather")"), std::string::npos);
  const auto older = [](std::string text, const std::string& ours, const std::string& theirs) {
    text.replace(text.find("gar.plan/2"), 10, "gar.plan/1");
    return text.replace(text.find(ours), ours.size(), theirs);
  };
  EXPECT_EQ(parse(older(text_of(scatter), "reduce-scatter", "reduce_scatter")), scatter);
  EXPECT_EQ(parse(older(text_of(gather), "allgather", "all_gather")), gather);
}

// Exchanges came with version 3, which is written only where there are some: older programs read all other plans.
TEST(PlanJson, OnlyExchangesNeedTheNewestVersion) {
  EXPECT_NE(text_of(recursive_doubling(4)).find("gar.plan/3"), std::string::npos);
  for (const Plan& plan : {rhd(4), binomial(4), make_explicit(recursive_doubling(4))}) {
    EXPECT_NE(text_of(plan).find("gar.plan/2"), std::string::npos);
  }
  EXPECT_REFUSED(with_subplan(R"({"children":[[-1,2]],"stages":[["swap",1,2]]})"),
                 R"(expected ["direct", stride, radix], ["ring", ...], ["exchange", ...] or {"place")");
}

// What describes a plan without being part of it is written by the library, and skipped when the plan is read.
TEST(PlanJson, NotesAreWrittenAndSkipped) {
  std::ostringstream out;
  const std::vector<PlanNote> notes{{"topology", "\"ss24\""},
                                    {"predicted_seconds", "1.5"},
                                    {"terms", "{}"},
                                    {"lower_bound_seconds", "null"},
                                    {"switches", R"([{"name":"root","factors":[3],"seconds":1.5}])"},
                                    {"stages", R"([{"terms":{"alpha":1e-3}},[[]],true])"},
                                    {"explain", "\"why\""}};
  write_plan(cps(3), out, notes);
  EXPECT_EQ(parse(out.str()), cps(3));
  for (const PlanNote& note : notes) {
    const std::string line = fmt::format("\"{}\":{}", note.field, note.json);
    EXPECT_NE(out.str().find(line), std::string::npos) << line << "\n" << out.str();
  }
  EXPECT_THROW(write_plan(cps(3), out, std::vector<PlanNote>{{"weather", "\"fine\""}}), InvalidArgument);
}

// As gar 0.1 wrote them: notes in front of the plan.
TEST(PlanJson, NotesMayStandAnywhere) {
  std::string text = text_of(cps(3));
  text.replace(text.find('{'), 1, R"({"explain":[{"why":[1.5,null]}],"terms":{"alpha":1e-3},)");
  EXPECT_EQ(parse(text), cps(3));
}

TEST(PlanJson, NotJson) {
  EXPECT_REFUSED("", "plan.json: not valid JSON at byte");
  EXPECT_REFUSED("garbage", "not valid JSON");
  EXPECT_REFUSED(std::string("\0\0\0", 3), "not valid JSON");
  EXPECT_REFUSED("{\"schema\":\"gar.plan/2\"", "unexpected end of input");
  EXPECT_REFUSED(text_of(cps(2)) + "x", "not valid JSON");
  EXPECT_REFUSED("[]", "document: is a list; expected an object with \"schema\": \"gar.plan/2\"");
  EXPECT_REFUSED("3", "document: is 3; expected an object");
  EXPECT_REFUSED("null", "document: is null");
}

TEST(PlanJson, EveryTruncationIsRefused) {
  for (const Plan& plan : {acps({2, 1}), make_explicit(ring(3))}) {
    const std::string text = text_of(plan);
    for (std::size_t size = 0; size + 2 < text.size(); ++size)
      EXPECT_NE(error_of(text.substr(0, size)), "no error") << size;
  }
}

TEST(PlanJson, WrongVersionOrKind) {
  EXPECT_REFUSED(R"({"schema":"gar.plan/4","new":1})",
                 "schema: is \"gar.plan/4\"; expected \"gar.plan/3\", \"gar.plan/2\" or \"gar.plan/1\"");
  EXPECT_REFUSED(R"({"schema":"gar.topology/1"})", "schema: is \"gar.topology/1\"");
  EXPECT_REFUSED(R"({"schema":1})", "schema: is an integer; expected \"gar.plan/3\"");
  EXPECT_REFUSED(R"({"num_ranks":1,"num_units":1})", "schema: is missing");
  EXPECT_REFUSED(R"({"schema":"gar.plan/2","num_units":1})", "num_ranks: is missing");
  EXPECT_REFUSED(R"({"schema":"gar.plan/2","num_ranks":1})", "num_units: is missing");
}

TEST(PlanJson, UnknownAndRepeatedFields) {
  EXPECT_REFUSED(document(R"("nodes":3)"), "unknown field \"nodes\"; expected schema, algorithm");
  EXPECT_REFUSED(document(R"("num_ranks":2)"), "num_ranks: appears twice");
  EXPECT_REFUSED(with_subplan(R"({"children":[[-1,2]],"kids":[]})"),
                 "subplans[0]: unknown field \"kids\"; expected label, children, stages");
  EXPECT_REFUSED(with_subplan(R"({"children":[[-1,2]],"stages":[{"move":[]}]})"),
                 "unknown field \"move\"; expected place");
}

TEST(PlanJson, HeaderValues) {
  const auto with_ranks = [](const std::string& n) {
    return R"({"schema":"gar.plan/2","num_units":1,"num_ranks":)" + n + "}";
  };
  EXPECT_REFUSED(with_ranks("0"), "num_ranks: is 0; expected 1 to 100000000");
  EXPECT_REFUSED(with_ranks("-3"), "num_ranks: is -3; expected 1 to 100000000");
  EXPECT_REFUSED(with_ranks("1000000000"), "num_ranks: is 1000000000; expected 1 to 100000000");
  EXPECT_REFUSED(with_ranks("99999999999999999999"), "num_ranks: is 99999999999999999999; expected an integer");
  EXPECT_REFUSED(with_ranks("18446744073709551615"), "num_ranks: is 18446744073709551615; expected an integer");
  EXPECT_REFUSED(with_ranks("1e999"), "not valid JSON");
  EXPECT_REFUSED(with_ranks("2.5"), "num_ranks: is 2.5; expected an integer");
  EXPECT_REFUSED(with_ranks("NaN"), "not valid JSON");
  EXPECT_REFUSED(with_ranks("\"2\""), "num_ranks: is \"2\"; expected an integer");
  EXPECT_REFUSED(with_ranks("[2]"), "num_ranks: is a list; expected an integer");
  EXPECT_REFUSED(with_ranks("{}"), "num_ranks: is an object; expected an integer");
  EXPECT_REFUSED(with_ranks("2"), "subplans: is missing or empty; expected");
  EXPECT_REFUSED(document(R"("count":-1)"), "count: is -1; expected 0 to");
  EXPECT_REFUSED(R"({"schema":"gar.plan/2","collective":"broadcast"})",
                 R"(collective: is "broadcast"; expected "allreduce", "reduce-scatter" or "allgather")");
}

TEST(PlanJson, SubPlans) {
  EXPECT_REFUSED(with_subplan("3"), "subplans[0]: is 3; expected a sub-plan");
  EXPECT_REFUSED(with_subplan("{}"), "subplans[0]: has no children");
  EXPECT_REFUSED(with_subplan(R"({"children":[[0,2]]})"), "subplans[0].children[0][0]: is 0; expected -1 to -1");
  EXPECT_REFUSED(with_subplan(R"({"children":[[-2,2]]})"), "subplans[0].children[0][0]: is -2");
  EXPECT_REFUSED(with_subplan(R"({"children":[[-1,0]]})"), "subplans[0].children[0][1]: is 0; expected 1 to");
  EXPECT_REFUSED(with_subplan(R"({"children":[[-1]]})"), "subplans[0].children[0]: is not a pair of integers");
  EXPECT_REFUSED(with_subplan(R"({"children":[[-1,2,3]]})"), "subplans[0].children[0][2]: is a list of more than two");
  EXPECT_REFUSED(with_subplan(R"({"children":[-1]})"), "subplans[0].children[0]: is -1; expected [sub-plan, count]");
  EXPECT_REFUSED(with_subplan(R"({"children":[[-1,3]]})"), "num_ranks: is 2, but the root sub-plan has 3 ranks");
  EXPECT_REFUSED(with_subplan(R"({"children":[[-1,100000000],[-1,1]]})"), "subplans[0]: has more ranks than 100000000");
  EXPECT_REFUSED(document(R"("subplans":[{"children":[[-1,2]]}])"), "root: is missing");
  EXPECT_REFUSED(document(R"("root":1,"subplans":[{"children":[[-1,2]]}])"), "root: is 1; expected -1 to 0");
  EXPECT_REFUSED(document(R"("root":0,"subplans":[])"), "subplans: is missing or empty");
  EXPECT_REFUSED(R"({"schema":"gar.plan/2","num_ranks":1,"num_units":1,"root":0})", "root: is 0, but there are no");
}

TEST(PlanJson, Stages) {
  const auto with_stage = [](const std::string& stage) {
    return with_subplan(R"({"children":[[-1,2]],"stages":[)" + stage + "]}");
  };
  EXPECT_REFUSED(with_stage(R"(["sideways",1,2])"), "subplans[0].stages[0][0]: is \"sideways\"; expected [\"direct\"");
  EXPECT_REFUSED(with_stage(R"(["direct",0,2])"), "subplans[0].stages[0][1]: is 0; expected 1 to");
  EXPECT_REFUSED(with_stage(R"(["direct",1,99999999999])"), "subplans[0].stages[0][2]: is 99999999999; expected 1 to");
  EXPECT_REFUSED(with_stage(R"(["direct",1])"), "subplans[0].stages[0]: does not have three elements");
  EXPECT_REFUSED(with_stage(R"([1,1,2])"), "subplans[0].stages[0][0]: is 1; expected [\"direct\"");
  EXPECT_REFUSED(with_stage(R"(["direct",1,2,3])"), "subplans[0].stages[0][3]: is 3");
  EXPECT_REFUSED(with_stage("{}"), "subplans[0].stages[0]: has no \"place\"");
  EXPECT_REFUSED(with_stage(R"({"place":[[0,4]]})"), "subplans[0].stages[0].place[0]: does not have three elements");
  EXPECT_REFUSED(with_stage(R"({"place":[[0,4,2]]})"), "places units [0,4) on rank 2; expected 0 to 1");
  EXPECT_REFUSED(with_stage(R"({"place":[[0,5,1]]})"), "places the units [0,5); expected within [0,4)");
  EXPECT_REFUSED(with_stage(R"({"place":[[3,2,1]]})"), "places the units [3,2)");
}

TEST(PlanJson, Programs) {
  EXPECT_REFUSED(with_programs("[[]]"), "programs: has 1 programs; expected num_ranks, which is 2");
  EXPECT_REFUSED(with_programs("[3,[]]"), "programs[0]: is 3; expected a list of steps");
  EXPECT_REFUSED(with_programs("[[],[7]]"), "programs[1][0]: is 7; expected [step number, list of sends");
  EXPECT_REFUSED(with_programs("[[[-1,[],[]]],[]]"), "programs[0][0][0]: is -1; expected 0 to");
  EXPECT_REFUSED(with_programs("[[[0,[]]],[]]"), "programs[0][0]: does not have three elements");
  EXPECT_REFUSED(with_programs("[[[0,[],[],[]]],[]]"), "programs[0][0][3]: is a list");
  EXPECT_REFUSED(with_programs("[[[[],[],0]],[]]"), "programs[0][0][0]: is a list");
  EXPECT_REFUSED(with_programs("[[[0,[1,0],[]]],[]]"), "programs[0][0][1]: ends in the middle of a message");
  EXPECT_REFUSED(with_programs("[[[0,[],[1,0,2]]],[]]"), "programs[0][0][2]: ends in the middle of a message");
  EXPECT_REFUSED(with_programs("[[[0,[],[1,0,2,2]]],[]]"), "programs[0][0][2][3]: is 2; expected 0 to 1");
  EXPECT_REFUSED(with_programs("[[[0,[-1,0,2],[]]],[]]"), "programs[0][0][1][0]: is -1; expected 0 to");
  EXPECT_REFUSED(with_programs("[[[0,[2,0,2],[]]],[]]"),
                 "programs[0][0][1]: message 0 has the peer 2; expected 0 to 1");
  EXPECT_REFUSED(with_programs("[[[0,[],[1,0,5,1]]],[]]"),
                 "programs[0][0][2]: message 0 has the units [0,5); expected within [0,4)");
  EXPECT_REFUSED(with_programs("[[[0,[1,true,2],[]]],[]]"), "programs[0][0][1][1]: is true; expected integers: peer");
  EXPECT_REFUSED(document(R"("root":0,"subplans":[{"children":[[-1,2]]}],"programs":[[],[]])"),
                 "programs: is there as well as \"subplans\"");
}

TEST(PlanJson, DeepOrEndlessTextEndsEarly) {
  const std::string deep(1'000'000, '[');
  EXPECT_REFUSED(deep, "document: is a list");
  EXPECT_REFUSED("{\"stages\":" + deep, "nested deeper than 64 levels");
  EXPECT_REFUSED("{\"schema\":\"" + std::string(3'000'000, 'a'), "a string is longer than");
  EXPECT_REFUSED("{\"num_ranks\":" + std::string(3'000'000, '1'), "a number or word is longer than");
  std::string chain = "{\"children\":[[-1,2]]}";
  for (int i = 0; i < 70; ++i) chain += fmt::format(",{{\"children\":[[{},1]]}}", i);
  EXPECT_REFUSED(document(R"("root":70,"subplans":[)" + chain + "]"), "nested 65 sub-plans deep; expected up to 64");
}

TEST(PlanJson, Files) {
  const auto error = [](const std::string& path) -> std::string {
    try {
      read_plan_file(path);
    } catch (const ParseError& e) {
      return e.what();
    }
    return "no error";
  };
  const test::TempFolder temporary;
  const std::string folder = temporary.path();
  EXPECT_EQ(error(folder + "/no_such_plan.json"),
            folder + "/no_such_plan.json: there is no such file; expected a plan file");
  EXPECT_NE(error(folder).find("is a directory"), std::string::npos);
  const std::string path = folder + "/plan.json";
  std::ofstream(path) << text_of(hcps(6, {3, 2}));
  EXPECT_EQ(read_plan_file(path), hcps(6, {3, 2}));
}

// The examples of docs/formats-plan.md are plans, and right ones.
TEST(PlanJson, ExamplesOfTheDocument) {
  std::ifstream in(std::string(GAR_SOURCE_DIR) + "/docs/formats-plan.md");
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string fence = "```json\n";
  int num_examples = 0;
  for (std::size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at + 1)) {
    const std::size_t begin = at + fence.size();
    const Plan plan = parse(text.substr(begin, text.find("```", begin) - begin));
    EXPECT_TRUE(verify(plan).ok) << plan.algorithm << ": " << verify(plan).problem;
    ++num_examples;
  }
  EXPECT_EQ(num_examples, 4);
}

}  // namespace
}  // namespace gar
