// What benchmarks print is read, recognised by itself, and what is wrong is named with its line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "gar/errors.hpp"
#include "gar/results_io.hpp"

namespace gar {
namespace {

Results example(const std::string& name) { return read_results_file(GAR_SOURCE_DIR "/tests/golden/data/" + name); }

std::string results_error(const std::string& text) {
  try {
    parse_results(text, "out.txt");
  } catch (const ParseError& error) {
    return error.what();
  }
  return "no error";
}

#define EXPECT_RESULTS_REFUSED(text, part) \
  EXPECT_NE(results_error(text).find(part), std::string::npos) << results_error(text)

TEST(ResultsText, TableOfGarBench) {
  const Results r = example("bench.txt");
  EXPECT_EQ(r.format, "gar bench");
  EXPECT_EQ(r.num_ranks, 4);
  // Neither the empty vector nor the reproducible mode.
  ASSERT_EQ(r.rows.size(), 3U);
  EXPECT_EQ(r.rows[0].line, 6);
  EXPECT_EQ(r.rows[0].bytes, 1048576);
  EXPECT_DOUBLE_EQ(r.rows[0].seconds, 1480e-6);
  EXPECT_EQ(r.rows[0].algorithm, "cps");
  EXPECT_EQ(r.rows[0].label, "auto: cps, 4 chunks");
  EXPECT_EQ(r.rows[1].algorithm, "ring");
  EXPECT_DOUBLE_EQ(r.rows[1].seconds, 1890e-6);
  EXPECT_EQ(r.rows[2].algorithm, "") << "nobody knows what an MPI library runs";
  EXPECT_EQ(r.rows[2].label, "native: Open MPI 4.1.4");
}

// On GPUs the table has two more columns; they are found by their titles.
TEST(ResultsText, ColumnsAreFoundByTheirTitles) {
  const Results r = parse_results(
      "# allreduce between 4 processes of this host, out of place\n"
      "#  size  count  type  redop  root  time  algbw  busbw  #wrong  predicted  error  p10..p90  bound  times  "
      "algorithm\n"
      "  4096  1024  float32  sum  -1  12.5  0.3  0.5  0  10.0  +25%  12.4..12.6  6.0  2.08  auto: cps, 4 chunks\n",
      "out.txt");
  ASSERT_EQ(r.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(r.rows[0].seconds, 12.5e-6);
  EXPECT_EQ(r.rows[0].algorithm, "cps");
  EXPECT_EQ(r.rows[0].label, "auto: cps, 4 chunks");
}

TEST(BenchLabel, ComesBack) {
  const std::vector<std::pair<BenchLabel, std::string>> labels{
      {{.name = "ring"}, "ring"},
      {{.name = "auto", .plan = "cps", .num_chunks = 4}, "auto: cps, 4 chunks"},
      {{.name = "ring", .is_reproducible = true}, "ring, reproducible"},
      {{.name = "auto", .is_reproducible = true, .plan = "hcps:2x3", .num_chunks = 12},
       "auto, reproducible: hcps:2x3, 12 chunks"},
      {{.name = "native", .plan = "Open MPI 4.1.4"}, "native: Open MPI 4.1.4"}};
  for (const auto& [label, text] : labels) {
    EXPECT_EQ(to_string(label), text);
    EXPECT_EQ(parse_bench_label(text), label) << text;
  }
  EXPECT_EQ(to_string(BenchLabel{.name = "ring", .plan = "ring"}), "ring") << "said once";
  EXPECT_EQ(to_short_string(labels[1].first), "auto: cps");
  EXPECT_EQ(to_short_string(labels[4].first), "native");
  EXPECT_EQ(parse_bench_label(to_short_string(labels[2].first)), labels[2].first);
  EXPECT_EQ(parse_bench_label(" chunks").num_chunks, 1);
}

TEST(ResultsText, DocumentOfGarBench) {
  const std::string head =
      R"({"schema":"gar.bench/2","gar_version":"0.1.0","collective":"allreduce","ranks":6,"results":[)";
  const Results r = parse_results(
      head + R"({"algorithm":"auto","plan":"hcps:2x3","bytes":400,"seconds":0.5,"reproducible":false,"more":1},)" +
          R"({"algorithm":"gentree+","plan":"gentree+","bytes":800,"seconds":1},)" +
          R"({"algorithm":"ring","plan":"ring","bytes":800,"seconds":1,"reproducible":true},)" +
          R"({"algorithm":"native","plan":"ring","bytes":800,"seconds":2},{"algorithm":"ring","bytes":0,"seconds":1}]})",
      "out.json");
  EXPECT_EQ(r.format, "gar bench");
  EXPECT_EQ(r.num_ranks, 6);
  ASSERT_EQ(r.rows.size(), 3U);
  EXPECT_EQ(r.rows[0].algorithm, "hcps:2x3");
  EXPECT_EQ(r.rows[0].label, "auto: hcps:2x3");
  EXPECT_EQ(r.rows[0].seconds, 0.5);
  EXPECT_EQ(r.rows[1].algorithm, "");
  EXPECT_EQ(r.rows[2].algorithm, "");
  EXPECT_RESULTS_REFUSED(head + "]}", "results: holds no result");
  EXPECT_RESULTS_REFUSED(head + R"({"algorithm":"ring","bytes":4,"seconds":0}]})", "results[0].seconds: ");
  EXPECT_RESULTS_REFUSED(head + R"({"algorithm":"ring","bytes":4}]})", "results[0]");
  EXPECT_RESULTS_REFUSED(R"({"schema":"gar.bench/1","collective":"all-gather","ranks":6,"results":[]})",
                         "\"allreduce\"");
  const Results lossy = parse_results(head + R"({"algorithm":"ring","bytes":8,"seconds":1,"resent":0.02},)" +
                                          R"({"algorithm":"ring","bytes":8,"seconds":1,"resent":null}]})",
                                      "out.json");
  EXPECT_EQ(lossy.rows[0].resent, 0.02);
  EXPECT_EQ(lossy.rows[1].resent, -1);
  EXPECT_RESULTS_REFUSED(R"({"schema":"gar.plan/2"})", "gar.bench/2");
  EXPECT_RESULTS_REFUSED("{", "out.txt");
}

TEST(ResultsText, NcclTests) {
  const Results r = example("nccl.txt");
  EXPECT_EQ(r.format, "nccl-tests");
  EXPECT_EQ(r.num_ranks, 4) << "its rank lines, not nThread x nGpus of one process";
  ASSERT_EQ(r.rows.size(), 6U);
  EXPECT_EQ(r.rows[1].label, "in place");
  EXPECT_DOUBLE_EQ(r.rows[1].seconds, 2638.4e-6);
  EXPECT_EQ(r.rows[5].bytes, 4194304);
  EXPECT_EQ(r.rows[5].line, 15);
  EXPECT_EQ(r.rows[5].algorithm, "");
}

constexpr const char* kNcclHead = "#  size  count  type  redop  root  time  algbw  busbw #wrong\n";

TEST(ResultsText, NcclTestsOfOtherVersions) {
  // Without rank lines, without a root, without in-place, with Windows' ends of lines.
  const Results r = parse_results(
      "# nThread 2 nGpus 4 minBytes 8\r\n#  size  count  type  redop  time  algbw  busbw  error\r\n"
      "  4096  1024  float  sum  12.5  0.1  0.2  0e+00\r\n",
      "out.txt");
  EXPECT_EQ(r.num_ranks, 8);
  ASSERT_EQ(r.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(r.rows[0].seconds, 12.5e-6);
}

TEST(ResultsText, Osu) {
  const Results r = example("osu.txt");
  EXPECT_EQ(r.format, "OSU");
  EXPECT_EQ(r.num_ranks, 0);
  ASSERT_EQ(r.rows.size(), 3U);
  EXPECT_EQ(r.rows[0].bytes, 1048576);
  EXPECT_DOUBLE_EQ(r.rows[0].seconds, 1478.33e-6);
  const Results full = example("osu_full.txt");
  ASSERT_EQ(full.rows.size(), 2U);
  EXPECT_DOUBLE_EQ(full.rows[1].seconds, 2701.02e-6) << "the average, not the least";
}

// Tables of other benchmarks and of fewer processes stand in the same file.
TEST(ResultsText, Imb) {
  const std::string text =
      "#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part\n# Benchmarking Bcast \n# #processes = 4 \n"
      "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n         4096  1000  1.0  2.0  1.5\n\n"
      "# Benchmarking Allreduce \n# #processes = 2 \n# ( 2 additional processes waiting in MPI_Barrier)\n"
      "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n         4096  1000  3.0  4.0  3.5\n"
      "# Benchmarking Allreduce \n# #processes = 4 \n"
      "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n            0  1000  0.1  0.1  0.1\n"
      "         4096  1000  10.00  12.50  11.00\n      1048576  640  900.00  950.25  910.00\n";
  const Results r = parse_results(text, "out.txt");
  EXPECT_EQ(r.format, "IMB-MPI1");
  EXPECT_EQ(r.num_ranks, 4);
  ASSERT_EQ(r.rows.size(), 2U);
  EXPECT_DOUBLE_EQ(r.rows[0].seconds, 12.5e-6) << "when the last rank is done";
  EXPECT_EQ(r.rows[1].bytes, 1048576);
  EXPECT_RESULTS_REFUSED(text + "   2097152  320  1.0\n", "has 3 columns");
}

std::string example_text(const std::string& name) {
  std::ifstream file(GAR_SOURCE_DIR "/tests/golden/data/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Every line with a tag before it, and a line of the launcher's own and one of standard error between them.
std::string tagged(const std::string& text, const std::string& tag, const std::string& error_tag = "") {
  std::istringstream lines(text);
  std::string out = "mpirun: a line of the launcher\n";
  std::string line;
  while (std::getline(lines, line)) {
    out += tag;
    out += line;
    out += '\n';
    if (!error_tag.empty()) out += error_tag + "4096 a warning\n";
  }
  return out;
}

void expect_same_rows(const Results& tagged, const Results& plain) {
  EXPECT_EQ(tagged.format, plain.format);
  EXPECT_EQ(tagged.num_ranks, plain.num_ranks);
  ASSERT_EQ(tagged.rows.size(), plain.rows.size());
  for (std::size_t i = 0; i < plain.rows.size(); ++i) {
    EXPECT_EQ(tagged.rows[i].bytes, plain.rows[i].bytes);
    EXPECT_EQ(tagged.rows[i].seconds, plain.rows[i].seconds);
    EXPECT_EQ(tagged.rows[i].algorithm, plain.rows[i].algorithm);
    EXPECT_EQ(tagged.rows[i].label, plain.rows[i].label);
  }
}

TEST(ResultsText, TagsOfLaunchersAreTakenOff) {
  for (const char* name : {"bench.txt", "nccl.txt", "osu.txt", "osu_full.txt"}) {
    const std::string text = example_text(name);
    const Results plain = parse_results(text, name);
    for (const char* tag : {"[1,0]<stdout>:", "[prterun-node7-4711@1,0]<stdout>: ", "[0] ", "0: ", " 12: "}) {
      SCOPED_TRACE(fmt::format("{} with {}", name, tag));
      expect_same_rows(parse_results(tagged(text, tag), name), plain);
    }
    expect_same_rows(parse_results(tagged(text, "[1,0]<stdout>:", "[1,3]<stderr>:"), name), plain);
  }
  // Lines keep their numbers: the launcher's is the first.
  EXPECT_RESULTS_REFUSED(tagged("# Size       Avg Latency(us)\n4096 soon\n", "0: "), "out.txt: line 3: the average");
}

TEST(ResultsText, TagsOfDocumentsAreTakenOff) {
  const std::string text =
      "{\n  \"schema\": \"gar.bench/2\",\n  \"collective\": \"allreduce\",\n  \"ranks\": 4,\n  \"results\": [\n"
      "    {\"bytes\": 4096, \"seconds\": 1e-5, \"algorithm\": \"ring\"}\n  ]\n}\n";
  const Results plain = parse_results(text, "out.json");
  ASSERT_EQ(plain.rows.size(), 1U);
  std::string lines = tagged(text, "[1,0]<stdout>:", "[1,2]<stderr>:");
  lines.erase(0, lines.find('\n') + 1);
  expect_same_rows(parse_results(lines, "out.json"), plain);
}

TEST(ResultsText, OtherBracketsAndColonsAreNoTags) {
  for (const char* row : {"[1,0]<stdin>4096 5", "[1;0]<stdout>:4096 5", "[0]4096 5", "host: 4096 5", "1:4096 5",
                          "[1,x]<stdout>:4096 5", "[]", "[", ":", ": 4096 5"}) {
    const Results r = parse_results(fmt::format("# Size       Avg Latency(us)\n1024 3\n{}\n", row), "out.txt");
    EXPECT_EQ(r.rows.size(), 1U) << row;
  }
}

TEST(ResultsText, ReadsStreams) {
  std::istringstream text(example_text("osu.txt"));
  expect_same_rows(read_results(text, "standard input"), example("osu.txt"));
  std::istringstream empty;
  EXPECT_THROW((void)read_results(empty, "standard input"), ParseError);
  std::istringstream endless(std::string((std::size_t{16} << 20) + 1, '#'));
  EXPECT_THROW((void)read_results(endless, "standard input"), ParseError);
}

TEST(ResultsText, RefusesWhatIsNoTable) {
  EXPECT_RESULTS_REFUSED("", "out.txt: is empty; expected ");
  EXPECT_RESULTS_REFUSED(" \n\n", "out.txt: is empty");
  EXPECT_RESULTS_REFUSED("\nhello\n8 1 2\n", "out.txt: line 2: 'hello'");
  EXPECT_RESULTS_REFUSED(std::string("\x01\xff\0", 3), "line 1: '\\x01\\xff\\x00'");
  EXPECT_RESULTS_REFUSED("1024 12.5\n", "no line that begins a table");
  EXPECT_RESULTS_REFUSED("# Size  Avg Latency(us)\nnone\n", "line 1: begins a table without rows");
  EXPECT_RESULTS_REFUSED(std::string("# Size  Avg Latency(us)\n4 1\n") + kNcclHead,
                         "line 3: begins a table of another kind");
  EXPECT_THROW(read_results_file("/no/such/file"), ParseError);
}

TEST(ResultsText, RefusesBrokenRows) {
  const std::string osu = "# Size  Avg Latency(us)\n";
  EXPECT_RESULTS_REFUSED(osu + "4\n", "line 2: has 1 column");
  EXPECT_RESULTS_REFUSED(osu + "4 fast\n",
                         "line 2: the average latency is 'fast'; expected a number from 1e-06 to 1e+15");
  for (const char* bad : {"0", "-1", "nan", "inf", "1e999", "1,5", "0x10x"}) {
    EXPECT_RESULTS_REFUSED(osu + "4 " + bad + "\n", "line 2: the average latency is ");
  }
  EXPECT_RESULTS_REFUSED(kNcclHead + std::string("8 2 float sum -1 1.0 0 0\n"), "line 2: ");
  EXPECT_RESULTS_REFUSED(kNcclHead + std::string("8 2 float sum -1 N/A 0 0 0\n"), "line 2: time is 'N/A'");
  EXPECT_RESULTS_REFUSED(kNcclHead + std::string("8 2 float sum -1 1.0 0 0 0 5\n"), "line 2: has 10 columns");
}

TEST(ResultsText, RefusesOtherCollectives) {
  EXPECT_RESULTS_REFUSED(kNcclHead + std::string("8 2 float none -1 1.0 0 0 0\n"), "redop is 'none'");
  EXPECT_RESULTS_REFUSED(kNcclHead + std::string("80 5 float sum -1 1.0 0 0 0\n"), "as in results of ReduceScatter");
  EXPECT_RESULTS_REFUSED("# OSU MPI Allgather Latency Test v7.3\n# Size  Avg Latency(us)\n4 1\n", "line 1: ");
  EXPECT_RESULTS_REFUSED("# all-gather between 4 processes of this host, out of place\n",
                         "line 1: the results are of all-gather");
}

TEST(ResultsText, RefusesEndlessTables) {
  std::string text = "# Size  Avg Latency(us)\n";
  for (int i = 0; i < 2'001; ++i) text += "4 1\n";
  EXPECT_RESULTS_REFUSED(text, "line 2002: more than 2000 rows");
}

}  // namespace
}  // namespace gar
