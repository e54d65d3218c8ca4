#include "measure/launch/launcher.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace gar::measure {
namespace {

constexpr int kGraceMs = 5000;

/// When a process started, in ticks since the machine did; empty: there is no such process.
std::string start_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return "";
  std::istringstream fields(text.substr(end_of_name + 1));
  constexpr int kStartTime = 20;  // of those behind the name
  std::string field;
  for (int i = 0; i < kStartTime; ++i) fields >> field;
  return field;
}

/// glibc 2.36 knows it, older ones do not.
int open_process(pid_t process) { return static_cast<int>(syscall(SYS_pidfd_open, process, 0)); }

}  // namespace

std::string launcher_text() { return fmt::format("{}:{}", getpid(), start_of(getpid())); }

LauncherWatch::LauncherWatch(std::string_view text, Report report) {
  const std::size_t colon = text.find(':');
  const auto process = static_cast<pid_t>(std::atoi(std::string(text.substr(0, colon)).c_str()));
  if (colon == std::string_view::npos || process <= 0) return;
  const int launcher = open_process(process);
  // The descriptor first: what has that number and that start is the launcher, and the descriptor stays it.
  const bool is_alive = start_of(process) == text.substr(colon + 1);
  if (launcher < 0 && is_alive) return;  // a kernel that cannot watch a process
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (stop_ < 0) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the other threads
  thread_ = std::thread([launcher, is_alive, stop = stop_, report = std::move(report)] {
    std::array<pollfd, 2> ends{{{launcher, POLLIN, 0}, {stop, POLLIN, 0}}};
    while (is_alive && poll(ends.data(), ends.size(), -1) < 0) {
    }
    if (is_alive && (ends[1].revents != 0 || ends[0].revents == 0)) {
      close(launcher);
      return;
    }
    // A mpirun that works ends its ranks by now; it knows better when.
    while (poll(&ends[1], 1, kGraceMs) < 0) {
    }
    if (ends[1].revents != 0) return;
    report("the process that has started this job was killed");
    _exit(kExitRunTime);
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LauncherWatch::~LauncherWatch() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  static_cast<void>(write(stop_, &one, sizeof one) == sizeof one);
  thread_.join();
  close(stop_);
}

}  // namespace gar::measure
