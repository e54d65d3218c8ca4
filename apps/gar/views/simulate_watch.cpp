// Progress and Ctrl-C.
#include "apps/gar/views/simulate_watch.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "apps/gar/cli/output.hpp"

namespace gar::cli {
namespace {

constexpr std::chrono::milliseconds kFirst{500};
constexpr std::chrono::milliseconds kEvery{100};

// A signal handler reaches nothing else.
volatile std::sig_atomic_t interrupted = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

extern "C" void on_interrupt(int) { interrupted = 1; }

bool is_terminal() { return isatty(STDERR_FILENO) == 1; }

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = 0;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_);
  if (before_.sa_handler == SIG_IGN) sigaction(SIGINT, &before_, nullptr);  // a job in the background
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }

bool is_interrupted() { return interrupted != 0; }

SimulationWatch::SimulationWatch(std::string what)
    : what_(std::move(what)), is_terminal_(is_terminal()), next_(std::chrono::steady_clock::now() + kFirst) {}

SimulationWatch::~SimulationWatch() { clear(); }

bool SimulationWatch::go_on(const SimulationProgress& progress) {
  if (is_interrupted()) return false;
  if (is_terminal_) show(progress);
  return true;
}

void SimulationWatch::show(const SimulationProgress& progress) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kEvery;
  const double share = progress.flows > 0 ? std::min(progress.flows_done / progress.flows, 1.0) : 0;
  std::fputs(fmt::format("\r\x1b[K{}: {:.0f}% of {:.3g} messages, {} simulated (Ctrl-C ends it)", what_, 100 * share,
                         progress.flows, format_seconds(progress.seconds))
                 .c_str(),
             stderr);
  std::fflush(stderr);
  is_shown_ = true;
}

void SimulationWatch::clear() {
  if (!is_shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  is_shown_ = false;
}

void print_progress_line(std::string_view text) {
  if (!is_terminal()) return;
  std::fputs(fmt::format("{}\n", text).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace gar::cli
