// Processes of this host, started and watched by one that does nothing else.
//
// The ranks are forked before anything else has run, so no thread is lost. Each dies with its parent
// (PR_SET_PDEATHSIG). Ctrl-C reaches every process of the terminal's group: the ranks ignore it, and the parent turns
// it into a flag in shared memory, which they agree on at a point where all can stop. Messages come back through the
// same memory, so that one error that all ranks see is printed once.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <new>
#include <system_error>

#include "base/clock.hpp"
#include "base/index.hpp"
#include "gar/errors.hpp"
#include "gar/measure/launch.hpp"
#include "measure/launch/failures.hpp"

namespace gar::measure {
namespace {

using Clock = std::chrono::steady_clock;

/// What a rank leaves behind for the parent.
struct Note {
  std::atomic<int> order{0};  ///< 1 for the first; 0: nothing
  char text[2000] = {};
};

/// Memory that parent and ranks share; it has no name, so it goes with them.
class Board {
 public:
  explicit Board(int size) : bytes_(sizeof(Head) + sizeof(Note) * idx(size)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "shared memory for the ranks");
    head_ = new (memory) Head;
    notes_ = new (static_cast<std::byte*>(memory) + sizeof(Head)) Note[idx(size)];
  }
  ~Board() { munmap(head_, bytes_); }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  [[nodiscard]] std::atomic<int>& stop() const { return head_->stop; }
  void leave(int rank, std::string_view text) const {
    Note& note = notes_[rank];
    const std::size_t length = std::min(text.size(), sizeof(note.text) - 1);
    std::memcpy(note.text, text.data(), length);
    note.order.store(1 + head_->num_notes.fetch_add(1));
  }
  /// Order and text; order 0: nothing.
  [[nodiscard]] std::pair<int, std::string> note(int rank) const {
    return {notes_[rank].order.load(), notes_[rank].text};
  }

 private:
  struct alignas(64) Head {
    std::atomic<int> stop{0};
    std::atomic<int> num_notes{0};
  };
  std::size_t bytes_;
  Head* head_ = nullptr;
  Note* notes_ = nullptr;
};

std::string random_name() {
  std::uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    throw std::system_error(errno, std::generic_category(), "random numbers");
  }
  return fmt::format("gar-{}-{:016x}", getpid(), bits);
}

[[noreturn]] void run_child(const LocalRank& rank, const Board& board, const sigset_t& mask,
                            const std::function<int(const LocalRank&)>& body) {
  std::signal(SIGINT, SIG_IGN);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  int code = kExitOk;
  try {
    code = body(rank);
  } catch (...) {
    const Failure failure = describe_failure(std::current_exception());
    board.leave(rank.rank, failure.message);
    code = failure.code;
  }
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && code == kExitOk) {
    board.leave(rank.rank, "cannot write to standard output");
    code = kExitRunTime;
  }
  _exit(code);
}

/// The processes, from the parent's side.
class Watch {
 public:
  Watch(const LocalProcesses& processes, const Board& board)
      : board_(board),
        grace_s_(processes.grace_s),
        report_(processes.report),
        pids_(idx(processes.size), 0),
        codes_(pids_.size(), 0) {
    sigemptyset(&signals_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    sigprocmask(SIG_BLOCK, &signals_, &before_);
  }
  ~Watch() {
    kill_all();
    for (pid_t& pid : pids_) {
      if (pid > 0) waitpid(pid, nullptr, 0);
    }
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void start(const LocalRank& rank, const std::function<int(const LocalRank&)>& body) {
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), fmt::format("starting rank {}", rank.rank));
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(kExitRunTime);
      run_child(rank, board_, before_, body);
    }
    pids_[idx(rank.rank)] = pid;
    ++num_running_;
  }

  int wait_for_all() {
    while (num_running_ > 0) {
      reap();
      if (num_running_ > 0) wait_for_signal();
    }
    report();
    return exit_code();
  }

 private:
  void reap() {
    for (std::size_t r = 0; r < pids_.size(); ++r) {
      int status = 0;
      if (pids_[r] <= 0 || waitpid(pids_[r], &status, WNOHANG) != pids_[r]) continue;
      pids_[r] = 0;
      --num_running_;
      if (WIFSIGNALED(status)) {
        codes_[r] = kExitRunTime;
        if (!is_killing_) {
          killed_.emplace_back(static_cast<int>(r),
                               fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status))));
        }
      } else {
        codes_[r] = WEXITSTATUS(status);
      }
      const bool failed = codes_[r] != kExitOk && codes_[r] != kExitCheckFailed;
      if (failed && !deadline_) {
        deadline_ = seconds_from_now<Clock>(grace_s_);
      }
    }
  }

  void wait_for_signal() {
    timespec limit{3600, 0};
    if (deadline_) {
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(*deadline_ - Clock::now()).count();
      if (left <= 0) {
        give_up();
        return;
      }
      limit = {left / 1'000'000'000, left % 1'000'000'000};
    }
    const int signal = sigtimedwait(&signals_, nullptr, &limit);
    if (signal == SIGINT || signal == SIGTERM) {
      if (board_.stop().exchange(1) != 0) kill_all();
    } else if (signal == SIGHUP) {
      kill_all();
    }
  }

  void give_up() {
    for (std::size_t r = 0; r < pids_.size(); ++r) {
      if (pids_[r] > 0) {
        killed_.emplace_back(static_cast<int>(r),
                             fmt::format("did not end within {:g} s after the first failure", grace_s_));
      }
    }
    kill_all();
    deadline_ = Clock::now() + std::chrono::hours(1);
  }

  void kill_all() {
    is_killing_ = true;
    for (const pid_t pid : pids_) {
      if (pid > 0) kill(pid, SIGKILL);
    }
  }

  void report() const {
    for (const auto& [rank, text] : killed_) report_(fmt::format("rank {}: {}", rank, text));
    std::map<int, RankFailure> by_order;
    for (int r = 0; r < static_cast<int>(pids_.size()); ++r) {
      const auto [order, text] = board_.note(r);
      if (order > 0) by_order[order] = {r, text};
    }
    std::vector<RankFailure> failures;
    for (auto& [order, failure] : by_order) failures.push_back(std::move(failure));
    report_failures(failures, static_cast<int>(pids_.size()), report_);
  }

  [[nodiscard]] int exit_code() const {
    if (is_killing_) return kExitRunTime;
    return *std::max_element(codes_.begin(), codes_.end());
  }

  const Board& board_;
  double grace_s_;
  const Report& report_;
  std::vector<pid_t> pids_;
  std::vector<int> codes_;
  std::vector<std::pair<int, std::string>> killed_;
  std::optional<Clock::time_point> deadline_;
  sigset_t signals_ = {};
  sigset_t before_ = {};
  int num_running_ = 0;
  bool is_killing_ = false;
};

}  // namespace

std::string rank_words(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

int num_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return static_cast<int>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

double available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    double kib = 0;
    if (name == "MemAvailable:" && file >> kib) return 1024 * kib;
  }
  return -1;
}

int run_local_processes(const LocalProcesses& processes, const std::function<int(const LocalRank&)>& body) {
  const Board board(processes.size);
  const std::string name = random_name();
  std::fflush(nullptr);
  Watch watch(processes, board);
  for (int r = 0; r < processes.size; ++r) {
    watch.start({r, processes.size, name, [&board] { return board.stop().load() != 0; }}, body);
  }
  return watch.wait_for_all();
}

}  // namespace gar::measure
