// Progress on standard error.
#include "apps/gar/cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
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

std::string time_left(double seconds, double share) {
  constexpr double kLeastShare = 0.01;
  constexpr double kMinute = 60;
  constexpr double kHour = 60 * kMinute;
  if (share < kLeastShare) return "";
  const double left = std::ceil(seconds * std::max(0.0, 1 - share) / share);
  if (left < 2 * kMinute) return fmt::format(", about {:.0f} s left", left);
  if (left < 2 * kHour) return fmt::format(", about {:.0f} min left", left / kMinute);
  return fmt::format(", about {:.0f} h left", left / kHour);
}

void print_progress(std::string_view text) {
  if (is_progress_shown()) write_progress(fmt::format("{}\n", escaped(text)));
}

}  // namespace gar::cli
