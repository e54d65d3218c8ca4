// Collectives over TCP between processes of this host: with shared memory switched off, and with pretended hosts, where
// shared memory and TCP carry one plan. Then what can go wrong: calls that differ, ranks that are killed or stopped,
// and strangers.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "runtime/transports/tcp/sockets.hpp"
#include "support/collective_cases.hpp"
#include "support/configurations.hpp"
#include "support/rank_groups.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "support/shared_array.hpp"
#include "support/tcp_ranks.hpp"

namespace gar {
namespace {

using test::Member;

/// Without an algorithm the network is measured.
CommunicatorOptions options_of(const std::string& algorithm, int size) {
  CommunicatorOptions out;
  out.algorithm = algorithm;
  if (!algorithm.empty()) out.topology = make_tree({size});
  out.timeout_s = test::kLongestWait;
  return out;
}

/// Cases over one communicator for each algorithm.
void run_algorithms(Member& member, const std::vector<std::string>& algorithms, int num_cases) {
  std::uint64_t salt = 0;
  for (const std::string& algorithm : algorithms) {
    Communicator communicator = member.communicator(options_of(algorithm, member.size));
    test::check(communicator.rank() == member.rank && communicator.size() == member.size, "wrong rank or size");
    test::CaseDealer dealer(test::seed(std::hash<std::string>{}(algorithm)));
    for (int i = 0; i <= num_cases; ++i) {
      const test::Case c = i == num_cases ? dealer.deal_large(member.size) : dealer.deal(member.size);
      try {
        test::run_case(communicator, c, ++salt);
      } catch (const std::exception& error) {
        throw test::Failure(algorithm + ": " + test::to_string(c) + ": " + test::text_of(error));
      }
    }
  }
}

class TcpMatrix : public ::testing::TestWithParam<int> {};

TEST_P(TcpMatrix, IsRight) {
  const int size = GetParam();
  std::vector<std::string> algorithms{"", "ring", "cps", "latency"};
  if (size == 4) algorithms.insert(algorithms.end(), {"rhd", "hcps:2x2", "gentree+"});
  std::vector<test::Configuration> plans;
  if (size == 4) {
    for (test::Configuration& one : test::configurations(size, test::seed(4), 1)) {
      if (one.options.plan) plans.push_back(std::move(one));
    }
  }
  const auto body = [&](Member& member) {
    run_algorithms(member, algorithms, test::scaled(3, 8, 8));
    std::uint64_t salt = 1000;
    for (const test::Configuration& one : plans) {
      Communicator communicator = member.communicator(one.options);
      test::CaseDealer dealer(test::seed(salt));
      for (int i = 0; i < test::scaled(1, 4, 4); ++i) test::run_case(communicator, dealer.deal(size), ++salt);
      test::run_case(communicator, dealer.deal_large(size), ++salt);
    }
  };
  EXPECT_EQ(test::failures(test::run_tcp(size, TcpPath::kMessages, body)), "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, TcpMatrix, ::testing::Values(2, 3, 4, 7));

TEST(TcpHosts, SharedMemoryAndTcpCarryOnePlan) {
  setenv("GAR_FAKE_HOSTS", "2", 1);
  const auto body = [&](Member& member) {
    run_algorithms(member, {"", "ring", "cps"}, 6);
    Communicator communicator = member.communicator(options_of("ring", member.size));
    const PlanReport report = communicator.report(Collective::kAllReduce, 100'000, DataType::kFloat32);
    test::check(report.transport == "shm+tcp", "the transport is " + report.transport);
  };
  EXPECT_EQ(test::failures(test::run_tcp(5, TcpPath::kHierarchy, body)), "");
  unsetenv("GAR_FAKE_HOSTS");
}

TEST(TcpHosts, OneHostNeedsNoTcp) {
  const auto body = [&](Member& member) {
    Communicator communicator = member.communicator(options_of("", member.size));
    test::run_case(communicator, {.count = 1000}, 1);
    test::check(communicator.report(Collective::kAllReduce, 1000, DataType::kFloat32).transport == "shm", "not shm");
  };
  EXPECT_EQ(test::failures(test::run_tcp(3, TcpPath::kHierarchy, body)), "");
}

/// Admission changes when messages leave, and nothing else.
TEST(TcpAdmission, IsRight) {
  setenv("GAR_MAX_SENDERS", "1", 1);
  const auto body = [&](Member& member) { run_algorithms(member, {"cps", "hcps:3x2"}, test::scaled(3, 8, 8)); };
  EXPECT_EQ(test::failures(test::run_tcp(6, TcpPath::kMessages, body)), "");
  unsetenv("GAR_MAX_SENDERS");
}

TEST(TcpRequests, SeveralAreUnderWay) {
  const auto body = [&](Member& member) {
    Communicator communicator = member.communicator(options_of("ring", member.size));
    std::vector<std::vector<float>> vectors(5, std::vector<float>(50'000, static_cast<float>(member.rank + 1)));
    std::vector<Request> requests;
    for (auto& vector : vectors) requests.push_back(communicator.start_all_reduce(vector));
    for (Request& request : requests) request.wait();
    const auto sum = static_cast<float>(member.size * (member.size + 1) / 2);
    for (const auto& vector : vectors) {
      for (const float value : vector) test::check(value == sum, "a wrong sum");
    }
  };
  EXPECT_EQ(test::failures(test::run_tcp(3, TcpPath::kMessages, body)), "");
}

// --- what goes wrong -------------------------------------------------------------------------------------------------

void expect_in_all(const std::vector<test::Processes::Outcome>& outcomes, const std::string& text, int except = -1) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (static_cast<int>(rank) == except) continue;
    EXPECT_NE(outcomes[rank].text.find(text), std::string::npos) << "rank " << rank << ": " << outcomes[rank].text;
    EXPECT_NE(outcomes[rank].text.find("TransportError"), std::string::npos) << outcomes[rank].text;
  }
}

TEST(TcpFaults, CallsThatDifferAreFoundOut) {
  for (const std::int64_t count : {std::int64_t{10}, std::int64_t{200'000}}) {
    const auto body = [&](Member& member) {
      Communicator communicator = member.communicator(options_of("", member.size));
      std::vector<float> vector(static_cast<std::size_t>(count) + 1);
      communicator.all_reduce(vector.data(), vector.data(), count, DataType::kFloat32);
      communicator.all_reduce(vector.data(), vector.data(), count + (member.rank == 2 ? 1 : 0), DataType::kFloat32);
    };
    const std::vector<std::string> outcomes = test::run_tcp(4, TcpPath::kMessages, body);
    for (const std::string& text : outcomes) {
      EXPECT_NE(text.find("rank 2"), std::string::npos) << text;
      EXPECT_NE(text.find("called"), std::string::npos) << text;
    }
  }
}

TEST(TcpFaults, OptionsThatDifferAreFoundOut) {
  const auto body = [&](Member& member) {
    member.communicator(options_of(member.rank == 1 ? "ring" : "cps", member.size));
  };
  for (const std::string& text : test::run_tcp(3, TcpPath::kMessages, body)) {
    EXPECT_NE(text.find("rank 1 has another algorithm"), std::string::npos) << text;
  }
  const auto overlaps = [&](Member& member) {
    CommunicatorOptions options = options_of("", member.size);
    if (member.rank == 2) options.overlap = 1.25;
    member.communicator(options);
  };
  for (const std::string& text : test::run_tcp(3, TcpPath::kMessages, overlaps)) {
    EXPECT_NE(text.find("rank 2 has another overlap (GAR_TOPOLOGY) than rank 0"), std::string::npos) << text;
  }
}

/// AllReduces until something happens. `seen[0]` counts them on rank 0, `seen[1]` the ranks that have failed.
void run_endlessly(Member& member, double timeout_s, test::SharedArray& seen) {
  CommunicatorOptions options = options_of("ring", member.size);
  options.timeout_s = timeout_s;
  Communicator communicator = member.communicator(options);
  std::vector<float> vector(100'000);
  try {
    while (true) {
      communicator.all_reduce(vector);
      if (member.rank == 0) ++seen[0];
    }
  } catch (const TransportError&) {
    ++seen[1];
    throw;
  }
}

class TcpDeath : public ::testing::TestWithParam<TcpPath> {};

TEST_P(TcpDeath, OfARankIsReportedByAll) {
  setenv("GAR_FAKE_HOSTS", "2", 1);
  test::SharedArray seen(2);
  test::TcpRanks ranks(4, GetParam());
  test::Processes processes;
  const test::Body body = [&](Member& member) { run_endlessly(member, test::kLongestWait, seen); };
  ranks.start(processes, body);
  seen.await(0, 3);
  processes.signal(2, SIGKILL);
  expect_in_all(processes.collect(), "rank 2 has died", 2);
  unsetenv("GAR_FAKE_HOSTS");
}

TEST_P(TcpDeath, AStoppedRankIsNamed) {
  setenv("GAR_FAKE_HOSTS", "2", 1);
  test::SharedArray seen(2);
  test::TcpRanks ranks(4, GetParam());
  test::Processes processes;
  const test::Body body = [&](Member& member) { run_endlessly(member, 3, seen); };
  ranks.start(processes, body);
  seen.await(0, 3);
  processes.signal(1, SIGSTOP);
  seen.await(1, 3);
  processes.signal(1, SIGCONT);  // it hears that the others have given up
  expect_in_all(processes.collect(), "rank 1 has been silent for 3 s", 1);
  unsetenv("GAR_FAKE_HOSTS");
}

INSTANTIATE_TEST_SUITE_P(Paths, TcpDeath, ::testing::Values(TcpPath::kMessages, TcpPath::kHierarchy),
                         [](const auto& path) { return path.param == TcpPath::kMessages ? "tcp" : "hosts"; });

TEST(TcpFaults, ARankThatNeverComesIsNamed) {
  const auto body = [&](Member& member) {
    if (member.rank == 2) return;
    CommunicatorOptions options = options_of("", member.size);
    options.timeout_s = 0.5;
    member.communicator(options);
  };
  const std::vector<std::string> outcomes = test::run_tcp(3, TcpPath::kMessages, body);
  for (const int rank : {0, 1}) {
    const std::string& text = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_NE(text.find("rank 2 has not joined within 0.5 s"), std::string::npos) << text;
  }
}

TEST(TcpFaults, ARankThatLeavesIsNamed) {
  const auto body = [&](Member& member) {
    Communicator communicator = member.communicator(options_of("ring", member.size));
    if (member.rank == 1) return;
    std::vector<float> vector(100'000);
    communicator.all_reduce(vector);
  };
  const std::vector<std::string> outcomes = test::run_tcp(3, TcpPath::kMessages, body);
  EXPECT_EQ(outcomes[1], "");
  for (const int rank : {0, 2}) {
    const std::string& text = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_NE(text.find("rank 1 has left the communicator"), std::string::npos) << text;
  }
}

/// While the ranks join and run, others call the store: garbage, silence, clients without the secret.
TEST(TcpStrangers, DisturbNobody) {
  test::TcpRanks ranks(3, TcpPath::kMessages);
  test::Processes processes;
  const test::Body body = [&](Member& member) {
    for (int i = 0; i < 3; ++i) run_algorithms(member, {"ring"}, 2);
  };
  ranks.start(processes, body);
  const Address at = resolve(ranks.address(), "the store");
  std::vector<File> strangers;
  for (int i = 0; i < 600; ++i) {
    File stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(stranger.fd, at.get(), at.length) != 0) break;  // the job is over
    const std::string garbage(static_cast<std::size_t>(i % 97), static_cast<char>(i));
    if (!garbage.empty()) send(stranger.fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
    if (i % 2 == 0) strangers.push_back(std::move(stranger));
  }
  std::vector<std::string> outcomes;
  for (const test::Processes::Outcome& outcome : processes.collect()) outcomes.push_back(outcome.text);
  EXPECT_EQ(test::failures(outcomes), "");
}

}  // namespace
}  // namespace gar
