// Communicators over TCP that go on without ranks that are lost, between processes of this host: with shared memory
// switched off, and with pretended hosts.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "support/seed.hpp"
#include "support/shrinking.hpp"
#include "support/surviving.hpp"
#include "support/tcp_ranks.hpp"

namespace gar {
namespace {

using test::Member;
using test::shrinking;

struct TcpKind {
  const char* name;
  TcpPath path;
  const char* num_hosts;
};

class TcpShrink : public ::testing::TestWithParam<TcpKind> {
 protected:
  void SetUp() override { setenv("GAR_FAKE_HOSTS", GetParam().num_hosts, 1); }
  void TearDown() override { unsetenv("GAR_FAKE_HOSTS"); }
};

TEST_P(TcpShrink, WithoutFaultsNothingShrinks) {
  const auto body = [&](Member& member) {
    Communicator communicator = member.communicator(shrinking());
    test::SurvivorRun run(communicator, member.rank, test::seed(12), 50'000, [](std::uint64_t, const Members&) {});
    for (int i = 0; i < 30; ++i) run.step(false);
    test::check(communicator.members().generation == 0, "nobody was lost");
  };
  EXPECT_EQ(test::failures(test::run_tcp(4, GetParam().path, body)), "");
}

TEST_P(TcpShrink, AMajorityGoesOn) {
  constexpr int kSize = 5;
  test::WatchedRanks watched(kSize);
  test::TcpRanks ranks(kSize, GetParam().path);
  test::Processes processes;
  const test::Body body = [&](Member& member) { watched.run(member, shrinking(), test::seed(22)); };
  ranks.start(processes, body);
  ASSERT_TRUE(watched.await(1, 5));
  processes.signal(0, SIGKILL);  // the store was there
  processes.signal(3, SIGKILL);
  ASSERT_TRUE(watched.await(1, 10));
  processes.signal(4, SIGKILL);
  ASSERT_TRUE(watched.await(1, 10));
  watched.stop(2);
  const std::vector<test::Processes::Outcome> outcomes = processes.collect();
  EXPECT_EQ(outcomes[1].text, "");
  EXPECT_EQ(outcomes[2].text, "");
}

TEST_P(TcpShrink, AStoppedRankIsLeftOutAndHearsOfIt) {
  constexpr int kSize = 4;
  const std::vector<std::string> texts = test::outcomes_with_one_stopped(
      kSize, 1, test::seed(22), [&](test::Processes& processes, const test::Body& body) {
        test::TcpRanks(kSize, GetParam().path).start(processes, body);
      });
  for (const std::size_t rank : {0U, 2U, 3U}) EXPECT_EQ(texts[rank], "") << rank;
  EXPECT_NE(texts[1].find("ranks 0, 2, 3 have gone on without it"), std::string::npos) << texts[1];
}

INSTANTIATE_TEST_SUITE_P(Paths, TcpShrink,
                         ::testing::Values(TcpKind{"tcp", TcpPath::kMessages, "1"},
                                           TcpKind{"hosts", TcpPath::kHierarchy, "2"},
                                           TcpKind{"one_host", TcpPath::kHierarchy, "1"}),
                         [](const auto& kind) { return kind.param.name; });

TEST(TcpShrinkEnd, AMinorityDoesNotGoOn) {
  constexpr int kSize = 3;
  test::WatchedRanks watched(kSize);
  test::TcpRanks ranks(kSize, TcpPath::kMessages);
  test::Processes processes;
  const test::Body body = [&](Member& member) { watched.run(member, shrinking(), test::seed(22)); };
  ranks.start(processes, body);
  ASSERT_TRUE(watched.await(2, 5));
  processes.signal(0, SIGSTOP);  // so that both are lost at once
  processes.signal(1, SIGSTOP);
  processes.signal(0, SIGKILL);
  processes.signal(1, SIGKILL);
  const std::vector<test::Processes::Outcome> outcomes = processes.collect();
  EXPECT_NE(outcomes[2].text.find("which is no majority"), std::string::npos) << outcomes[2].text;
}

}  // namespace
}  // namespace gar
