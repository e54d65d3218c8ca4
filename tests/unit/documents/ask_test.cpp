// Questions as JSON text: every one has an answer, which is the document that the library makes, or says what is wrong.
#include "gar/ask.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "gar/documents.hpp"
#include "gar/predict.hpp"

namespace gar {
namespace {

using AskJson = nlohmann::ordered_json;

AskJson asked(const AskJson& question, const std::string& schema) {
  const AskJson document = AskJson::parse(answer(question.dump()));
  EXPECT_EQ(document["schema"], schema) << document.dump(2).substr(0, 1000);
  return document;
}

/// What is wrong with a question.
std::string asked_wrongly(const AskJson& question) { return asked(question, "gar.error/1").value("error", ""); }

std::string golden(const std::string& name) {
  std::ifstream file("tests/golden/data/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Ask, PredictIsTheSameDocument) {
  const Topology tree = make_tree({4, 6});
  const VectorSize size = vector_size_of_count("count", "1e6", DataType::kFloat32);
  const auto all = parse_algorithm_list("algo", "all");
  const std::string expected = predict_document(tree, size, {}, predict({tree, size.floats(), all}));
  EXPECT_EQ(answer(R"({"ask": "predict", "topology": "tree:4x6", "count": "1e6"})"), expected);
}

TEST(Ask, WordsComeWhenTheyAreAskedFor) {
  const AskJson document =
      asked({{"ask", "predict"}, {"topology", "tree:4x6"}, {"size", "4MB"}, {"words", true}}, "gar.predict/1");
  EXPECT_GE(document["words"]["times_bound"], 1.0);
  EXPECT_NE(document["words"]["why"].get<std::string>().find("times as fast") == std::string::npos &&
                document["words"]["why"].get<std::string>().find("x as fast") == std::string::npos,
            true);
  EXPECT_NE(document["words"]["runner_up"], document["best"]);
}

// What is said at once must not be taken back when the rest has been found.
TEST(Ask, AQuickAnswerLacksTheFlipsAlone) {
  int num_in_chunks = 0;
  for (const char* network : {"star:1",
                              "star:2",
                              "star:5",
                              "star:13",
                              "star:24",
                              "star:40",
                              "star:12@100Gbit/s,2us",
                              "tree:2x2",
                              "tree:2x4",
                              "tree:3x5",
                              "tree:4x6",
                              "tree:5x4",
                              "tree:2x16",
                              "tree:2x2x3",
                              "leafspine:2x2x3",
                              "fattree:4",
                              "ss24",
                              "one-slow-link",
                              "seven-servers",
                              "mixed-fleet"}) {
    for (const char* size : {"4kB", "1MB", "64MB"}) {
      AskJson question{{"ask", "predict"}, {"topology", network}, {"size", size}, {"words", true}};
      AskJson whole = asked(question, "gar.predict/1");
      question["quick"] = true;
      AskJson quick = asked(question, "gar.predict/1");
      EXPECT_EQ(quick["flips"]["best"], nullptr);
      for (AskJson* document : {&whole, &quick}) {
        document->erase("flips");
        (*document)["words"].erase("by_size");
        (*document)["words"].erase("by_servers");
      }
      EXPECT_EQ(quick.dump(1), whole.dump(1)) << network << ", " << size;
      // What is compared is the faster one of both ways.
      ASSERT_EQ(quick["words"]["rows"].size(), quick["results"].size());
      for (std::size_t i = 0; i < quick["results"].size(); ++i) {
        const AskJson& result = quick["results"][i];
        const AskJson& row = quick["words"]["rows"][i];
        const double in_one_piece = result["whole_seconds"];
        const double in_chunks = result["chunked_seconds"];
        EXPECT_EQ(row["seconds"].get<double>(), std::min(in_one_piece, in_chunks));
        EXPECT_EQ(row["chunks"], in_chunks < in_one_piece ? result["chunks"] : AskJson(1));
        num_in_chunks += row["chunks"] > 1 ? 1 : 0;
      }
      EXPECT_EQ(quick["words"]["best_seconds"], quick["words"]["rows"][0]["seconds"]);
    }
  }
  EXPECT_GT(num_in_chunks, 20) << "this test compares nothing";
}

// Under (alpha, beta, gamma) memory access costs nothing, so it is in no limit either.
TEST(Ask, TheLimitOfACurveIsThatOfItsModel) {
  for (const char* model : {"genmodel", "paper", "abc"}) {
    const AskJson curve =
        asked({{"ask", "curve"}, {"topology", "star:2"}, {"counts", {"1e8"}}, {"model", model}}, "gar.curve/1");
    const AskJson point =
        asked({{"ask", "predict"}, {"topology", "star:2"}, {"count", "1e8"}, {"model", model}}, "gar.predict/1");
    EXPECT_EQ(curve["rows"][0]["lower_bound_seconds"], point["lower_bound_seconds"]) << model;
  }
}

TEST(Ask, ACurveHasTheBestFirst) {
  const AskJson document = asked({{"ask", "curve"}, {"topology", "star:6"}, {"counts", {"100", "1e8"}}}, "gar.curve/1");
  ASSERT_EQ(document["rows"].size(), 2U);
  for (const AskJson& row : document["rows"]) {
    for (std::size_t i = 1; i < row["results"].size(); ++i) {
      EXPECT_LE(row["results"][i - 1]["seconds"], row["results"][i]["seconds"]);
    }
    EXPECT_LE(row["lower_bound_seconds"].get<double>(), row["results"][0]["seconds"].get<double>() * (1 + 1e-9));
  }
}

TEST(Ask, RegretOfALibrarysChoice) {
  const AskJson document = asked({{"ask", "heat"},
                                  {"topology", "star:12"},
                                  {"counts", {"100", "1e8"}},
                                  {"library", "openmpi"},
                                  {"servers_per_switch", 7}},
                                 "gar.heat/1");
  EXPECT_EQ(document["num_ranks"], 7);
  EXPECT_EQ(document["rows"][0]["default"], "recursive-doubling");
  EXPECT_EQ(document["rows"][1]["default"], "ring");
  for (const AskJson& row : document["rows"]) EXPECT_GE(row["regret"], 0.0);
  EXPECT_NE(asked_wrongly({{"ask", "heat"},
                           {"topology", "mixed-fleet"},
                           {"counts", {"1"}},
                           {"library", "mpich"},
                           {"servers_per_switch", 3}})
                .find("differ"),
            std::string::npos);
}

TEST(Ask, AFilmHasLinksLoadsAndMessages) {
  const AskJson document =
      asked({{"ask", "movie"}, {"topology", "star:4"}, {"count", "1e6"}, {"algo", "cps"}, {"engine", "flows"}},
            "gar.movie/1");
  EXPECT_EQ(document["links"].size(), 8U);
  EXPECT_EQ(document["flows"].size(), 24U);
  EXPECT_TRUE(document["recorded_all"]);
  EXPECT_FALSE(document["hops"].empty());
  EXPECT_EQ(document["links"][0]["incast_threshold"], 9);
  const AskJson cut = asked(
      {{"ask", "movie"}, {"topology", "star:4"}, {"count", "1e6"}, {"algo", "cps"}, {"engine", "flows"}, {"events", 3}},
      "gar.movie/1");
  EXPECT_FALSE(cut["recorded_all"]);
  EXPECT_EQ(cut["flows"].size(), 3U);
}

TEST(Ask, APlanIsProved) {
  const std::string plan = answer(R"({"ask": "plan", "topology": "star:6", "count": "1e6"})");
  EXPECT_TRUE(asked({{"ask", "verify"}, {"plan", plan}, {"name", "p"}}, "gar.verify/1")["ok"]);
  EXPECT_GT(asked({{"ask", "simulate"}, {"topology", "star:6"}, {"count", "1e6"}, {"plan", plan}},
                  "gar.simulate/2")["seconds"],
            0.0);
  EXPECT_NE(
      asked_wrongly({{"ask", "simulate"}, {"topology", "star:5"}, {"count", "1e6"}, {"plan", plan}}).find("5 servers"),
      std::string::npos);
}

TEST(Ask, FilesAreRecognised) {
  const auto kind = [](const std::string& text) {
    return asked({{"ask", "inspect"}, {"text", text}, {"name", "f"}}, "gar.inspect/1")["kind"];
  };
  EXPECT_EQ(kind(golden("profile.json")), "profile");
  EXPECT_EQ(kind(golden("nccl.txt")), "results");
  EXPECT_EQ(kind(golden("osu.txt")), "results");
  EXPECT_EQ(kind(answer(R"({"ask": "plan", "topology": "star:6", "count": "1e6"})")), "plan");
  const AskJson network = asked({{"ask", "network"}, {"topology", "tree:2x3"}}, "gar.network/1");
  EXPECT_EQ(kind(network["network"]), "topology");
  EXPECT_NE(asked_wrongly({{"ask", "inspect"}, {"text", R"({"schema": "gar.verify/1"})"}}).find("expected"),
            std::string::npos);
  EXPECT_NE(asked_wrongly({{"ask", "inspect"}, {"text", " \n"}, {"name", "x"}}).find("x: is empty"), std::string::npos);
}

TEST(Ask, ResultsAreJudged) {
  const std::string results = golden("nccl.txt");
  EXPECT_FALSE(asked({{"ask", "diagnose"}, {"results", results}, {"profile", golden("profile.json")}},
                     "gar.diagnose/1")["is_normal"]);
  EXPECT_GT(
      asked({{"ask", "diagnose"}, {"results", results}, {"topology", "star:4"}}, "gar.judge/1")["rows"][0]["ratio"],
      0.0);
  EXPECT_NE(asked_wrongly({{"ask", "diagnose"}, {"results", results}, {"topology", "star:9"}}).find("9 servers"),
            std::string::npos);
}

TEST(Ask, LogsOfNcclAreExplained) {
  const AskJson log =
      asked({{"ask", "inspect"}, {"text", golden("../../../data/nccl/two-hosts.log")}}, "gar.inspect/1");
  EXPECT_EQ(log["kind"], "nccl-log");
  EXPECT_TRUE(log["findings"][0]["problem"]);
  EXPECT_EQ(log["nccl"]["schema"], "gar.nccl/1");
  EXPECT_EQ(log["nccl"]["summary"], log["words"][0]);
  EXPECT_EQ(log["nccl"]["links"].size(), 2U);
  EXPECT_EQ(log["nccl"]["choices"].size(), 3U);
  EXPECT_EQ(log["topology"], "tree:2x2@48Gbit/s+9.6Gbit/s");
  EXPECT_EQ(asked({{"ask", "network"}, {"topology", log["topology"]}}, "gar.network/1")["num_servers"], 4);
  const AskJson mixed = asked({{"ask", "inspect"}, {"text", golden("nccl_mixed.txt")}}, "gar.inspect/1");
  EXPECT_EQ(mixed["kind"], "results");
  EXPECT_EQ(mixed["rows"].size(), 6U);
  EXPECT_EQ(mixed["topology"], "tree:2x2@720Gbit/s+384Gbit/s");
  EXPECT_EQ(mixed["nccl"]["num_ranks"], 4);
  EXPECT_EQ(asked({{"ask", "inspect"}, {"text", golden("nccl_hostile.log")}}, "gar.inspect/1")["kind"], "nccl-log");
}

TEST(Ask, NoFileIsOpened) {
  for (const char* name : {"/etc/passwd", "tests/golden/data/profile.json", "data/topologies/sym384.json"}) {
    EXPECT_NE(asked_wrongly({{"ask", "network"}, {"topology", name}}), "") << name;
  }
  EXPECT_EQ(asked({{"ask", "network"}, {"topology", "mixed-fleet"}}, "gar.network/1")["name"], "mixed-fleet");
}

TEST(Ask, WhatMakesNoSenseIsSaid) {
  EXPECT_NE(AskJson::parse(answer("{"))["error"].get<std::string>().find("not valid JSON"), std::string::npos);
  EXPECT_NE(AskJson::parse(answer("[]"))["error"].get<std::string>().find("expected"), std::string::npos);
  EXPECT_NE(asked_wrongly({{"ask", "oracle"}}).find("predict curve heat"), std::string::npos);
  EXPECT_NE(asked_wrongly({{"ask", "predict"}, {"topology", "star:4"}}).find("count"), std::string::npos);
  EXPECT_NE(asked_wrongly({{"ask", "predict"}, {"topology", "star:4"}, {"count", "1"}, {"model", "x"}})
                .find("genmodel, paper or abc"),
            std::string::npos);
  EXPECT_NE(asked_wrongly({{"ask", "predict"}, {"count", "1"}}).find("a network is needed"), std::string::npos);
  EXPECT_EQ(asked({{"ask", "predict"}, {"topology", "star:4"}, {"count", "x"}}, "gar.error/1")["exit_code"], 2);
  EXPECT_EQ(asked({{"ask", "verify"}, {"plan", "{}"}}, "gar.error/1")["exit_code"], 3);
}

}  // namespace
}  // namespace gar
