// Communicators over TCP that take newcomers in, between processes of this host.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gar/communicator.hpp"
#include "gar/gar_tcp.h"
#include "support/growing.hpp"
#include "support/seed.hpp"

namespace gar {
namespace {

using test::GrowingJob;
using test::Processes;

/// The texts of processes that were not killed; the first one is the store.
std::string failures_of(const std::vector<Processes::Outcome>& outcomes) {
  std::string out;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const bool is_wrong = outcomes[i].signal != SIGKILL && !outcomes[i].text.empty();
    if (is_wrong) out += "process " + std::to_string(i) + ": " + outcomes[i].text + "\n";
  }
  return out;
}

struct GrowKind {
  const char* name;
  TcpPath path;
  const char* num_hosts;
};

class TcpGrow : public ::testing::TestWithParam<GrowKind> {
 protected:
  void SetUp() override { setenv("GAR_FAKE_HOSTS", GetParam().num_hosts, 1); }
  void TearDown() override { unsetenv("GAR_FAKE_HOSTS"); }

  /// Starts the store, and this many members.
  static std::vector<int> begin(GrowingJob& job, Processes& processes, int size) {
    job.start_store(processes);
    std::vector<int> out;
    for (int rank = 0; rank < size; ++rank) out.push_back(job.start_member(processes, rank, size));
    return out;
  }
};

TEST_P(TcpGrow, NewcomersAreTakenIn) {
  GrowingJob job(GetParam().path);
  Processes processes;
  begin(job, processes, 3);
  job.await_steps(0, 2);
  job.start_newcomer(processes);
  job.await_size(4);
  job.start_newcomer(processes);
  job.start_newcomer(processes);
  job.await_size(6);
  job.await_steps(5, 3);
  job.end();
  EXPECT_EQ(failures_of(processes.collect()), "");
}

TEST_P(TcpGrow, OneRankBecomesThree) {
  GrowingJob job(GetParam().path);
  Processes processes;
  begin(job, processes, 1);
  job.start_newcomer(processes);
  job.start_newcomer(processes);
  job.await_size(3);
  job.await_steps(2, 2);
  job.end();
  EXPECT_EQ(failures_of(processes.collect()), "");
}

TEST_P(TcpGrow, WhoIsLostIsReplacedAgainAndAgain) {
  GrowingJob job(GetParam().path);
  Processes processes;
  std::vector<int> ranks = begin(job, processes, 3);
  for (std::size_t lost = 0; lost < 4; ++lost) {  // also the lowest one, and newcomers
    job.await_size(3);
    processes.signal(ranks[lost], SIGKILL);
    job.await_size(2);
    ranks.push_back(job.start_newcomer(processes));
  }
  job.await_size(3);
  job.end();
  EXPECT_EQ(failures_of(processes.collect()), "");
}

TEST_P(TcpGrow, NewcomersThatDieHoldNobodyUp) {
  GrowingJob job(GetParam().path);
  Processes processes;
  begin(job, processes, 2);
  std::mt19937 dice(static_cast<unsigned>(test::seed(31)));
  constexpr int kNumDying = 12;
  for (int i = 0; i < kNumDying; ++i) {
    const int seat = job.free_seat();
    const int newcomer = job.start_newcomer(processes);
    if (i % 3 > 0) job.await_seat(seat);
    std::this_thread::sleep_for(std::chrono::microseconds(dice() % (i % 3 > 1 ? 60'000 : 4'000)));
    processes.signal(newcomer, SIGKILL);
    job.await_steps(0, 1);
  }
  job.start_newcomer(processes, 1);
  job.await_token(1);
  job.await_steps(1, 3);
  job.end();
  EXPECT_EQ(failures_of(processes.collect()), "");
}

TEST_P(TcpGrow, AMemberThatDiesMeanwhileIsLeftOut) {
  std::mt19937 dice(static_cast<unsigned>(test::seed(32)));
  for (int round = 0; round < 4; ++round) {
    GrowingJob job(GetParam().path);
    Processes processes;
    const std::vector<int> ranks = begin(job, processes, 4);
    job.await_steps(0, 1);
    job.start_newcomer(processes, 1);
    if (round % 2 == 1) job.await_seat(0);
    std::this_thread::sleep_for(std::chrono::microseconds(dice() % 40'000));
    processes.signal(ranks[static_cast<std::size_t>(round % 4)], SIGKILL);
    job.await_token(1);
    job.await_steps(4, 2);
    job.end();
    EXPECT_EQ(failures_of(processes.collect()), "") << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, TcpGrow,
                         ::testing::Values(GrowKind{"tcp", TcpPath::kMessages, "1"},
                                           GrowKind{"hosts", TcpPath::kHierarchy, "2"},
                                           GrowKind{"one_host", TcpPath::kHierarchy, "1"}),
                         [](const auto& kind) { return kind.param.name; });

TEST(TcpGrowing, AStoppedNewcomerIsGivenUp) {
  GrowingJob job(TcpPath::kMessages, 8);
  Processes processes;
  job.start_store(processes);
  for (int rank = 0; rank < 3; ++rank) job.start_member(processes, rank, 3);
  job.await_steps(0, 1);
  const int stopped = job.start_newcomer(processes);
  job.await_seat(0);
  processes.signal(stopped, SIGSTOP);
  job.await_steps(0, 1);
  job.start_newcomer(processes, 1);
  job.await_token(1);
  job.await_steps(2, 4);
  processes.signal(stopped, SIGKILL);
  job.end();
  EXPECT_EQ(failures_of(processes.collect()), "");
}

TEST(TcpGrowing, WhoIsNotTakenInHearsOfIt) {
  GrowingJob job(TcpPath::kMessages);
  Processes processes;
  job.start_store(processes);
  test::SharedArray ended(1);
  const auto refused = [&](const char* name, const std::string& text) {
    try {
      join_tcp(*job.client(), name, 1);
    } catch (const TransportError& error) {
      ++ended[0];
      test::check(std::string(error.what()).find(text) != std::string::npos, error.what());
      return;
    }
    throw test::Failure("it was taken in");
  };
  processes.start([&] { refused("nobody", "there is no communicator 'nobody'"); });
  processes.start([&] {
    const std::unique_ptr<Store> store = job.client();
    const Communicator member = tcp_communicator(*store, "job", 0, 1, job.options(), job.tcp());
    refused("job", "no member of 'job' has taken this process in");  // nobody calls grow
  });
  ended.await(0, 2);
  job.end();
  EXPECT_EQ(failures_of(processes.collect()), "");
}

TEST(TcpGrowing, WithoutItsStoreAJobStaysAsItIs) {
  GrowingJob job(TcpPath::kMessages);
  Processes processes;
  test::SharedArray seen(2);
  const std::string secret = make_secret();
  LoopbackListener listener;
  const int server = processes.start([&] {
    const StoreServer store(listener.take(), secret);
    seen.await(1, 1);
  });
  for (int rank = 0; rank < 2; ++rank) {
    processes.start([&, rank] {
      const std::unique_ptr<Store> store = tcp_store(listener.address(), secret, test::kLongestWait);
      Communicator communicator = tcp_communicator(*store, "job", rank, 2, job.options(), job.tcp());
      test::check(communicator.grow().problem.empty(), "nobody waits, and nothing is wrong");
      ++seen[0];
      seen.await(1, 1);
      const Growth growth = communicator.grow();
      test::check(growth.num_new == 0, "nobody");
      test::check(rank != 0 || growth.problem.find("store") != std::string::npos, "it says why: " + growth.problem);
      std::vector<int> values{rank};
      communicator.all_reduce(values);
      test::check(values.front() == 1 && communicator.members().generation == 0, "it goes on");
    });
  }
  seen.await(0, 2);
  processes.signal(server, SIGKILL);
  seen[1] = 1;
  EXPECT_EQ(failures_of(processes.collect()), "");
}

TEST(TcpGrowing, RequestsThatWerePreparedBefore) {
  GrowingJob job(TcpPath::kMessages);
  Processes processes;
  job.start_store(processes);
  for (int rank = 0; rank < 2; ++rank) {
    processes.start([&, rank] {
      const std::unique_ptr<Store> store = job.client();
      Communicator communicator = tcp_communicator(*store, "job", rank, 2, job.options(), job.tcp());
      std::vector<int> values{rank + 1};
      std::vector<int> blocks(2);
      Request sum = communicator.prepare_all_reduce(values);
      Request gathered = communicator.prepare_all_gather(std::span<const int>(values), blocks);
      while (communicator.grow().num_new == 0) {
      }
      test::check(communicator.size() == 3, "three");
      sum.start();
      sum.wait();
      test::check(values.front() == 6, "a sum of all three: " + std::to_string(values.front()));
      std::string refusal;
      try {
        gathered.start();
      } catch (const InvalidArgument& error) {
        refusal = error.what();
      }
      test::check(refusal.find("prepared for 2 ranks, and 3 are members now") != std::string::npos, refusal);
      communicator.barrier();
    });
  }
  processes.start([&] {
    const std::unique_ptr<Store> store = job.client();
    Communicator communicator = join_tcp(*store, "job", test::kLongestWait, job.options());
    std::vector<int> values{3};
    communicator.all_reduce(values);
    test::check(values.front() == 6, "a sum of all three: " + std::to_string(values.front()));
    communicator.barrier();
    job.end();
  });
  EXPECT_EQ(failures_of(processes.collect()), "");
}

TEST(TcpGrowing, OnlyWhereItWasAskedFor) {
  CommunicatorOptions options;
  options.on_failure = OnFailure::kShrink;
  std::vector<Communicator> threads = thread_communicators(1, options);
  EXPECT_THROW(threads.front().grow(), InvalidArgument);
  options.on_failure = OnFailure::kShrinkAndGrow;
  EXPECT_THROW(thread_communicators(2, options), InvalidArgument);
  EXPECT_THROW(shared_memory_communicator(test::unique_name(), 0, 1, options), InvalidArgument);
}

// --- C ---------------------------------------------------------------------------------------------------------------

/// A store that threads share, as functions of C.
struct SharedValues {
  std::mutex mutex;
  std::map<std::string, std::string> values;

  static int set(const char* key, const void* value, size_t bytes, void* user) {
    auto& self = *static_cast<SharedValues*>(user);
    const std::lock_guard lock(self.mutex);
    self.values[key] = std::string(static_cast<const char*>(value), bytes);
    return 0;
  }
  static int get(const char* key, double timeout_s, void* value, size_t capacity, size_t* bytes, void* user) {
    auto& self = *static_cast<SharedValues*>(user);
    const auto begin = test::Clock::now();
    while (true) {
      {
        const std::lock_guard lock(self.mutex);
        const auto found = self.values.find(key);
        if (found != self.values.end()) {
          *bytes = found->second.size();
          std::copy_n(found->second.begin(), std::min(capacity, *bytes), static_cast<char*>(value));
          return 0;
        }
      }
      if (test::seconds_since(begin) > timeout_s) return 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
};

TEST(TcpGrowing, InC) {
  SharedValues values;
  const gar_store store{SharedValues::set, SharedValues::get, &values};
  gar_options options = GAR_OPTIONS_INIT;
  options.on_failure = GAR_ON_FAILURE_SHRINK_AND_GROW;
  const auto use = [](gar_comm* comm, int self) {
    int value = self + 1;
    EXPECT_EQ(gar_all_reduce(comm, GAR_IN_PLACE, &value, 1, GAR_INT32, GAR_SUM), GAR_OK) << gar_last_error();
    EXPECT_EQ(value, 6);
    int ranks[3] = {};
    std::uint64_t generation = 0;
    EXPECT_EQ(gar_comm_members(comm, static_cast<int*>(ranks), 3, &generation), 3);
    EXPECT_EQ(ranks[2], 2);
    EXPECT_EQ(generation, 1U);
    gar_comm_free(comm);
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      gar_comm* comm = nullptr;
      ASSERT_EQ(gar_comm_create_tcp(&store, "job", rank, 2, "127.0.0.0/8", &options, &comm), GAR_OK)
          << gar_last_error();
      int num_new = 0;
      while (num_new == 0) ASSERT_EQ(gar_comm_grow(comm, &num_new), GAR_OK) << gar_last_error();
      EXPECT_EQ(num_new, 1);
      use(comm, rank);
    });
  }
  threads.emplace_back([&] {
    gar_comm* comm = nullptr;
    ASSERT_EQ(gar_comm_join_tcp(&store, "job", test::kLongestWait, "127.0.0.0/8", &options, &comm), GAR_OK)
        << gar_last_error();
    use(comm, 2);
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gar_comm_grow(nullptr, nullptr), GAR_ERROR_ARGUMENT);
}

}  // namespace
}  // namespace gar
