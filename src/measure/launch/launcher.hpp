// The process that has started the mpirun of this rank.
//
// It is on the same host. When it is killed, the mpirun gets a signal and ends the ranks, as a rule: MPICH's leaves
// them waiting inside MPI_Init for ever when the signal comes at a bad moment. So the ranks look after it themselves.
#pragma once

#include <string>
#include <string_view>
#include <thread>

#include "gar/measure/launch.hpp"

namespace gar::measure {

/// This process for its ranks, as text: its number, and when it started, since numbers are used again.
std::string launcher_text();

/// Ends this process, with words, when the process that `text` names ends. Nothing is watched when the text names none.
class LauncherWatch {
 public:
  LauncherWatch(std::string_view text, Report report);
  ~LauncherWatch();
  LauncherWatch(const LauncherWatch&) = delete;
  LauncherWatch& operator=(const LauncherWatch&) = delete;

 private:
  int stop_ = -1;  ///< written to when the thread shall end
  std::thread thread_;
};

}  // namespace gar::measure
