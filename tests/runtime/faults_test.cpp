// Processes that die, hang, leave or never come: every survivor reports which rank it was, and nothing is left behind.
//
// No test looks at a clock. Deaths are noticed as such: the time limit of these communicators is never reached, so that
// a survivor that waits for it hangs here and is found out. Silence can only be noticed by a time limit; it is short
// then, but long enough for ranks that are merely slow.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gar/communicator.hpp"
#include "support/collective_cases.hpp"
#include "support/rank_groups.hpp"
#include "support/seed.hpp"
#include "support/shared_array.hpp"
#include "support/shm_sandbox.hpp"

namespace gar {
namespace {

using test::check;
using test::Processes;

constexpr double kSilence = 4;  ///< seconds without a sign of life that are a fault in some of the tests

/// All tests of this program, and what must be true before and after each.
class Faults : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // Grandchildren that lose their parent become ours, and would be noticed.
    why_not_private_ = test::enter_shm_sandbox("2g");
  }
  static bool is_private() { return why_not_private_.empty(); }
  void SetUp() override { expect_nothing_left(); }
  void TearDown() override { expect_nothing_left(); }

  static void expect_nothing_left() {
    EXPECT_EQ(test::joined(test::shm_entries(is_private())), "") << "left in /dev/shm";
    EXPECT_EQ(is_private() ? test::num_sysv_objects() : 0, 0);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "there is still a process";
  }

  static CommunicatorOptions within(double timeout_s) {
    CommunicatorOptions out;
    out.timeout_s = timeout_s;
    return out;
  }

 private:
  static inline std::string why_not_private_;
};

/// A group of processes that reduce large vectors for ever, and what its survivors say.
class Job {
 public:
  explicit Job(int size) : size_(size), shared_(static_cast<std::size_t>(size) + 1) {}

  void start(const CommunicatorOptions& options, const std::vector<int>& absent = {}) {
    const std::string name = test::unique_name("fault");
    for (int rank = 0; rank < size_; ++rank) {
      const bool comes = std::find(absent.begin(), absent.end(), rank) == absent.end();
      processes_.start([this, name, rank, options, comes] {
        if (comes) reduce_for_ever(name, rank, options);
      });
    }
  }
  void await_running() { shared_.await(0, static_cast<std::uint64_t>(size_)); }
  void signal(int rank, int number) { processes_.signal(rank, number); }
  void await_report(int rank) { shared_.await(static_cast<std::size_t>(rank) + 1, 1); }
  bool has_reported(int rank) { return shared_[static_cast<std::size_t>(rank) + 1] != 0; }

  /// Every rank but `victim` has thrown a TransportError that names it. While a job starts, a rank may come when the
  /// others have given up; it can only say that rank 0 is not there.
  void expect_reports(int victim, bool is_starting = false) {
    const auto outcomes = processes_.collect();
    for (int rank = 0; rank < size_; ++rank) {
      const auto& outcome = outcomes[static_cast<std::size_t>(rank)];
      if (rank == victim) continue;
      EXPECT_TRUE(outcome.text.starts_with("TransportError: ")) << "rank " << rank << ": " << outcome.text;
      const bool is_late = is_starting && rank != 0 && outcome.text.find("rank 0") != std::string::npos;
      EXPECT_TRUE(is_late || outcome.text.find("rank " + std::to_string(victim)) != std::string::npos)
          << "rank " << rank << " does not name rank " << victim << ": " << outcome.text;
    }
  }

 private:
  void reduce_for_ever(const std::string& name, int rank, const CommunicatorOptions& options) {
    try {
      Communicator communicator = shared_memory_communicator(name, rank, size_, options);
      std::vector<float> values(1'000'003);
      ++shared_[0];
      while (true) {
        std::fill(values.begin(), values.end(), 1.F);
        communicator.all_reduce(std::span(values));
        check(values.front() == static_cast<float>(size_) && values.back() == static_cast<float>(size_), "the sum");
      }
    } catch (...) {
      shared_[static_cast<std::size_t>(rank) + 1] = 1;
      throw;
    }
  }

  int size_;
  test::SharedArray shared_;  ///< number of ranks that run; then, per rank, whether it has thrown
  Processes processes_;
};

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST_F(Faults, OneOfEightIsKilledInTheMiddleOfARun) {
  std::mt19937_64 random(test::seed(1));
  for (int trial = 0; trial < test::scaled(3, 12, 100); ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    const int victim = trial < 8 ? trial : static_cast<int>(random() % 8);
    Job job(8);
    job.start(within(test::kNoLimit));
    job.await_running();
    sleep_for(static_cast<double>(random() % 1000) * 2e-4);
    job.signal(victim, SIGKILL);
    job.expect_reports(victim);
    expect_nothing_left();
  }
}

// At any moment of the start: before a process has come, while it waits for others, while costs are measured. A process
// that dies before it has come is missed when the time limit ends. What a killed rank 0 leaves behind is removed by the
// next job at the latest.
TEST_F(Faults, OneOfEightIsKilledWhileTheyStart) {
  std::mt19937_64 random(test::seed(2));
  for (int trial = 0; trial < test::scaled(2, 6, 60); ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    const int victim = trial % 2 == 0 ? 0 : static_cast<int>(random() % 8);
    Job job(8);
    job.start(within(kSilence));
    sleep_for(static_cast<double>(random() % 1000) * (trial % 3 == 0 ? 1e-4 : 1e-5));
    job.signal(victim, SIGKILL);
    job.expect_reports(victim, true);
    if (is_private()) {
      test::run_processes(1, [](test::Member& member) { member.communicator({}); });
      expect_nothing_left();
    }
  }
}

TEST_F(Faults, OneOfEightHangs) {
  for (const int victim : {0, 5}) {
    Job job(8);
    job.start(within(kSilence));
    job.await_running();
    job.signal(victim, SIGSTOP);
    for (int rank = 0; rank < 8; ++rank) {
      if (rank != victim) job.await_report(rank);
    }
    // It comes to itself, and hears that the others have given up.
    job.signal(victim, SIGCONT);
    job.expect_reports(victim);
    EXPECT_TRUE(job.has_reported(victim));
  }
}

TEST_F(Faults, OneNeverComes) {
  Job without_first(4);
  Job without_another(4);
  without_first.start(within(kSilence), {0});
  without_another.start(within(kSilence), {2});
  without_first.expect_reports(0);
  without_another.expect_reports(2);
}

void reduce(Communicator& communicator, std::size_t count) {
  std::vector<float> values(count, 1);
  communicator.all_reduce(std::span(values));
  check(values == std::vector<float>(count, static_cast<float>(communicator.size())), "the sum");
}

// A process that ends without a word, between two operations.
TEST_F(Faults, OneExitsWithoutLeaving) {
  const auto outcomes = test::run_processes(4, [](test::Member& member) {
    Communicator communicator = member.communicator(within(test::kNoLimit));
    reduce(communicator, 1000);
    if (communicator.rank() == 3) _exit(0);
    try {
      reduce(communicator, 1'000'000);
      throw test::Failure("no error");
    } catch (const TransportError& error) {
      check(std::string(error.what()).find("rank 3") != std::string::npos, error.what());
    }
  });
  EXPECT_EQ(test::failures(outcomes), "");
}

// Leaving is not a fault when all have made the same calls: some are long gone while others still read the last result.
TEST_F(Faults, LeavingAfterTheLastOperationIsNoFault) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{3000}, std::size_t{1'000'003}}) {
    const auto outcomes = test::run_processes(6, [&](test::Member& member) {
      std::mt19937_64 random(test::seed(static_cast<std::uint64_t>(member.rank) + count));
      for (int i = 0; i < test::scaled(5, 20, 200); ++i) {
        Communicator communicator = member.communicator({});
        for (int k = 0; k < i % 3; ++k) reduce(communicator, count);
        if (random() % 4 == 0) sleep_for(0.005);
      }
    });
    EXPECT_EQ(test::failures(outcomes), "") << count;
  }
}

// A child that a process has forked must not pass for the process itself.
TEST_F(Faults, OneThatHasAChildIsKilled) {
  const std::string name = test::unique_name("child");
  test::SharedArray reports(1);  // of the survivors; the child goes on until it has all of them
  Processes processes;
  for (int rank = 0; rank < 3; ++rank) {
    processes.start([&, rank] {
      Communicator communicator = shared_memory_communicator(name, rank, 3, within(kSilence));
      reduce(communicator, 10);
      if (rank == 1) {
        if (fork() == 0) {
          prctl(PR_SET_PDEATHSIG, 0);
          reports.await(0, 2);
          _exit(0);
        }
        raise(SIGKILL);
      }
      try {
        reduce(communicator, 1'000'000);
      } catch (const Error&) {
        ++reports[0];
        throw;
      }
    });
  }
  const auto outcomes = processes.collect();
  for (const int rank : {0, 2}) {
    const std::string& text = outcomes[static_cast<std::size_t>(rank)].text;
    EXPECT_TRUE(text.starts_with("TransportError: ") && text.find("rank 1") != std::string::npos) << text;
  }
  while (waitpid(-1, nullptr, 0) > 0) {  // The child is ours now.
  }
}

// Signals interrupt system calls; that is no fault.
TEST_F(Faults, SignalsAreHarmless) {
  const auto outcomes = test::run_processes(4, [](test::Member& member) {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    sigaction(SIGALRM, &action, nullptr);
    const itimerval often{{0, 700 + member.rank * 50}, {0, 700}};
    setitimer(ITIMER_REAL, &often, nullptr);
    for (int i = 0; i < 5; ++i) {
      Communicator communicator = member.communicator({});
      for (const std::size_t count : {1, 1000, 300'000}) {
        for (int k = 0; k < test::scaled(5, 20, 200); ++k) reduce(communicator, count);
      }
    }
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
  });
  EXPECT_EQ(test::failures(outcomes), "");
}

// The fault hits operations that are under way; requests report it, destructors do not throw or hang.
TEST_F(Faults, RequestsUnderWayReportADeath) {
  for (const bool waits : {true, false}) {
    const std::string name = test::unique_name("requests");
    Processes processes;
    for (int rank = 0; rank < 3; ++rank) {
      processes.start([&, rank] {
        Communicator communicator = shared_memory_communicator(name, rank, 3, within(test::kNoLimit));
        reduce(communicator, 10);
        if (rank == 2) raise(SIGKILL);
        std::vector<float> a(2'000'000);
        std::vector<float> b(10);
        Request first = communicator.start_all_reduce(std::span(a));
        Request second = communicator.start_all_reduce(std::span(b));
        if (!waits) return;
        for (Request* request : {&second, &first}) {
          try {
            request->wait();
            throw test::Failure("no error");
          } catch (const TransportError& error) {
            check(std::string(error.what()).find("rank 2") != std::string::npos, error.what());
          }
        }
      });
    }
    const auto outcomes = processes.collect();
    EXPECT_EQ(outcomes[0].text + outcomes[1].text, "");
  }
}

}  // namespace
}  // namespace gar
