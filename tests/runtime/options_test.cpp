// What communicators accept: options, the environment, arguments; and what they say about what they do.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/communicator.hpp"
#include "gar/topology_io.hpp"
#include "support/collective_cases.hpp"
#include "support/explicit_plan.hpp"
#include "support/rank_groups.hpp"

namespace gar {
namespace {

using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

/// An environment variable for as long as this lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

/// What a call of the library throws: "InvalidArgument: text", or nothing.
std::string thrown(const std::function<void()>& call) {
  try {
    call();
    return "nothing";
  } catch (const InvalidArgument& error) {
    return std::string("InvalidArgument: ") + error.what();
  } catch (const ParseError& error) {
    return std::string("ParseError: ") + error.what();
  } catch (const PlanError& error) {
    return std::string("PlanError: ") + error.what();
  } catch (const std::exception& error) {
    return std::string("something else: ") + error.what();
  }
}
void expect_refused(const std::string& what, const std::string& word) {
  EXPECT_TRUE(what.starts_with("InvalidArgument: ") || what.starts_with("PlanError: ")) << what;
  EXPECT_NE(what.find(word), std::string::npos) << what << "\n  does not say '" << word << "'";
}

/// Works on all ranks: a small and a large operation, checked.
std::string works(int num_ranks, const CommunicatorOptions& options, std::int64_t large = 70'001) {
  return test::failures(test::run_threads(num_ranks, [&](test::Member& member) {
    Communicator communicator = member.communicator(options);
    for (const std::int64_t count : {std::int64_t{5}, large}) {
      test::run_case(communicator,
                     {Collective::kAllReduce, test::Form::kInPlace, DataType::kFloat32, ReduceOp::kSum, count,
                      test::Call::kBlocking},
                     3);
    }
  }));
}

std::string algorithm_of(Communicator& communicator, std::int64_t count = 100'000) {
  return communicator.report(Collective::kAllReduce, count, DataType::kFloat32).algorithm;
}

// --- the environment -------------------------------------------------------------------------------------------------

TEST(Environment, ChoosesTheAlgorithmWhereTheOptionsDoNot) {
  const Environment algo("GAR_ALGO", "ring");
  EXPECT_EQ(algorithm_of(thread_communicators(4)[0]), "ring");
  CommunicatorOptions options;
  options.algorithm = "cps";
  EXPECT_EQ(algorithm_of(thread_communicators(4, options)[0]), "cps");
  EXPECT_EQ(works(4, {}), "");
}

TEST(Environment, ValuesThatAreAccepted) {
  const std::vector<std::pair<const char*, std::string>> good{
      {"GAR_ALGO", "rhd"},        {"GAR_ALGO", "hcps:2x2"},    {"GAR_ALGO", "gentree"},  {"GAR_ALGO", "gentree+"},
      {"GAR_TIMEOUT", "12.5"},    {"GAR_TIMEOUT", "3"},        {"GAR_STAGING", "65536"}, {"GAR_STAGING", "1000003"},
      {"GAR_TOPOLOGY", "star:4"}, {"GAR_TOPOLOGY", "tree:2x2"}};
  for (const auto& [name, value] : good) {
    const Environment variable(name, value);
    EXPECT_EQ(works(4, {}), "") << name << "=" << value;
  }
}

TEST(Environment, BadValuesAreRefusedByName) {
  const std::vector<std::pair<const char*, std::string>> bad{
      {"GAR_ALGO", "fastest"},    {"GAR_ALGO", "hcps:"},        {"GAR_ALGO", "hcps:3x3"},  {"GAR_ALGO", "hcps:0x4"},
      {"GAR_TIMEOUT", "soon"},    {"GAR_TIMEOUT", "-1"},        {"GAR_TIMEOUT", "0"},      {"GAR_TIMEOUT", "3 apples"},
      {"GAR_TIMEOUT", "nan"},     {"GAR_STAGING", "lots"},      {"GAR_STAGING", "-65536"}, {"GAR_STAGING", "1e400"},
      {"GAR_TOPOLOGY", "star:5"}, {"GAR_TOPOLOGY", "moebius:4"}};
  for (const auto& [name, value] : bad) {
    SCOPED_TRACE(std::string(name) + "=" + value);
    const Environment variable(name, value);
    const std::string what = thrown([] { thread_communicators(4); });
    EXPECT_TRUE(what.starts_with("InvalidArgument: ")) << what;
    EXPECT_NE(what.find(name), std::string::npos) << what;
    EXPECT_NE(what.find(value.substr(value.find(':') + 1)), std::string::npos) << what;
  }
}

TEST(Environment, ATopologyComesFromAFile) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / (test::unique_name() + ".json");
  {
    std::ofstream file(path);
    write_topology(make_tree({2, 3}), file);
  }
  {
    const Environment variable("GAR_TOPOLOGY", path.string());
    EXPECT_EQ(works(6, {}), "");
    const std::string what = thrown([] { thread_communicators(5); });
    expect_refused(what, "GAR_TOPOLOGY");
  }
  std::filesystem::remove(path);
  const Environment variable("GAR_TOPOLOGY", path.string());
  const std::string what = thrown([] { thread_communicators(6); });
  EXPECT_TRUE(what.starts_with("InvalidArgument: ") || what.starts_with("ParseError: ")) << what;
  EXPECT_NE(what.find("GAR_TOPOLOGY"), std::string::npos) << what;
  EXPECT_NE(what.find(path.string()), std::string::npos) << what;
}

// --- options ---------------------------------------------------------------------------------------------------------

TEST(Options, BadOnesAreRefused) {
  const auto with = [](auto change) {
    CommunicatorOptions options;
    change(options);
    return thrown([&] { thread_communicators(4, options); });
  };
  expect_refused(with([](auto& o) { o.algorithm = "fastest"; }), "fastest");
  expect_refused(with([](auto& o) { o.algorithm = "hcps:3x3"; }), "4");
  expect_refused(with([](auto& o) { o.topology = make_tree({5}); }), "5");
  expect_refused(with([](auto& o) { o.plan = ring(5); }), "5");
  expect_refused(with([](auto& o) { o.timeout_s = 0; }), "timeout");
  expect_refused(with([](auto& o) { o.timeout_s = -3; }), "timeout");
  expect_refused(with([](auto& o) { o.timeout_s = std::nan(""); }), "timeout");
  expect_refused(with([](auto& o) { o.staging_bytes = -1; }), "staging");
  expect_refused(with([](auto& o) { o.latency_bytes = -7; }), "latency");
  expect_refused(thrown([] { thread_communicators(0); }), "0");
  expect_refused(thrown([] { thread_communicators(-2); }), "-2");
}

// A plan that is wrong must not be run: here rank 2's operand gets lost, and a plan that is not an AllReduce.
TEST(Options, WrongPlansAreRefused) {
  Plan lossy = make_explicit(reduce_broadcast(3));
  for (RankProgram& program : lossy.programs) {
    for (Step& step : program.steps) {
      std::erase_if(step.recvs, [](const Message& m) { return m.accumulate && m.peer == 2; });
    }
  }
  lossy.programs[2].steps.erase(lossy.programs[2].steps.begin());
  for (const Plan& plan : {lossy, as_reduce_scatter(ring(3)), as_all_gather(ring(3))}) {
    CommunicatorOptions options;
    options.plan = plan;
    expect_refused(thrown([&] { thread_communicators(3, options); }), "plan");
  }
}

TEST(Options, AnyStagingWorks) {
  using Sizes = std::vector<std::int64_t>;
  const Sizes all{1, 64, 1000, 4096, 65'536, 1 << 24};
  for (const std::int64_t bytes : test::scaled(Sizes{1, 65'536}, all, all)) {
    CommunicatorOptions options;
    options.staging_bytes = bytes;
    const std::string made = thrown([&] { thread_communicators(5, options); });
    if (made != "nothing") {
      expect_refused(made, "staging");
      EXPECT_LT(bytes, 4096) << "one page must do";
      continue;
    }
    for (const char* algorithm : {"", "ring", "cps", "reduce-broadcast", "rhd", "hcps:~3x2"}) {
      options.algorithm = algorithm;
      EXPECT_EQ(works(5, options, bytes < 4096 ? 4001 : 70'001), "") << bytes << " bytes, " << algorithm;
    }
  }
}

// --- arguments -------------------------------------------------------------------------------------------------------

TEST(Arguments, BadOnesAreRefusedAndDoNoHarm) {
  EXPECT_EQ(test::failures(test::run_threads(
                2,
                [](test::Member& member) {
                  Communicator c = member.communicator({});
                  std::vector<float> v(16, 1);
                  std::vector<float> other(8);
                  const auto refused = [&](const std::string& name, const std::function<void()>& call) {
                    const std::string what = thrown(call);
                    test::check(what.starts_with("InvalidArgument: "), name + " gave " + what);
                  };
                  const DataType f = DataType::kFloat32;
                  refused("null in", [&] { c.all_reduce(nullptr, v.data(), 4, f); });
                  refused("null out", [&] { c.all_reduce(v.data(), nullptr, 4, f); });
                  refused("negative count", [&] { c.all_reduce(v.data(), v.data(), -1, f); });
                  refused("band of floats", [&] { c.all_reduce(v.data(), v.data(), 4, f, ReduceOp::kBand); });
                  refused("lxor of halves",
                          [&] { c.all_reduce(v.data(), v.data(), 4, DataType::kFloat16, ReduceOp::kLxor); });
                  refused("type 12", [&] { c.all_reduce(v.data(), v.data(), 4, static_cast<DataType>(12)); });
                  refused("type -1", [&] { c.all_gather(v.data(), v.data(), 4, static_cast<DataType>(-1)); });
                  refused("op 10", [&] { c.all_reduce(v.data(), v.data(), 4, f, static_cast<ReduceOp>(10)); });
                  refused("huge count",
                          [&] { c.all_reduce(v.data(), v.data(), std::numeric_limits<std::int64_t>::max(), f); });
                  refused("huge block", [&] { c.all_gather(v.data(), v.data(), std::int64_t{1} << 61, f); });
                  refused("null, scatter", [&] { c.reduce_scatter(nullptr, v.data(), 4, f); });
                  refused("null, gather", [&] { c.all_gather(v.data(), nullptr, 4, f); });
                  refused("null, start", [&] { static_cast<void>(c.start_all_reduce(nullptr, v.data(), 4, f)); });
                  refused("negative, prepare",
                          [&] { static_cast<void>(c.prepare_all_gather(v.data(), v.data(), -4, f)); });
                  refused("spans of two sizes", [&] { c.all_reduce(std::span<const float>(v), std::span(other)); });
                  refused("partial overlap", [&] { c.all_reduce(v.data(), v.data() + 1, 8, f); });
                  c.all_reduce(nullptr, nullptr, 0, f);
                  c.reduce_scatter(nullptr, nullptr, 0, f);
                  c.all_gather(nullptr, nullptr, 0, f);
                  static_cast<void>(c.start_all_reduce(nullptr, nullptr, 0, f));
                  c.all_reduce(std::span(v));  // The ranks are still in step.
                  test::check(v == std::vector<float>(16, 2), "the sum afterwards");
                })),
            "");
}

TEST(Arguments, SharedMemoryNamesRanksAndSizes) {
  CommunicatorOptions options;
  options.timeout_s = test::kNoLimit;
  const auto join = [&](const std::string& name, int rank, int size) {
    return thrown([&] { shared_memory_communicator(name, rank, size, options); });
  };
  for (const std::string& name :
       {std::string(), std::string("a/b"), std::string("../x"), std::string("a b"), std::string("\n"),
        std::string("a\0b", 3), std::string(101, 'x'), std::string("\xC3\xA4")}) {
    EXPECT_TRUE(join(name, 0, 1).starts_with("InvalidArgument: ")) << "name '" << name << "': " << join(name, 0, 1);
  }
  for (const auto& [rank, size] : std::vector<std::pair<int, int>>{{-1, 2}, {2, 2}, {5, 3}, {0, 0}, {0, -1}}) {
    const std::string what = join(test::unique_name(), rank, size);
    EXPECT_TRUE(what.starts_with("InvalidArgument: ")) << rank << " of " << size << ": " << what;
  }
  EXPECT_EQ(join(std::string(100, 'x').replace(0, test::unique_name("long").size(), test::unique_name("long")), 0, 1),
            "nothing");
  EXPECT_EQ(join(test::unique_name("Az09-_."), 0, 1), "nothing");
}

// --- reports and notes -----------------------------------------------------------------------------------------------

TEST(Report, SaysWhatWasAskedFor) {
  for (const char* algorithm : {"ring", "rhd", "cps", "hcps:2x2", "hring:2x2", "reduce-broadcast", "hcps:~2x2"}) {
    CommunicatorOptions options;
    options.algorithm = algorithm;
    auto communicators = thread_communicators(4, options);
    for (Communicator& communicator : communicators) {
      const PlanReport report = communicator.report(Collective::kAllReduce, 1 << 20, DataType::kFloat32);
      EXPECT_EQ(report.algorithm, algorithm);
      EXPECT_EQ(report.transport, "threads");
      EXPECT_GE(report.num_chunks, 1);
      EXPECT_FALSE(report.reason.empty());
    }
  }
}

TEST(Report, SmallVectorsAreGatheredAtOnce) {
  CommunicatorOptions options;
  auto communicators = thread_communicators(4, options);
  EXPECT_EQ(algorithm_of(communicators[0], 1), "gather");
  EXPECT_NE(algorithm_of(communicators[0], 16 << 20), "gather");
  options.latency_bytes = 0;
  auto without = thread_communicators(4, options);
  EXPECT_NE(algorithm_of(without[0], 1), "gather");
  options.latency_bytes = 400;
  auto up_to = thread_communicators(4, options);
  EXPECT_EQ(algorithm_of(up_to[0], 100), "gather");
  EXPECT_NE(algorithm_of(up_to[0], 101), "gather");
  options.latency_bytes = -1;
  options.algorithm = "ring";
  auto given = thread_communicators(4, options);
  EXPECT_EQ(algorithm_of(given[0], 1), "ring");
}

TEST(Report, EveryRankDecidesTheSame) {
  auto communicators = thread_communicators(6);
  for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather}) {
    for (std::int64_t count = 1; count < 100'000'000; count *= 7) {
      const PlanReport first = communicators[0].report(collective, count, DataType::kFloat64);
      for (Communicator& communicator : communicators) {
        const PlanReport report = communicator.report(collective, count, DataType::kFloat64);
        EXPECT_EQ(report.algorithm, first.algorithm) << count;
        EXPECT_EQ(report.num_chunks, first.num_chunks) << count;
        EXPECT_EQ(report.predicted_seconds, first.predicted_seconds) << count;
      }
    }
  }
}

/// Collects the notes of all ranks.
struct Notes {
  std::mutex mutex;
  std::vector<std::string> lines;
  CommunicatorOptions options(const std::string& algorithm = "") {
    CommunicatorOptions out;
    out.algorithm = algorithm;
    out.log = [this](std::string_view line) {
      const std::scoped_lock lock(mutex);
      lines.emplace_back(line);
    };
    return out;
  }
};

void reduce_often(const CommunicatorOptions& options, int num_ranks, const std::vector<std::int64_t>& sizes, int times,
                  std::string* algorithms = nullptr) {
  EXPECT_EQ(test::failures(test::run_threads(num_ranks,
                                             [&](test::Member& member) {
                                               Communicator communicator = member.communicator(options);
                                               for (const std::int64_t size : sizes) {
                                                 std::vector<float> values(static_cast<std::size_t>(size));
                                                 for (int i = 0; i < times; ++i)
                                                   communicator.all_reduce(std::span(values));
                                                 if (algorithms != nullptr && member.rank == 0)
                                                   *algorithms += algorithm_of(communicator, size) + "\n";
                                               }
                                             })),
            "");
}

TEST(Log, OneNotePerSizeClassAndNotPerCall) {
  Notes once;
  reduce_often(once.options(), 3, {1, 1000, 1'000'000}, 1);
  Notes often;
  reduce_often(often.options(), 3, {1, 1000, 1'000'000, 1, 1000, 1'000'000}, 20);
  EXPECT_GE(once.lines.size(), 2U);
  EXPECT_EQ(often.lines.size(), once.lines.size());
}

TEST(Log, NamesThePlanThatTheReportNames) {
  for (const char* algorithm : {"", "ring", "cps"}) {
    Notes notes;
    std::string reported;
    reduce_often(notes.options(algorithm), 4, {3, 5'000'000}, 1, &reported);
    std::string all;
    for (const std::string& line : notes.lines) {
      all += line + "\n";
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    }
    std::istringstream names(reported);
    for (std::string name; std::getline(names, name);) {
      EXPECT_NE(all.find(name), std::string::npos) << name << " is not among the notes:\n" << all;
    }
  }
}

TEST(Log, GoesToStandardErrorWhereTheEnvironmentSaysSo) {
  CaptureStderr();
  reduce_often({}, 2, {1000}, 5);
  EXPECT_EQ(GetCapturedStderr(), "") << "nothing was asked for";
  const Environment debug("GAR_DEBUG", "INFO");
  CaptureStderr();
  reduce_often({}, 2, {1000}, 1);
  const std::string once = GetCapturedStderr();
  CaptureStderr();
  reduce_often({}, 2, {1000}, 20);
  const std::string often = GetCapturedStderr();
  EXPECT_NE(once.find("gar"), std::string::npos) << once;
  EXPECT_EQ(std::count(once.begin(), once.end(), '\n'), std::count(often.begin(), often.end(), '\n')) << often;
}

}  // namespace
}  // namespace gar
