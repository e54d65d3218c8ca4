#include "apps/gar/cli/common.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "apps/gar/cli/help.hpp"
#include "apps/gar/cli/progress.hpp"
#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/topology_io.hpp"

namespace gar::cli {
namespace {

TEST(ShellWord, CanBeTyped) {
  EXPECT_EQ(shell_word("plan.json"), "plan.json");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("a\\b c"), "'a\\b c'");
  // $'...' of the shell undoes what is escaped; a backslash and a quote mean themselves.
  EXPECT_EQ(shell_word("a\nb"), "$'a\\x0ab'");
  EXPECT_EQ(shell_word("\x1b'\\x41"), "$'\\x1b\\'\\\\x41'");
}

TEST(FormatCount, CanBeTypedBack) {
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{32'000'000}, std::int64_t{7'654'321}}) {
    EXPECT_EQ(parse_count("--count", format_count(count)), count);
  }
}

TEST(Table, AlignsWordsLeftAndNumbersRight) {
  Table table({{"algorithm"}, {"seconds", true}, {"note"}});
  table.add_row({"cps", "1.5", "µs"});
  table.add_row({Cell("ring", Paint::kGreen), "12.25"});
  EXPECT_EQ(table.to_string(false),
            "algorithm  seconds  note\n"
            "cps            1.5  µs\n"
            "ring         12.25\n");
  EXPECT_NE(table.to_string(true).find("\x1b[32mring\x1b[0m"), std::string::npos);
}

TEST(Color, FlagGoesBeforeEnvironment) {
  setenv("NO_COLOR", "1", 1);
  EXPECT_TRUE(use_color(ColorMode::kAlways, stdout));
  EXPECT_FALSE(use_color(ColorMode::kNever, stdout));
  EXPECT_FALSE(use_color(ColorMode::kAuto, stdout));
}

TEST(VectorSizeOptions, NeedExactlyOneOfSizeAndCount) {
  EXPECT_THROW(vector_sizes({"", "", "float32", ""}), UsageError);
  EXPECT_THROW(vector_sizes({"4MB", "1e6", "float32", ""}), UsageError);
  EXPECT_EQ(vector_sizes({"4MB", "", "float32", ""}).front().count, 1'000'000);
  EXPECT_EQ(vector_sizes({"", "1e6", "float16", ""}).front().bytes, 2'000'000);
  const std::vector<VectorSize> range = vector_sizes({"8..1kB", "", "double", "10"});
  ASSERT_EQ(range.size(), 3U);
  EXPECT_EQ(range.back().bytes, 800);
  EXPECT_EQ(range.back().count, 100);
}

// Standard output of the tests may be a terminal of any width.
TEST(Folding, LinesFitTheTerminal) {
  const std::size_t most = terminal_columns();
  Table table({{"name"}, {"first", true}, {"second", true}, {"why"}});
  const std::string wide(most / 2, '7');
  std::string words;
  for (std::size_t i = 0; i < most; ++i) words += "word ";
  table.add_row({"a", Cell(wide), Cell(wide), Cell(words)});
  const std::string text =
      table.folded(false) + fitted(words + "\n") + fitted("label   " + words + "\n") + labelled("best", words);
  std::size_t begin = 0;
  std::size_t num_words = 0;
  while (begin < text.size()) {
    const std::string line = text.substr(begin, text.find('\n', begin) - begin);
    EXPECT_LE(display_width(line), most) << line;
    for (std::size_t at = line.find("word"); at != std::string::npos; at = line.find("word", at + 1)) ++num_words;
    begin += line.size() + 1;
  }
  EXPECT_EQ(num_words, 4 * most);
  EXPECT_NE(text.find("name  "), text.rfind("name  "));
  EXPECT_EQ(table.to_string(false).substr(0, 4), "name");
}

TEST(Folding, TablesBreakWhereTheyAreTold) {
  Table table({{"algorithm"}, {"time", true}, {"latency", true, true}, {"links", true}});
  table.add_row({"ring", "1 s", "2 s", "3 s"});
  EXPECT_EQ(table.folded(false), "algorithm  time  latency  links\nring        1 s      2 s    3 s\n");
  table.add_row({"ring", "1 s", "2 s", std::string(70, 'x')});
  EXPECT_EQ(table.folded(false).substr(0, 16), "algorithm  time\n") << "too wide for one line";
}

TEST(Folding, RowsThatAreEmptyBelowTheOthersAreLeftOut) {
  Table table({{"where"}, {"parameter"}, {"value", true}, {"words", false, true}}, 2);
  const std::string wide(2 * terminal_columns(), 'x');
  table.add_row({"level 0", "alpha", "1"});
  table.add_row({"", "beta", "2", Cell(wide)});
  table.add_row({"", "epsilon", "3", "few"});
  table.add_row({"server", "gamma", "4"});
  EXPECT_EQ(table.folded(false),
            "where    parameter  value\n"
            "level 0  alpha          1\n"
            "         beta           2\n"
            "         epsilon        3\n"
            "server   gamma          4\n"
            "\n"
            "where    parameter  words\n"
            "level 0  beta       " +
                wide +
                "\n"
                "         epsilon    few\n");
  table.keep_empty_rows();
  EXPECT_NE(table.folded(false).find("level 0  alpha\n"), std::string::npos);
}

TEST(Examples, AreBrokenSoThatTheyCanBeCopied) {
  EXPECT_EQ(fitted_examples("Examples:\n  # what it does\n  gar plan\n", 80),
            "Examples:\n  # what it does\n  gar plan\n");
  EXPECT_EQ(fitted_examples("  # what it does in words\n", 16), "  # what it does\n  # in words\n");
  // A flag stays with its value, and nothing is broken within quotes.
  EXPECT_EQ(fitted_examples("  gar simulate --algo ring --size 1MB\n", 32),
            "  gar simulate --algo ring \\\n      --size 1MB\n");
  EXPECT_EQ(fitted_examples("  gar simulate --algo 'ring and so on'\n", 30),
            "  gar simulate \\\n      --algo 'ring and so on'\n");
}

TEST(Drawings, FollowTheLocale) {
  setenv("LC_ALL", "C", 1);
  EXPECT_EQ(lines_for_locale("└─ rack\n│  ├─ a"), "`- rack\n|  |- a");
  setenv("LC_ALL", "en_US.UTF-8", 1);
  EXPECT_EQ(lines_for_locale("└─ rack"), "└─ rack");
  unsetenv("LC_ALL");
}

TEST(Progress, SaysTheTimeThatIsLeft) {
  EXPECT_EQ(time_left(10, 0.001), "") << "a guess";
  EXPECT_EQ(time_left(10, 0.25), ", about 30 s left");
  EXPECT_EQ(time_left(600, 0.5), ", about 10 min left");
  EXPECT_EQ(time_left(36000, 0.5), ", about 10 h left");
  EXPECT_EQ(time_left(10, 1), ", about 0 s left");
}

TEST(Csv, QuotesWhatNeedsIt) {
  EXPECT_EQ(csv_line({"a", "", "1,5", "say \"x\""}), "a,,\"1,5\",\"say \"\"x\"\"\"\n");
  EXPECT_EQ(csv_line({"", "a"}), ",a\n");
}

TEST(Names, AreThoseOfTheLibrary) {
  for (const std::string& name : topology_names()) EXPECT_GT(load_topology(name).num_servers(), 0) << name;
  for (const std::string& name : algorithm_names()) {
    if (name == "all") continue;
    EXPECT_NO_THROW(parse_algorithm(name)) << name;
  }
}

TEST(ClosestWords, FindsBeginningsThenTypingErrors) {
  const std::vector<std::string> verbs{"topo", "predict", "plan", "verify"};
  EXPECT_EQ(closest_words("p", verbs), (std::vector<std::string>{"predict", "plan"}));
  EXPECT_EQ(closest_words("pedict", verbs), (std::vector<std::string>{"predict"}));
  EXPECT_EQ(closest_words("verfiy", verbs), (std::vector<std::string>{"verify"}));
  EXPECT_TRUE(closest_words("completely-else", verbs).empty());
}

// What a verb throws becomes an exit code.
int code_of(const std::function<int()>& action, const std::vector<const char*>& arguments = {"gar", "do"}) {
  Context context;
  CLI::App program("test", "gar");
  program.require_subcommand(1);
  CLI::App* verb = program.add_subcommand("do", "does");
  std::string file;
  verb->add_option("file", file, "a file");
  std::string count;
  verb->add_option("--count", count, "elements");
  on_run(*verb, context, action);
  return run_program(program, context, static_cast<int>(arguments.size()), arguments.data());
}

TEST(ExitCodes, FollowTheException) {
  EXPECT_EQ(code_of([] { return kExitOk; }), 0);
  EXPECT_EQ(code_of([] { return kExitCheckFailed; }), 1);
  EXPECT_EQ(code_of([]() -> int { throw UsageError("u"); }), 2);
  EXPECT_EQ(code_of([]() -> int { throw ParseError("p"); }), 3);
  EXPECT_EQ(code_of([]() -> int { throw InvalidArgument("i"); }), 3);
  EXPECT_EQ(code_of([]() -> int { throw PlanError("p"); }), 3);
  EXPECT_EQ(code_of([]() -> int { throw TransportError("t"); }), 4);
  EXPECT_EQ(code_of([]() -> int { throw std::bad_alloc(); }), 4);
  EXPECT_EQ(code_of([]() -> int { throw std::runtime_error("r"); }), 4);
}

TEST(ExitCodes, EveryUsageErrorIsTwo) {
  const auto never = []() -> int { throw std::runtime_error("must not run"); };
  EXPECT_EQ(code_of(never, {"gar"}), 2);
  EXPECT_EQ(code_of(never, {"gar", "dooo"}), 2);
  EXPECT_EQ(code_of(never, {"gar", "do", "--flag"}), 2);
  EXPECT_EQ(code_of(never, {"gar", "do", "a", "b"}), 2);
  EXPECT_EQ(code_of(never, {"gar", "do", "--count"}), 2);
  EXPECT_EQ(code_of([] { return 0; }, {"gar", "do", "--count", "-5"}), 0);  // the verb judges the value
  EXPECT_EQ(code_of(never, {"gar", "do", "--help"}), 0);
}

}  // namespace
}  // namespace gar::cli
