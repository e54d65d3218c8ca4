// Files of decisions: what is read and written, and what happens when several processes want the same file, when one of
// them is killed, and when somebody has put something else in its place.
#include "gar/decisions.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "gar/errors.hpp"
#include "support/seed.hpp"
#include "support/temp_folder.hpp"

namespace gar {
namespace {

DecisionPlace place_of(int num_ranks) {
  return {.network = "a rack",
          .digest = 0x0123456789abcdefU,
          .transport = "mpi",
          .num_ranks = num_ranks,
          .library = "Open MPI 4.1.4"};
}

Decision decision_of(int size_class, double seconds) {
  Decision out;
  out.from_bytes = std::int64_t{1} << size_class;
  out.to_bytes = 2 * out.from_bytes - 1;
  out.winner = "native";
  out.candidates = {{"cps", 2 * seconds, 12, 1.5 * seconds}, {"native", seconds, 24, -1}, {"ring", -1, 0, 1e-3}};
  out.num_calls = 100;
  out.seconds = 100 * seconds;
  out.extra_seconds = seconds;
  return out;
}

Decisions decisions_of(int num_ranks, const std::vector<int>& classes) {
  Decisions out{place_of(num_ranks), {}};
  for (const int size_class : classes) out.decisions.push_back(decision_of(size_class, 1e-5));
  return out;
}

std::string decisions_text(const Decisions& decisions) {
  std::ostringstream out;
  write_decisions(decisions, out);
  return out.str();
}

std::string decisions_problem(const std::string& text) {
  try {
    parse_decisions(text, "d.json");
  } catch (const ParseError& e) {
    return e.what();
  }
  return "";
}

std::string with_other(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Decisions, SurviveTheFile) {
  Decisions decisions = decisions_of(4, {3, 10, 20});
  decisions.decisions[1].is_settled = false;
  EXPECT_EQ(parse_decisions(decisions_text(decisions), "d.json"), decisions);
  decisions.place.library.clear();
  EXPECT_EQ(parse_decisions(decisions_text(decisions), "d.json"), decisions);
}

TEST(Decisions, SayWhatIsWrongWithAFile) {
  const std::string good = decisions_text(decisions_of(4, {3, 4}));
  EXPECT_EQ(decisions_problem(good), "");
  EXPECT_NE(decisions_problem(with_other(good, "gar.decisions/1", "gar.profile/2")), "");
  EXPECT_NE(decisions_problem(with_other(good, "0123456789abcdef", "0123456789abcdeg")), "");
  EXPECT_NE(decisions_problem(with_other(good, "\"winner\": \"native\"", "\"winner\": \"rhd\"")), "");
  EXPECT_NE(decisions_problem(with_other(good, "\"winner\": \"native\"", "\"winner\": \"ring\"")), "");  // not measured
  EXPECT_NE(decisions_problem(with_other(good, "\"name\": \"ring\"", "\"name\": \"cps\"")), "");
  EXPECT_NE(decisions_problem(with_other(good, "\"from_bytes\": 16", "\"from_bytes\": 15")), "");
  EXPECT_NE(decisions_problem(with_other(good, "\"num_ranks\": 4", "\"num_ranks\": 0")), "");
  EXPECT_NE(decisions_problem(with_other(good, "1e-05", "-1e-05")), "");
  EXPECT_NE(decisions_problem(with_other(good, "\"calls\"", "\"cals\"")), "");
}

TEST(Decisions, AreKeptForTheNextJob) {
  const test::TempFolder folder;
  const std::string inside = folder.file("new/gar");  // neither exists
  const Decisions decisions = decisions_of(4, {3, 10});
  EXPECT_EQ(keep_decisions(inside, decisions), "");
  const KeptDecisions kept = load_decisions(inside, place_of(4));
  EXPECT_EQ(kept.problem, "");
  EXPECT_EQ(kept.decisions, decisions.decisions);
  EXPECT_TRUE(load_decisions(inside, place_of(5)).decisions.empty());  // another number of ranks
  EXPECT_EQ(load_decisions(inside, place_of(5)).problem, "");
  EXPECT_TRUE(load_decisions("", place_of(4)).decisions.empty());
}

TEST(Decisions, OfDifferentJobsAreMerged) {
  const test::TempFolder folder;
  EXPECT_EQ(keep_decisions(folder.path(), decisions_of(4, {3, 10})), "");
  Decisions later = decisions_of(4, {10, 12});
  later.decisions[0].winner = "cps";
  EXPECT_EQ(keep_decisions(folder.path(), later), "");
  const std::vector<Decision> kept = load_decisions(folder.path(), place_of(4)).decisions;
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[0], decision_of(3, 1e-5));
  EXPECT_EQ(kept[1], later.decisions[0]);  // the later one
  EXPECT_EQ(kept[2], later.decisions[1]);
}

TEST(Decisions, OfAnotherMachineAreNotUsed) {
  const test::TempFolder folder;
  Decisions other = decisions_of(4, {3});
  other.place.digest = 1;
  ASSERT_EQ(keep_decisions(folder.path(), other), "");
  std::filesystem::rename(folder.file(decisions_file_name(other.place)), folder.file(decisions_file_name(place_of(4))));
  const KeptDecisions kept = load_decisions(folder.path(), place_of(4));
  EXPECT_TRUE(kept.decisions.empty());
  EXPECT_NE(kept.problem.find("another network"), std::string::npos) << kept.problem;
}

TEST(Decisions, ThatAreGarbageAreReportedAndReplaced) {
  const test::TempFolder folder;
  const std::string path = folder.file(decisions_file_name(place_of(4)));
  std::mt19937_64 random(test::seed(5));
  const std::string good = decisions_text(decisions_of(4, {3, 9, 21}));
  for (int i = 0; i < 300; ++i) {
    std::string text = good.substr(0, random() % (good.size() + 1));
    for (std::uint64_t n = random() % 4; n > 0 && !text.empty(); --n) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    const KeptDecisions kept = load_decisions(folder.path(), place_of(4));
    EXPECT_TRUE(kept.decisions.empty() || kept.problem.empty());
    EXPECT_FALSE(kept.decisions.empty() && kept.problem.empty()) << text;  // said, never silent
  }
  std::ofstream(path, std::ios::trunc) << "garbage";
  EXPECT_EQ(keep_decisions(folder.path(), decisions_of(4, {5})), "");
  EXPECT_EQ(load_decisions(folder.path(), place_of(4)).decisions.size(), 1U);
}

TEST(Decisions, AreReadFromPlainFilesOnly) {
  const test::TempFolder folder;
  const std::string path = folder.file(decisions_file_name(place_of(4)));
  std::ofstream(folder.file("elsewhere")) << decisions_text(decisions_of(4, {3}));
  std::filesystem::create_symlink(folder.file("elsewhere"), path);
  EXPECT_NE(load_decisions(folder.path(), place_of(4)).problem, "");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_NE(load_decisions(folder.path(), place_of(4)).problem, "");
  EXPECT_NE(keep_decisions(folder.path(), decisions_of(4, {3})), "");
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(load_decisions(folder.path(), place_of(4)).problem, "");  // and nobody waits for a writer
}

TEST(Decisions, InAFolderThatCannotBeWrittenAreAProblemInWords) {
  const test::TempFolder folder;
  std::ofstream(folder.file("file")) << "no folder";
  EXPECT_NE(keep_decisions(folder.file("file/gar"), decisions_of(4, {3})), "");
  EXPECT_TRUE(load_decisions(folder.file("file/gar"), place_of(4)).decisions.empty());
  if (geteuid() == 0) return;  // who may write everywhere
  ASSERT_EQ(chmod(folder.path().c_str(), 0500), 0);
  EXPECT_NE(keep_decisions(folder.path(), decisions_of(4, {3})), "");
  ASSERT_EQ(chmod(folder.path().c_str(), 0700), 0);
}

TEST(Decisions, FolderFollowsTheEnvironment) {
  const test::TempFolder folder;
  setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  unsetenv("GAR_DECISIONS");
  EXPECT_EQ(decisions_folder(), folder.path() + "/gar");
  setenv("GAR_DECISIONS", "0", 1);
  EXPECT_EQ(decisions_folder(), "");
  setenv("GAR_DECISIONS", "/somewhere", 1);
  EXPECT_EQ(decisions_folder(), "/somewhere");
  unsetenv("GAR_DECISIONS");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/somebody", 1);
  EXPECT_EQ(decisions_folder(), "/home/somebody/.cache/gar");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(decisions_folder(), "");
}

/// A process that keeps decisions of one class again and again, until it is killed or has done it `most` times.
pid_t start_writer(const std::string& folder, int size_class, int most) {
  const pid_t child = fork();
  if (child != 0) return child;
  int problems = 0;
  for (int i = 0; i < most; ++i) problems += keep_decisions(folder, decisions_of(4, {size_class})).empty() ? 0 : 1;
  _exit(problems == 0 ? 0 : 1);
}

TEST(Decisions, OfJobsThatEndAtOnceAreAllKept) {
  const test::TempFolder folder;
  constexpr int kJobs = 8;
  std::vector<pid_t> writers;
  for (int i = 0; i < kJobs; ++i) writers.push_back(start_writer(folder.path(), 3 + i, 8));
  for (const pid_t writer : writers) {
    int status = 0;
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const KeptDecisions kept = load_decisions(folder.path(), place_of(4));
  EXPECT_EQ(kept.problem, "");
  ASSERT_EQ(kept.decisions.size(), static_cast<std::size_t>(kJobs));
  for (int i = 0; i < kJobs; ++i) EXPECT_EQ(kept.decisions[static_cast<std::size_t>(i)], decision_of(3 + i, 1e-5));
}

TEST(Decisions, SurviveWritersThatAreKilled) {
  const test::TempFolder folder;
  const std::vector<Decision> before = decisions_of(4, {3}).decisions;
  ASSERT_EQ(keep_decisions(folder.path(), decisions_of(4, {3})), "");
  std::mt19937_64 random(test::seed(11));
  for (int i = 0; i < 100; ++i) {
    const pid_t writer = start_writer(folder.path(), 4 + i % 8, 1'000'000);
    usleep(static_cast<useconds_t>(random() % 3000));
    ASSERT_EQ(kill(writer, SIGKILL), 0);
    ASSERT_EQ(waitpid(writer, nullptr, 0), writer);
    const KeptDecisions kept = load_decisions(folder.path(), place_of(4));
    ASSERT_EQ(kept.problem, "") << i;
    ASSERT_FALSE(kept.decisions.empty());
    EXPECT_EQ(kept.decisions.front(), before.front()) << i;
    for (const Decision& decision : kept.decisions) EXPECT_EQ(decision.winner, "native");
  }
  // The lock has gone with the dead; the next one is not kept from writing.
  EXPECT_EQ(keep_decisions(folder.path(), decisions_of(4, {20})), "");
  EXPECT_EQ(load_decisions(folder.path(), place_of(4)).decisions.back(), decision_of(20, 1e-5));
}

}  // namespace
}  // namespace gar
