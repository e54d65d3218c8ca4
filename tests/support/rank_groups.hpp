// Runs the same function on every rank of a group, between threads or between forked processes.
//
// A rank's function gets a Member, makes communicators through it (collectively, as often as it likes) and throws when
// something is wrong. What it threw comes back as text, one per rank; empty means success. Processes that are not
// finished at the deadline are killed, and that is what their text says.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gar/communicator.hpp"

namespace gar::test {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Seconds after which something hangs: a machine that is only busy, or a sanitizer, needs much less. No test asserts
/// that something is faster than this.
inline constexpr double kLongestWait = 300;
/// A communicator's time limit that no test reaches: an error that comes must have another reason than silence.
inline constexpr double kNoLimit = 3600;

/// A rank's way to say that a check failed.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void check(bool condition, const std::string& text) {
  if (!condition) throw Failure(text);
}

/// A name that no other group uses.
inline std::string unique_name(const std::string& purpose = "t") {
  static int counter = 0;
  return "gartest-" + purpose + "-" + std::to_string(getpid()) + "-" + std::to_string(counter++);
}

/// What a rank's function is given.
struct Member {
  int rank = 0;
  int size = 1;
  std::function<Communicator(const CommunicatorOptions&)> communicator;
};
using Body = std::function<void(Member&)>;

enum class Via { kThreads, kProcesses };
inline const char* to_string(Via via) { return via == Via::kThreads ? "threads" : "shm"; }

// --- threads ---------------------------------------------------------------------------------------------------------

/// Hands out the communicators that one of the threads makes for all.
class Handout {
 public:
  explicit Handout(int size) : size_(size), ready_(static_cast<std::size_t>(size)) {}

  Communicator take(int rank, const CommunicatorOptions& options) {
    std::unique_lock lock(mutex_);
    const int round = round_;
    ++waiting_;
    if (waiting_ + left_ == size_) finish_round(&options);
    changed_.wait(lock, [&] { return round_ != round; });
    if (error_) std::rethrow_exception(error_);
    auto& mine = ready_[static_cast<std::size_t>(rank)];
    if (!mine) throw Failure("another rank has left before this communicator was made");
    Communicator out = std::move(*mine);
    mine.reset();
    return out;
  }
  void leave() {
    const std::scoped_lock lock(mutex_);
    ++left_;
    if (waiting_ > 0 && waiting_ + left_ == size_) finish_round(nullptr);
  }

 private:
  void finish_round(const CommunicatorOptions* options) {
    error_ = nullptr;
    try {
      if (options != nullptr && left_ == 0) {
        std::vector<Communicator> made = thread_communicators(size_, *options);
        for (std::size_t r = 0; r < made.size(); ++r) ready_[r].emplace(std::move(made[r]));
      }
    } catch (...) {
      error_ = std::current_exception();
    }
    waiting_ = 0;
    ++round_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int size_;
  int waiting_ = 0;
  int left_ = 0;
  int round_ = 0;
  std::vector<std::optional<Communicator>> ready_;
  std::exception_ptr error_;
};

inline std::string text_of(const std::exception& error) {
  const std::string what = *error.what() == '\0' ? "(an exception without text)" : error.what();
  if (dynamic_cast<const Failure*>(&error) != nullptr) return what;
  return (dynamic_cast<const TransportError*>(&error) != nullptr    ? "TransportError: "
          : dynamic_cast<const InvalidArgument*>(&error) != nullptr ? "InvalidArgument: "
          : dynamic_cast<const DeviceError*>(&error) != nullptr     ? "DeviceError: "
                                                                    : "exception: ") +
         what;
}

/// Runs the body and returns what it threw.
inline std::string outcome_of(const Body& body, Member& member) {
  try {
    body(member);
    return "";
  } catch (const std::exception& error) {
    return text_of(error);
  }
}

inline std::vector<std::string> run_threads(int size, const Body& body) {
  Handout handout(size);
  std::vector<std::string> outcomes(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Member member{rank, size, [&, rank](const CommunicatorOptions& options) { return handout.take(rank, options); }};
      outcomes[static_cast<std::size_t>(rank)] = outcome_of(body, member);
      handout.leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

// --- processes -------------------------------------------------------------------------------------------------------

/// Forked processes that each run a function and report what it threw.
class Processes {
 public:
  struct Outcome {
    std::string text;    ///< what the function threw; empty when it returned
    bool ended = false;  ///< by itself: not by a signal, not at the deadline
    int signal = 0;
  };

  Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() { collect(0); }

  /// Returns the number of the process in this group.
  int start(const std::function<void()>& function) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error("fork failed");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(3);
      close(ends[0]);
      std::string text;
      try {
        function();
      } catch (const std::exception& error) {
        text = text_of(error);
      }
      text.resize(std::min<std::size_t>(text.size(), 4000));
      const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
      _exit(written && text.empty() ? 0 : 1);
    }
    close(ends[1]);
    children_.push_back({pid, ends[0]});
    return static_cast<int>(children_.size()) - 1;
  }

  void signal(int process, int number) const { kill(children_[static_cast<std::size_t>(process)].pid, number); }

  /// Waits until all have ended, or kills those that have not after this many seconds.
  std::vector<Outcome> collect(double limit_s = kLongestWait) {
    const auto start = Clock::now();
    std::vector<Outcome> outcomes;
    for (const Child& child : children_) {
      Outcome outcome;
      outcome.ended = read_all(child.out, outcome.text, limit_s - seconds_since(start));
      if (!outcome.ended) kill(child.pid, SIGKILL);
      int status = 0;
      while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
      }
      close(child.out);
      if (WIFSIGNALED(status)) {
        outcome.signal = WTERMSIG(status);
        if (outcome.text.empty()) {
          outcome.text = outcome.ended ? "ended by signal " + std::to_string(outcome.signal)
                                       : "did not end within " + std::to_string(limit_s) + " s";
        }
        outcome.ended = false;
      } else if (WEXITSTATUS(status) > 1 && outcome.text.empty()) {
        outcome.text = "exit status " + std::to_string(WEXITSTATUS(status));
      }
      outcomes.push_back(std::move(outcome));
    }
    children_.clear();
    return outcomes;
  }

 private:
  struct Child {
    pid_t pid;
    int out;
  };

  // Reads until the process has closed its end.
  static bool read_all(int file, std::string& text, double limit_s) {
    const auto start = Clock::now();
    while (true) {
      const double left = limit_s - seconds_since(start);
      pollfd entry{file, POLLIN, 0};
      if (poll(&entry, 1, std::max(0, static_cast<int>(left * 1000))) <= 0) {
        if (left <= 0) return false;
        continue;
      }
      char buffer[4096];
      const ssize_t got = read(file, buffer, sizeof buffer);
      if (got == 0) return true;
      if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
    }
  }

  std::vector<Child> children_;
};

inline std::vector<std::string> run_processes(int size, const Body& body, double limit_s = kLongestWait) {
  const std::string name = unique_name();
  Processes processes;
  for (int rank = 0; rank < size; ++rank) {
    processes.start([&, rank] {
      int made = 0;
      Member member{rank, size, [&](const CommunicatorOptions& options) {
                      return shared_memory_communicator(name + "." + std::to_string(made++), rank, size, options);
                    }};
      body(member);
    });
  }
  std::vector<std::string> out;
  for (const Processes::Outcome& outcome : processes.collect(limit_s)) out.push_back(outcome.text);
  return out;
}

/// `limit_s` is for processes; threads have the time limits of their communicators only.
inline std::vector<std::string> run_ranks(Via via, int size, const Body& body, double limit_s = kLongestWait) {
  return via == Via::kThreads ? run_threads(size, body) : run_processes(size, body, limit_s);
}

/// The texts of the ranks that did not succeed, for EXPECT_EQ(..., "").
inline std::string failures(const std::vector<std::string>& outcomes) {
  std::string out;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (!outcomes[rank].empty()) out += "rank " + std::to_string(rank) + ": " + outcomes[rank] + "\n";
  }
  return out;
}

}  // namespace gar::test
