// Movements over TCP: messages alone, and pretended hosts, where shared memory and TCP carry one program.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "support/movement_cases.hpp"
#include "support/seed.hpp"
#include "support/tcp_ranks.hpp"

namespace gar {
namespace {

using test::Member;

CommunicatorOptions options_of() {
  CommunicatorOptions out;
  out.timeout_s = test::kLongestWait;
  return out;
}

void run_all(Member& member) {
  Communicator communicator = member.communicator(options_of());
  std::uint64_t salt = 0;
  for (const test::MoveCase& c : test::move_cases(member.size, test::seed(static_cast<std::uint64_t>(member.size)))) {
    test::run_move(communicator, c, ++salt);
  }
}

class TcpMovements : public ::testing::TestWithParam<int> {};

TEST_P(TcpMovements, AreRight) {
  EXPECT_EQ(test::failures(test::run_tcp(GetParam(), TcpPath::kMessages, run_all)), "");
}
INSTANTIATE_TEST_SUITE_P(Ranks, TcpMovements, ::testing::Values(2, 3, 6));

TEST(TcpMovementHosts, SharedMemoryAndMessagesTogether) {
  setenv("GAR_FAKE_HOSTS", "2", 1);
  EXPECT_EQ(test::failures(test::run_tcp(5, TcpPath::kHierarchy, run_all)), "");
  unsetenv("GAR_FAKE_HOSTS");
}

// Whoever sends waits to be admitted; nothing else changes.
TEST(TcpMovementAdmission, IsRight) {
  setenv("GAR_MAX_SENDERS", "1", 1);
  EXPECT_EQ(test::failures(test::run_tcp(4, TcpPath::kMessages, run_all)), "");
  unsetenv("GAR_MAX_SENDERS");
}

TEST(TcpMovementMismatch, EveryRankIsToldWhoAskedForWhat) {
  const auto body = [](Member& member) {
    Communicator communicator = member.communicator(options_of());
    std::vector<float> values(50'000);
    try {
      communicator.broadcast(values.data(), 50'000, DataType::kFloat32, member.rank == 2 ? 1 : 0);
    } catch (const TransportError& error) {
      const std::string text = error.what();
      test::check(text.find("from rank 0") != std::string::npos && text.find("from rank 1") != std::string::npos, text);
      return;
    }
    throw test::Failure("no error");
  };
  EXPECT_EQ(test::failures(test::run_tcp(3, TcpPath::kMessages, body)), "");
}

}  // namespace
}  // namespace gar
