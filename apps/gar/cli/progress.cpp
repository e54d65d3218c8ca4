// Progress on standard error.
#include "apps/gar/cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "gar/format.hpp"

namespace gar::cli {
namespace {

bool is_progress_shown() { return isatty(STDERR_FILENO) == 1; }

void write_progress(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

ProgressLine::ProgressLine(const ProgressPace& pace)
    : every_(pace.every), is_terminal_(is_progress_shown()), next_(Clock::now() + pace.first) {}

bool ProgressLine::is_due() const { return is_terminal_ && Clock::now() >= next_; }

void ProgressLine::show(std::string_view text) {
  if (!is_due()) return;
  next_ = Clock::now() + every_;
  write_progress(fmt::format("\r\x1b[K{}", escaped(text)));
  is_shown_ = true;
}

void ProgressLine::clear() {
  if (is_shown_) write_progress("\r\x1b[K");
  is_shown_ = false;
}

void print_progress(std::string_view text) {
  if (is_progress_shown()) write_progress(fmt::format("{}\n", escaped(text)));
}

}  // namespace gar::cli
