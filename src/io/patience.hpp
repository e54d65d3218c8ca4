// How long the other end of a pipe may do nothing.
#pragma once

#include <fmt/format.h>

#include <string>

#include "gar/environment.hpp"

namespace gar {

/// Seconds: GAR_INPUT_TIMEOUT, or what holds without it.
inline double pipe_patience() {
  constexpr double kDefaultPatience = 60;
  return environment::number(environment::kInputTimeout).value_or(kDefaultPatience);
}

/// "60 s (GAR_INPUT_TIMEOUT sets that time)", for messages.
inline std::string patience_words(double seconds) {
  return fmt::format("{:g} s ({} sets that time)", seconds, environment::kInputTimeout.name);
}

}  // namespace gar
