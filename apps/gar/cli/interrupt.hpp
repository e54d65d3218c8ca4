// Ctrl-C: ends what is being done in an orderly way, so that results so far are printed.
#pragma once

#include <csignal>

namespace gar::cli {

/// While it lives, the first Ctrl-C only makes is_interrupted() true; a second one ends the program.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_ = {};
};
bool is_interrupted();

}  // namespace gar::cli
