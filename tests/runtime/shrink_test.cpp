// Communicators that go on without ranks that are lost, between threads and between processes of a host.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "gar/gar.h"
#include "runtime/transports/shared/shared_transport.hpp"
#include "support/rank_groups.hpp"
#include "support/seed.hpp"
#include "support/shrinking.hpp"
#include "support/surviving.hpp"

namespace gar {
namespace {

using test::Member;
using test::shrinking;

std::string words(const Members& members) {
  std::string out = std::to_string(members.generation) + ":";
  for (const int rank : members.ranks) out += " " + std::to_string(rank);
  return out;
}

TEST(Shrink, ThreadsGoOnWithoutOneThatLeaves) {
  const auto body = [&](Member& member) {
    Communicator communicator = member.communicator(shrinking());
    std::vector<double> values(1000, member.rank + 1);
    communicator.all_reduce(values);
    test::check(values[7] == 10, "the first sum");
    test::check(words(communicator.members()) == "0: 0 1 2 3", words(communicator.members()));
    const std::vector<int> block(2, 10 + member.rank);
    std::vector<int> blocks(8, 77);
    Request persistent = communicator.prepare_all_gather(block, blocks);
    if (member.rank == 1) return;
    for (int i = 0; i < 3; ++i) {
      values.assign(values.size(), member.rank + 1);
      communicator.all_reduce(values);
      test::check(values[999] == 8, "a sum of those who are left: " + std::to_string(values[999]));
      test::check(words(communicator.members()) == "1: 0 2 3", words(communicator.members()));
      test::check(communicator.size() == 3 && communicator.rank() == (member.rank == 0 ? 0 : member.rank - 1), "ranks");
    }
    persistent.start();  // as it was prepared, for four
    persistent.wait();
    test::check(blocks == std::vector<int>({10, 10, 0, 0, 12, 12, 13, 13}), "blocks of an earlier generation");
    test::check(words(persistent.members()) == "1: 0 2 3", words(persistent.members()));
    communicator.barrier();
  };
  EXPECT_EQ(test::failures(test::run_threads(4, body)), "");
}

TEST(Shrink, RandomOperationsWithoutFaults) {
  for (const test::Via via : {test::Via::kThreads, test::Via::kProcesses}) {
    const auto body = [&](Member& member) {
      Communicator communicator = member.communicator(shrinking());
      std::uint64_t generation = 0;
      test::SurvivorRun run(communicator, member.rank, test::seed(11), 20'000,
                            [&](std::uint64_t, const Members& members) { generation = members.generation; });
      for (int i = 0; i < 60; ++i) run.step(false);
      test::check(generation == 0, "nobody was lost");
    };
    EXPECT_EQ(test::failures(test::run_ranks(via, 3, body)), "") << to_string(via);
  }
}

/// Processes that share memory under a name of their own.
void start_processes(test::Processes& processes, int size, const test::Body& body) {
  const std::string name = test::unique_name();
  for (int rank = 0; rank < size; ++rank) {
    processes.start([&, rank] {
      Member member{rank, size, [&](const CommunicatorOptions& options) {
                      return shared_memory_communicator(name, rank, size, options);
                    }};
      body(member);
    });
  }
}

TEST(Shrink, ProcessesGoOnWithoutOnesThatDie) {
  constexpr int kSize = 5;
  test::WatchedRanks watched(kSize);
  test::Processes processes;
  start_processes(processes, kSize, [&](Member& member) { watched.run(member, shrinking(), test::seed(21)); });
  ASSERT_TRUE(watched.await(0, 5));
  processes.signal(2, SIGKILL);
  ASSERT_TRUE(watched.await(0, 10));
  processes.signal(0, SIGKILL);  // it has made the memory
  processes.signal(4, SIGKILL);  // three of the four that were left are no majority: but these have died for sure
  ASSERT_TRUE(watched.await(1, 10));
  watched.stop(2);
  const std::vector<test::Processes::Outcome> outcomes = processes.collect();
  EXPECT_EQ(outcomes[1].text, "");
  EXPECT_EQ(outcomes[3].text, "");
}

TEST(Shrink, AStoppedProcessIsLeftOutAndHearsOfIt) {
  constexpr int kSize = 3;
  const std::vector<std::string> texts = test::outcomes_with_one_stopped(
      kSize, 1, test::seed(21),
      [&](test::Processes& processes, const test::Body& body) { start_processes(processes, kSize, body); });
  EXPECT_EQ(texts[0], "");
  EXPECT_EQ(texts[2], "");
  EXPECT_NE(texts[1].find("ranks 0, 2 have gone on without it"), std::string::npos) << texts[1];
}

TEST(Shrink, CallsThatDifferAreAnErrorOnAll) {
  const auto body = [&](Member& member) {
    Communicator communicator = member.communicator(shrinking());
    std::vector<float> values(100);
    communicator.all_reduce(values.data(), values.data(), member.rank == 2 ? 99 : 100, DataType::kFloat32);
  };
  for (const test::Via via : {test::Via::kThreads, test::Via::kProcesses}) {
    for (const std::string& text : test::run_ranks(via, 3, body)) {
      EXPECT_NE(text.find("TransportError"), std::string::npos) << text;
      EXPECT_NE(text.find("called all_reduce of 99 float32"), std::string::npos) << text;
    }
  }
}

TEST(Shrink, OtherTransportsSayThatTheyDoNot) {
  const std::shared_ptr<Segment> segment = make_private_segment(suitable_shape(1, 0));
  auto transport = std::make_unique<SharedTransport>(segment, Membership{0, 1, {}}, 1.0);
  try {
    make_communicator(std::move(transport), shrinking(), make_tree({1}));
    FAIL() << "a communicator";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("expected a communicator over threads, shared memory or TCP"),
              std::string::npos)
        << error.what();
  }
}

TEST(Shrink, TakesOnlyWhatCanRunAgain) {
  std::vector<Communicator> ranks = thread_communicators(2, shrinking());
  std::vector<float> data(4);
  try {
    ranks[0].broadcast(data.data(), 4, DataType::kFloat32, 0);
    FAIL() << "a broadcast";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("on_failure = shrink"), std::string::npos) << error.what();
  }
}

TEST(Shrink, InC) {
  gar_options options = GAR_OPTIONS_INIT;
  options.on_failure = GAR_ON_FAILURE_SHRINK;
  std::vector<gar_comm*> comms(2);
  ASSERT_EQ(gar_comm_create_threads(2, &options, comms.data()), GAR_OK) << gar_last_error();
  std::uint64_t generation = 7;
  int ranks[2] = {5, 5};
  EXPECT_EQ(gar_comm_members(comms[1], static_cast<int*>(ranks), 2, &generation), 2);
  EXPECT_EQ(generation, 0U);
  EXPECT_EQ(ranks[1], 1);
  gar_comm_free(comms[0]);
  float value = 3;
  EXPECT_EQ(gar_all_reduce(comms[1], GAR_IN_PLACE, &value, 1, GAR_FLOAT32, GAR_SUM), GAR_OK) << gar_last_error();
  EXPECT_EQ(value, 3);
  EXPECT_EQ(gar_comm_members(comms[1], static_cast<int*>(ranks), 1, &generation), 1);
  EXPECT_EQ(generation, 1U);
  EXPECT_EQ(ranks[0], 1);
  gar_comm_free(comms[1]);
  options.on_failure = 2;
  EXPECT_EQ(gar_comm_create_threads(2, &options, comms.data()), GAR_ERROR_ARGUMENT);
  EXPECT_EQ(gar_comm_members(nullptr, nullptr, 0, nullptr), -1);
}

}  // namespace
}  // namespace gar
