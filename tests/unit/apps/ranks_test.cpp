// Ranks as threads and as processes: one launcher, groups of a world, and what ranks tell each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "gar/errors.hpp"
#include "gar/measure/launch.hpp"
#include "gar/measure/world.hpp"
#include "gar/store.hpp"
#include "gar/tcp.hpp"

namespace gar::measure {
namespace {

struct Outcome {
  int code = 0;
  std::set<std::string> lines;
};
Outcome run(TransportKind transport, int num_ranks, const std::function<int(World&)>& body) {
  Outcome out;
  RankStart start;
  start.num_ranks = num_ranks;
  start.report = [&](std::string_view line) { out.lines.emplace(line); };
  out.code = run_ranks({.transport = transport, .timeout_s = 20}, start, body);
  return out;
}

class Ranks : public ::testing::TestWithParam<TransportKind> {};

TEST_P(Ranks, EndWithTheLargestCode) {
  const Outcome out = run(GetParam(), 3, [](World& world) { return world.rank() == 1 ? 1 : 0; });
  EXPECT_EQ(out.code, 1);
  EXPECT_TRUE(out.lines.empty());
}

TEST_P(Ranks, ReportEqualFailuresOnce) {
  const Outcome out = run(GetParam(), 4, [](World& world) -> int {
    if (world.rank() == 2) throw InvalidArgument("own");
    throw std::runtime_error("common");
  });
  EXPECT_EQ(out.code, kExitRunTime);
  EXPECT_EQ(out.lines, (std::set<std::string>{"rank 2: own", "ranks 0, 1, 3: common"}));
  const Outcome all = run(GetParam(), 2, [](World&) -> int { throw UsageError("everywhere"); });
  EXPECT_EQ(all.code, kExitUsage);
  EXPECT_EQ(all.lines, std::set<std::string>{"everywhere"});
}

// Rank r says r and -r, and its name that many times.
TEST_P(Ranks, TellEachOtherNumbersAndTexts) {
  const Outcome out = run(GetParam(), 3, [](World& world) {
    Control control(world, 20);
    const auto rank = static_cast<double>(world.rank());
    bool ok = control.largest(rank) == 2 && control.smallest(rank) == 0;
    ok = ok && control.largest(std::vector<double>{rank, -rank}) == std::vector<double>{2, 0};
    ok = ok && control.sums(std::vector<std::int64_t>{world.rank(), 1}) == std::vector<std::int64_t>{3, 3};
    const std::vector<std::int64_t> own{std::int64_t{1} << 60, world.rank()};
    const std::vector<std::int64_t> all = control.gather(std::span<const std::int64_t>(own));
    ok = ok && all.size() == 6 && all[4] == std::int64_t{1} << 60 && all[5] == 2;
    std::string name;
    for (int i = 0; i < world.rank(); ++i) name += "rank ";
    ok = ok && control.gather_texts(name) == std::vector<std::string>{"", "rank ", "rank rank "};
    ok = ok && control.any(world.rank() == 1) && !control.any(false);
    return ok ? kExitOk : kExitCheckFailed;
  });
  EXPECT_EQ(out.code, kExitOk);
}

// Two groups with other orders of ranks: rank 0 of a group is the first one named.
TEST_P(Ranks, FormGroups) {
  const Outcome out = run(GetParam(), 3, [](World& world) {
    bool ok = true;
    for (const std::vector<int>& members : {std::vector<int>{2, 0}, std::vector<int>{1, 2}}) {
      const std::unique_ptr<Group> group = world.group(members);
      const auto self = std::find(members.begin(), members.end(), world.rank());
      ok = ok && (group != nullptr) == (self != members.end());
      if (!group) continue;
      Communicator communicator = group->communicator({});
      ok = ok && communicator.rank() == self - members.begin() && communicator.size() == 2;
      std::vector<double> sum{static_cast<double>(world.rank())};
      communicator.all_reduce(std::span(sum));
      ok = ok && sum.front() == members[0] + members[1];
    }
    return ok ? kExitOk : kExitCheckFailed;
  });
  EXPECT_EQ(out.code, kExitOk);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Ranks, ::testing::Values(TransportKind::kThreads, TransportKind::kShm),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

// Also where the world connects ranks for itself: what is asked of the store, and what the error says.
TEST(TcpWorld, HasTheTimeLimitThatItIsGiven) {
  if (!has_tcp()) GTEST_SKIP() << "built without TCP";
  constexpr double kLimit = 7.5;
  std::vector<double> limits;
  std::map<std::string, std::string> values;
  const auto set = [&](const std::string& key, const std::string& value) { values[key] = value; };
  const auto get = [&](const std::string& key, double timeout_s) -> std::string {
    if (values.count(key) != 0) return values[key];
    limits.push_back(timeout_s);
    throw TransportError("nobody has set " + key);
  };
  const LocalRank rank{0, 2, "limits", [] { return false; }};
  const auto message_of = [&](const std::function<void(World&)>& call) -> std::string {
    try {
      call(*tcp_world(rank, callback_store({set, get, {}}), TransportKind::kTcp, kLimit));
    } catch (const TransportError& error) {
      return error.what();
    }
    return "no error";
  };
  std::vector<char> out(16);
  const auto exchange = [&](World& world) { world.exchange(1, out.data(), out.data(), 8); };
  const auto gather = [&](World& world) { world.group({0, 1})->gather_to_first(nullptr, out.data(), 8); };
  for (const std::string& text : {message_of(exchange), message_of(gather)}) {
    EXPECT_NE(text.find("rank 1 has not joined within 7.5 s"), std::string::npos) << text;
  }
  ASSERT_FALSE(limits.empty());
  for (const double limit : limits) EXPECT_LE(limit, kLimit);
}

TEST(TransportKind, HasAWordForEach) {
  for (const char* word : {"auto", "threads", "shm", "mpi", "tcp", "shm+tcp", "cuda-ipc", "nccl"}) {
    ASSERT_TRUE(parse_transport_kind(word)) << word;
    EXPECT_EQ(to_string(*parse_transport_kind(word)), word);
  }
  EXPECT_FALSE(parse_transport_kind("udp"));
  EXPECT_TRUE(is_for_gpus(TransportKind::kNccl));
  EXPECT_FALSE(is_for_gpus(TransportKind::kMpi));
}

}  // namespace
}  // namespace gar::measure
