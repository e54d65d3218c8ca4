// Pages: what is on them, and that nothing of a file becomes markup.
#include "gar/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "gar/errors.hpp"
#include "gar/planner.hpp"
#include "gar/profile_io.hpp"
#include "gar/simulate.hpp"

namespace gar {
namespace {

constexpr const char* kEvil = "</script><img src=x onerror=alert(1)>\"'&\x1b";

std::size_t times_in(const std::string& page, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = page.find(what); at != std::string::npos; at = page.find(what, at + 1)) ++found;
  return found;
}

/// Nothing that a page must not have: scripts, handlers, addresses of servers.
void expect_harmless(const std::string& page) {
  EXPECT_EQ(times_in(page, "<script"), 0U);
  EXPECT_EQ(times_in(page, "<img"), 0U);
  EXPECT_EQ(times_in(page, "http:"), 0U);
  EXPECT_EQ(times_in(page, "https:"), 0U);
  EXPECT_EQ(times_in(page, "\x1b"), 0U);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(Report, TextStaysText) {
  ReportPage page(kEvil);
  page.verdict(Tone::kBad, kEvil);
  page.section(kEvil);
  page.paragraph(kEvil);
  page.list({kEvil});
  page.code(std::string(kEvil) + "\nsecond");
  page.table({kEvil, "b"}, {{kEvil, kEvil}});
  page.chart({.title = kEvil, .x_title = kEvil, .lines = {{.name = kEvil, .points = {{1, 1}, {1000, 2}}}}});
  page.bars(kEvil, {{kEvil, {{kEvil, 1}}}});
  add_to_report(page, Origin{{{kEvil, kEvil}}, {kEvil}});
  const std::string html = page.html(kEvil);
  expect_harmless(html);
  EXPECT_GE(times_in(html, "&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"), 15U);
  EXPECT_NE(html.find("\nsecond\n"), std::string::npos);
}

TEST(Report, TheVerdictComesFirst) {
  ReportPage page("t");
  page.paragraph("the rest of it");
  page.verdict(Tone::kGood, "all is well");
  const std::string html = page.html("");
  EXPECT_LT(html.find("all is well"), html.find("the rest of it"));
}

TEST(Report, ChartsShowIntervalsAndLeaveOutWhatCannotBeShown) {
  ReportPage page("t");
  page.chart({.title = "c",
              .x_title = "x",
              .lines = {{.name = "a", .points = {{1e3, 1e-3, 0.9e-3, 1.2e-3}, {1e6, 1}, {0, 1}, {10, -1}}},
                        {.name = "nothing"}}});
  const std::string html = page.html("");
  EXPECT_EQ(times_in(html, "class=\"interval\""), 1U);
  EXPECT_EQ(times_in(html, "<circle"), 2U);
  EXPECT_EQ(times_in(html, "nan"), 0U);
  EXPECT_EQ(times_in(html, "inf"), 0U);
  EXPECT_NE(html.find("1.00 ms (900 us to 1.20 ms)"), std::string::npos) << html;
  ReportPage empty("t");
  empty.chart({.title = "c", .x_title = "x", .lines = {{.name = "nothing"}}});
  EXPECT_EQ(times_in(empty.html(""), "<svg"), 0U);
}

TEST(Report, OneValueIsABar) {
  for (const bool is_log : {true, false}) {
    ReportPage page("t");
    page.chart({.title = "c",
                .x_title = "x",
                .is_x_log = is_log,
                .is_y_log = is_log,
                .lines = {{.name = "a", .points = {{5, 5, 4, 6}}},
                          {.name = kEvil, .points = {{5, 3}}, .is_dashed = true},
                          {.name = "zero", .points = {{5, 0}}}}});
    const std::string html = page.html("");
    expect_harmless(html);
    EXPECT_EQ(times_in(html, "class=\"part\""), 2U);
    EXPECT_EQ(times_in(html, "class=\"hollow\""), 1U);
    EXPECT_EQ(times_in(html, "class=\"whisker\""), 1U);
    EXPECT_EQ(times_in(html, "nan"), 0U);
  }
}

TEST(Report, OneSizeIsSaidInShort) {
  const Results results = parse_results(
      R"({"schema": "gar.bench/2", "collective": "allreduce", "ranks": 4, "results": [
          {"algorithm": "auto", "bytes": 4096, "seconds": 1e-3, "predicted_seconds": 2e-3},
          {"algorithm": "native", "bytes": 4096, "seconds": 2e-3}]})",
      "today.json");
  const Topology network = make_tree({4});
  ReportPage page("t");
  add_to_report(page, results, nullptr, "here", &network);
  const std::string html = page.html("");
  for (const char* words : {"here: auto is 2.00 times as fast as the MPI library&#39;s own AllReduce at 4.096 kB.",
                            "here: the prediction is off by 50.0%.", "times the lower limit (", "lower limit"}) {
    EXPECT_NE(html.find(words), std::string::npos) << words << html;
  }
}

TEST(Report, AProfileAndABenchmarkOnIt) {
  ReportPage page("t");
  add_files_to_report(page, {"tests/golden/data/profile.json", "tests/golden/data/nccl.txt"});
  const std::string html = page.html("");
  EXPECT_NE(html.find("6 of 6 results are more than 10% slower than expected"), std::string::npos);
  EXPECT_NE(html.find("2 beta") == std::string::npos || html.find("epsilon") != std::string::npos, false);
  EXPECT_GE(times_in(html, "<svg"), 1U);
  expect_harmless(html);
}

TEST(Report, ResultsSayWhereTheyWereMeasured) {
  const Results results = parse_results(
      R"({"schema": "gar.bench/2", "collective": "allreduce", "ranks": 2, "results": [{"algorithm": "ring", "bytes": 4096,
          "seconds": 1e-3, "predicted_seconds": 2e-3}], "origin": {"facts": [{"name": "MTU", "value": "eth0 <b>"}],
          "commands": ["gar bench --local 2"]}})",
      "today.json");
  ReportPage page("t");
  add_to_report(page, results, nullptr, "today.json");
  const std::string html = page.html("");
  expect_harmless(html);
  EXPECT_NE(html.find("<li>MTU: eth0 &lt;b&gt;</li>"), std::string::npos) << html;
  EXPECT_NE(html.find("<pre>gar bench --local 2"), std::string::npos) << html;
  const Chart chart = results_chart(results);
  ASSERT_EQ(chart.lines.size(), 2U);
  EXPECT_TRUE(chart.lines[1].is_dashed);
  EXPECT_EQ(chart.lines[1].points.size(), 1U);
}

TEST(Report, LogsOfNcclOpenWithTheirProblems) {
  ReportPage page("t");
  add_files_to_report(page, {"data/nccl/two-hosts.log", "tests/golden/data/nccl_hostile.log"});
  const std::string html = page.html("");
  expect_harmless(html);
  EXPECT_NE(html.find("<p class=\"bad\">two-hosts.log: between hosts it uses TCP sockets"), std::string::npos);
  EXPECT_NE(html.find("for -t: tree:2x2@48Gbit/s+9.6Gbit/s"), std::string::npos);
  // A line of a chart is one, whatever NCCL took at each size.
  std::ifstream file("tests/golden/data/nccl_mixed.txt");
  const Chart chart = results_chart(read_results(file, "mixed"));
  EXPECT_EQ(std::count_if(chart.lines.begin(), chart.lines.end(), [](const ChartLine& l) { return !l.is_dashed; }), 2);
  EXPECT_EQ(chart.lines[0].points.size(), 3U);
}

TEST(Report, AFileOfAnotherKindIsRefused) {
  ReportPage page("t");
  EXPECT_THROW(add_files_to_report(page, {"data/topologies/sym384.json"}), ParseError);
  EXPECT_THROW(add_files_to_report(page, {"there is none"}), ParseError);
}

TEST(Report, SimulatedPlans) {
  const Topology tree = make_tree({2, 3});
  Scene scene{tree, vector_size_of_count("count", "1e6", DataType::kFloat32), {}, {}, false};
  const PlanAnswer planned = plan({.topology = tree, .size_floats = 1e6});
  SimulatedPlan one{.algorithm = kEvil, .predicted = planned.terms, .simulation = simulate(planned.plan, tree, 1e6)};
  ReportPage page("t");
  add_to_report(page, scene, {one});
  const std::string html = page.html("");
  expect_harmless(html);
  EXPECT_NE(html.find("in the simulator, "), std::string::npos);
}

TEST(Explorer, TheNetworkIsInsideAndCannotGetOut) {
  const std::string empty = "<p></p><script type=\"application/json\" id=\"gar-start\">{}</script><script>x</script>";
  EXPECT_NE(explorer_page(empty, {.spec = "tree:2x3", .bytes = 4e8})
                .find(R"(id="gar-start">{"topology":"tree:2x3","bytes":400000000}</script>)"),
            std::string::npos);
  Node root;
  root.name = "<b>";
  root.children = {{1, 2}};
  Node server;
  server.name = "<script>";
  const Topology star("</script><script>alert(1)</script>", {root, server}, 0);
  const std::string page = explorer_page(empty, {.topology = star, .name = "</script>.json"});
  EXPECT_EQ(times_in(page, "</script>"), 2U);
  EXPECT_EQ(times_in(page, "<script>"), 1U);
  EXPECT_THROW((void)explorer_page("<html></html>", {}), ParseError);
}

}  // namespace
}  // namespace gar
