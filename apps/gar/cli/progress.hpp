// Progress on standard error, when that is a terminal.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace gar::cli {

/// When a progress line appears, and how often it changes.
struct ProgressPace {
  std::chrono::milliseconds first{0};  ///< before the first line: short work shows none
  std::chrono::milliseconds every{0};  ///< between two lines
};

/// One line that is written over and over, and removed at the end. It is cheap to call show() more often than the pace
/// allows.
class ProgressLine {
 public:
  explicit ProgressLine(const ProgressPace& pace = {});
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Will anything ever be shown?
  [[nodiscard]] bool is_visible() const { return is_terminal_; }
  /// Would show() write now?
  [[nodiscard]] bool is_due() const;
  void show(std::string_view text);
  /// Removes the line, so that other output can follow.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::milliseconds every_;
  bool is_terminal_;
  bool is_shown_ = false;
  Clock::time_point next_;
};

/// ", about 12 s left", as if the rest went as fast as the `share` that is done; nothing as long as that would be a
/// guess.
std::string time_left(double seconds, double share);

/// A line that stays: what is done while more is to come.
void print_progress(std::string_view text);

}  // namespace gar::cli
