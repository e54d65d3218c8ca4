// Meeting places while others of the same user remove what killed processes have left.
#include "runtime/transports/shared/meeting_place.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gar/errors.hpp"
#include "support/collective_cases.hpp"
#include "support/rank_groups.hpp"
#include "support/shm_sandbox.hpp"

namespace gar {
namespace {

using test::check;
using test::Processes;

/// What happens once, just before this thread takes a lock: moments that a race would find only now and then.
thread_local std::function<void()> before_lock;

/// Runs the body in a private /dev/shm, where that is allowed: places of other tests are not in the way then.
std::string sandboxed(const std::function<void(bool is_private)>& body) {
  Processes process;
  process.start([&] { body(test::enter_shm_sandbox("64m").empty()); });
  return process.collect()[0].text;
}

/// Threads that do nothing but sweep.
class Sweepers {
 public:
  explicit Sweepers(int number) {
    for (int i = 0; i < number; ++i) {
      threads_.emplace_back([this] {
        while (!is_over_) {
          sweep_meeting_places();
          ++num_sweeps_;
          std::this_thread::yield();
        }
      });
    }
  }
  ~Sweepers() {
    is_over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Sweepers(const Sweepers&) = delete;
  Sweepers& operator=(const Sweepers&) = delete;
  [[nodiscard]] int num_sweeps() const { return num_sweeps_; }

 private:
  std::atomic<bool> is_over_ = false;
  std::atomic<int> num_sweeps_ = 0;
  std::vector<std::thread> threads_;
};

/// Somebody visits the place; what is handed out.
std::optional<Handed> visited(MeetingPlace& place, const std::string& name, const std::string& greeting) {
  std::optional<Handed> out;
  std::atomic<bool> is_done = false;
  std::thread visitor([&] {
    out = visit_meeting_place(name, true, static_cast<int>(1000 * test::kLongestWait));
    is_done = true;
  });
  while (!is_done) place.serve(std::as_bytes(std::span(greeting)), -1, 1);
  visitor.join();
  return out;
}

// Between the moment when a directory is made and the one when its lock is held it looks like a leftover; afterwards
// nobody may take it away.
TEST(MeetingPlaces, AreNotSweptWhileTheirMakerLives) {
  const std::string problem = sandboxed([](bool /*is_private*/) {
    const std::string name = test::unique_name("swept");
    const Sweepers sweepers(2);
    const int number = test::scaled(300, 2'000, 20'000);
    for (int i = 0; i < number || sweepers.num_sweeps() < number; ++i) {
      const std::string greeting = "place " + std::to_string(i);
      MeetingPlace place(name);
      const std::optional<Handed> handed = visited(place, name, greeting);
      check(handed.has_value(), greeting + " is not there any more");
      check(handed->greeting == greeting, greeting + " hands out: " + handed->greeting);
    }
  });
  EXPECT_EQ(problem, "");
}

// The same race at its narrowest: the whole sweep falls between the maker's open and its lock, which then is one on
// nothing.
TEST(MeetingPlaces, AreMadeAnewWhenSweptBeforeTheirLock) {
  const std::string problem = sandboxed([](bool /*is_private*/) {
    const std::string name = test::unique_name("anew");
    int num_sweeps = 0;
    before_lock = [&] {
      sweep_meeting_places();
      ++num_sweeps;
    };
    MeetingPlace place(name);
    check(num_sweeps == 1, "no lock was taken");
    check(visited(place, name, "hello").has_value(), "the place is not there");
  });
  EXPECT_EQ(problem, "");
}

// The other half: what nobody holds goes away, complete or not.
TEST(MeetingPlaces, OfTheDeadAreSwept) {
  if (sandboxed([](bool is_private) { check(is_private, "none"); }) == "none") {
    GTEST_SKIP() << "a private /dev/shm is not allowed";
  }
  const std::string problem = sandboxed([](bool) {
    Processes killed;
    killed.start([] {
      const MeetingPlace place("dead");
      while (true) pause();
    });
    test::await_shm_entry();
    killed.signal(0, SIGKILL);
    killed.collect();
    const MeetingPlace alive("alive");
    const std::filesystem::path home = "/dev/shm/gar-" + std::to_string(geteuid());
    check(mkdir((home / ("gar-" + std::to_string(geteuid()) + "-half-made~")).c_str(), 0700) == 0, "mkdir");
    check(test::shm_entries(true).size() == 3, "before: " + test::joined(test::shm_entries(true)));
    sweep_meeting_places();
    check(test::shm_entries(true).size() == 1, "after: " + test::joined(test::shm_entries(true)));
  });
  EXPECT_EQ(problem, "");
}

TEST(MeetingPlace, NamesWhatIsMissing) {
  EXPECT_EQ(sandboxed([](bool) {
              rlimit files{};
              getrlimit(RLIMIT_NOFILE, &files);
              const int lowest = dup(STDIN_FILENO);  // the next one that is free
              check(lowest >= 0, "dup");
              close(lowest);
              files.rlim_cur = static_cast<rlim_t>(lowest);
              setrlimit(RLIMIT_NOFILE, &files);
              try {
                const MeetingPlace place("full");
                throw test::Failure("made without a descriptor");
              } catch (const TransportError& error) {
                check(std::string(error.what()).find("Too many open files") != std::string::npos, error.what());
              }
            }),
            "");
}

}  // namespace
}  // namespace gar

// In place of the C library's.
extern "C" int flock(int fd, int operation) noexcept {
  if (gar::before_lock) std::exchange(gar::before_lock, nullptr)();
  return static_cast<int>(syscall(SYS_flock, fd, operation));
}
