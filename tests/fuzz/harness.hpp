// What the fuzz harnesses have in common.
#pragma once

#include <cstdlib>
#include <functional>

#include "gar/errors.hpp"

namespace gar::fuzz {

/// A harness fails by a signal, which libFuzzer and the replay both notice.
inline void require(bool holds) {
  if (!holds) std::abort();
}

/// A reader may refuse what it is given.
inline void attempt(const std::function<void()>& read) {
  try {
    read();
  } catch (const InvalidArgument&) {
  }
}

}  // namespace gar::fuzz
