// How processes find each other: names, sizes, what earlier runs have left, a full /dev/shm.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
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

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

constexpr double kSilence = 4;  ///< seconds that a rank is waited for, where that is how a fault is noticed

CommunicatorOptions within(double timeout_s) {
  CommunicatorOptions out;
  out.timeout_s = timeout_s;
  return out;
}

void reduce(Communicator& communicator, std::size_t count = 100'003) {
  std::vector<float> values(count, 1);
  communicator.all_reduce(std::span(values));
  check(values == std::vector<float>(count, static_cast<float>(communicator.size())), "the sum");
}

std::string texts(const std::vector<Processes::Outcome>& outcomes) {
  std::vector<std::string> out;
  for (const Processes::Outcome& outcome : outcomes) out.push_back(outcome.text);
  return test::failures(out);
}

class StartUp : public ::testing::Test {
 protected:
  // In a child, so that the parent can have another size next time.
  static std::string sandboxed(const std::string& size, const std::function<void()>& body) {
    Processes process;
    process.start([&] {
      const std::string problem = test::enter_shm_sandbox(size);
      if (!problem.empty()) throw test::Failure("skip: " + problem);
      body();
      const std::string left = test::joined(test::shm_entries(true));
      check(left.empty(), "left in /dev/shm: " + left);
    });
    return process.collect()[0].text;
  }
};

#define EXPECT_SANDBOXED(size, ...)                                                                \
  do {                                                                                             \
    const std::string text = sandboxed(size, __VA_ARGS__);                                         \
    if (text.starts_with("skip: ")) GTEST_SKIP() << "a private /dev/shm is not allowed: " << text; \
    EXPECT_EQ(text, "");                                                                           \
  } while (false)

/// Starts ranks [0, size) of a job in their own processes.
void start_job(Processes& processes, const std::string& name, int size, const CommunicatorOptions& options,
               const std::function<void(Communicator&)>& body) {
  for (int rank = 0; rank < size; ++rank) {
    processes.start([=] {
      Communicator communicator = shared_memory_communicator(name, rank, size, options);
      body(communicator);
    });
  }
}
std::string run_job(const std::string& name, int size,
                    const CommunicatorOptions& options = within(test::kLongestWait)) {
  Processes processes;
  start_job(processes, name, size, options, [](Communicator& communicator) { reduce(communicator); });
  return texts(processes.collect());
}

// Nanoseconds in 63 bits end after 9.2e9 s.
TEST_F(StartUp, ATimeLimitMayBeLongerThanAClockCounts) {
  EXPECT_SANDBOXED("1g", [] {
    for (const double seconds : {1e10, 1e300}) check(run_job("patient", 2, within(seconds)).empty(), "the job");
  });
}

// --- names -----------------------------------------------------------------------------------------------------------

TEST_F(StartUp, TheSameNameAgainAndAgain) {
  EXPECT_SANDBOXED("1g", [] {
    for (int i = 0; i < test::scaled(5, 20, 200); ++i) {
      const std::string problem = run_job("again", 1 + i % 5);
      check(problem.empty(), problem);
    }
  });
}

TEST_F(StartUp, JobsSideBySide) {
  EXPECT_SANDBOXED("2g", [] {
    Processes processes;
    for (int job = 0; job < 6; ++job) {
      start_job(processes, "side-by-side" + std::to_string(job), 1 + job % 4, within(test::kLongestWait),
                [](Communicator& communicator) {
                  for (int i = 0; i < 20; ++i) reduce(communicator);
                });
    }
    const std::string problem = texts(processes.collect());
    check(problem.empty(), problem);
  });
}

// While a job waits for its last rank, another one with its name is turned away, and does it no harm.
TEST_F(StartUp, ANameThatALiveJobWaitsUnder) {
  EXPECT_SANDBOXED("1g", [] {
    Processes first;
    Processes second;
    const auto join = [](Processes& processes, int rank) {
      processes.start([=] {
        Communicator communicator = shared_memory_communicator("taken", rank, 2, within(test::kNoLimit));
        reduce(communicator);
      });
    };
    join(first, 0);
    test::await_shm_entry();
    join(second, 0);
    const auto outcomes = second.collect();
    check(outcomes[0].text.find("taken") != std::string::npos, "the second job's error: " + outcomes[0].text);
    join(first, 1);
    const std::string problem = texts(first.collect());
    check(problem.empty(), "the first job: " + problem);
  });
}

// The name of a job that runs: a second job either gets a world of its own or an error; the first one is not disturbed.
TEST_F(StartUp, TheNameOfAJobThatRuns) {
  EXPECT_SANDBOXED("1g", [] {
    test::SharedArray flags(2);
    Processes first;
    start_job(first, "runs", 3, within(test::kNoLimit), [&](Communicator& communicator) {
      reduce(communicator);
      ++flags[0];
      flags.await(1, 1);
      for (int i = 0; i < 5; ++i) reduce(communicator);
    });
    flags.await(0, 3);
    const std::string second = run_job("runs", 3);
    check(second.empty() || second.find("runs") != std::string::npos, "the second job: " + second);
    flags[1] = 1;
    const std::string problem = texts(first.collect());
    check(problem.empty(), "the first job: " + problem);
  });
}

TEST_F(StartUp, DifferentSizes) {
  EXPECT_SANDBOXED("1g", [] {
    Processes processes;
    for (int rank = 0; rank < 3; ++rank) {
      const double limit = rank == 2 ? kSilence : test::kNoLimit;
      processes.start([=] { shared_memory_communicator("sizes", rank, rank == 1 ? 4 : 3, within(limit)); });
    }
    const auto outcomes = processes.collect();
    for (const Processes::Outcome& outcome : outcomes) {
      check(outcome.text.starts_with("TransportError: ") || outcome.text.starts_with("InvalidArgument: "),
            "no error: " + outcome.text);
    }
    for (const std::size_t rank : {0, 1}) {
      const std::string& said = outcomes[rank].text;
      check(said.find("rank 1") != std::string::npos && said.find('4') != std::string::npos,
            "it does not say what is wrong: " + said);
    }
    // Rank 2 may come when the others have given up; then all it knows is that it has waited for rank 0.
    check(outcomes[2].text.find("rank 0") != std::string::npos, "it does not say what is wrong: " + outcomes[2].text);
  });
}

TEST_F(StartUp, TheSameRankTwice) {
  EXPECT_SANDBOXED("1g", [] {
    Processes processes;
    for (const int rank : {0, 1, 1}) {
      processes.start([=] {
        Communicator communicator = shared_memory_communicator("twice", rank, 3, within(test::kNoLimit));
        reduce(communicator);
      });
    }
    for (const Processes::Outcome& outcome : processes.collect()) {
      check(outcome.text.starts_with("TransportError: "), "no error: " + outcome.text);
      check(outcome.text.find("rank") != std::string::npos, outcome.text);
    }
  });
}

// --- what earlier runs have left -------------------------------------------------------------------------------------

// Rank 0 is killed while it waits: whatever it had made must not disturb later jobs, and goes away with the next one.
TEST_F(StartUp, WhatAKilledJobHasLeft) {
  for (const std::string later : {"killed", "another"}) {
    EXPECT_SANDBOXED("1g", [&] {
      Processes killed;
      killed.start([] { shared_memory_communicator("killed", 0, 2, within(test::kNoLimit)); });
      test::await_shm_entry();
      killed.signal(0, SIGKILL);
      killed.collect();
      const std::string problem = run_job(later, 3);
      check(problem.empty(), problem);
    });
  }
}

TEST_F(StartUp, WholeJobsKilledAtAnyMoment) {
  EXPECT_SANDBOXED("2g", [] {
    std::mt19937_64 random(test::seed(7));
    for (int trial = 0; trial < test::scaled(3, 15, 200); ++trial) {
      Processes killed;
      start_job(killed, "storm", 4, within(test::kNoLimit), [](Communicator& communicator) {
        while (true) reduce(communicator);
      });
      sleep_for(static_cast<double>(random() % 1000) * 1e-4);
      for (int rank = 0; rank < 4; ++rank) killed.signal(rank, SIGKILL);
      killed.collect();
      const std::string problem = run_job(trial % 2 == 0 ? "storm" : "calm", 4);
      check(problem.empty(), "trial " + std::to_string(trial) + ": " + problem);
      const std::string left = test::joined(test::shm_entries(true));
      check(left.empty(), "trial " + std::to_string(trial) + " left " + left);
    }
  });
}

// Files of others in /dev/shm stay.
TEST_F(StartUp, WhatBelongsToOthersIsNotTouched) {
  EXPECT_SANDBOXED("1g", [] {
    for (const char* path : {"/dev/shm/gar", "/dev/shm/garden", "/dev/shm/gartest-notes.txt", "/dev/shm/sem.other"}) {
      std::ofstream(path) << "hello";
    }
    const std::string problem = run_job("careful", 3);
    check(problem.empty(), problem);
    check(test::shm_entries(true).size() == 4, "left: " + test::joined(test::shm_entries(true)));
    for (const std::string& name : test::shm_entries(true)) std::filesystem::remove("/dev/shm/" + name);
  });
}

// --- /dev/shm is full ------------------------------------------------------------------------------------------------

void fill_shm() {
  std::ofstream file("/dev/shm/filler", std::ios::binary);
  const std::vector<char> block(4096, 'x');
  while (file.write(block.data(), static_cast<std::streamsize>(block.size())) && file.flush()) {
  }
}

void expect_no_room(const std::vector<Processes::Outcome>& outcomes) {
  for (const Processes::Outcome& outcome : outcomes) {
    check(outcome.ended && outcome.text.starts_with("TransportError: "), "not a clear error: " + outcome.text);
    check(outcome.text.find("/dev/shm") != std::string::npos || outcome.text.find("shared memory") != std::string::npos,
          "it does not say what is full: " + outcome.text);
  }
}

// The memory is not in /dev/shm, which is small in many containers.
TEST_F(StartUp, NoRoomInShm) {
  EXPECT_SANDBOXED("1m", [] {
    fill_shm();
    const std::string problem = run_job("full", 4);
    check(problem.empty(), problem);
    std::filesystem::remove("/dev/shm/filler");
  });
}

TEST_F(StartUp, NoRoomForAMeetingPlace) {
  EXPECT_SANDBOXED("1m,nr_inodes=3", [] {
    for (int i = 0; std::ofstream("/dev/shm/filler" + std::to_string(i)).is_open(); ++i) {
    }
    Processes processes;
    start_job(processes, "full", 4, within(test::kNoLimit), [](Communicator&) {});
    expect_no_room(processes.collect());
    for (const std::string& name : test::shm_entries(true)) std::filesystem::remove("/dev/shm/" + name);
  });
}

TEST_F(StartUp, MoreMemoryThanThereIs) {
  EXPECT_SANDBOXED("8m", [] {
    CommunicatorOptions options = within(test::kNoLimit);
    options.staging_bytes = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    Processes processes;
    start_job(processes, "tight", 4, options, [](Communicator&) {});
    expect_no_room(processes.collect());
    const std::string problem = run_job("tight", 1);
    check(problem.empty(), "afterwards: " + problem);
  });
}

// Memory that a communicator was promised is there: filling /dev/shm afterwards does not make it crash (SIGBUS).
TEST_F(StartUp, ShmFillsUpLater) {
  EXPECT_SANDBOXED("64m", [] {
    test::SharedArray flags(2);
    Processes processes;
    CommunicatorOptions options = within(test::kNoLimit);
    options.staging_bytes = 4 << 20;
    start_job(processes, "later", 4, options, [&](Communicator& communicator) {
      ++flags[0];
      flags.await(1, 1);
      reduce(communicator, 3'000'000);
      reduce(communicator, 1);
    });
    flags.await(0, 4);
    fill_shm();
    flags[1] = 1;
    const std::string problem = texts(processes.collect());
    std::filesystem::remove("/dev/shm/filler");
    check(problem.empty(), problem);
  });
}

}  // namespace
}  // namespace gar
