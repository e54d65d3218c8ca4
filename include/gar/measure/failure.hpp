// What a failure means for people and for scripts: a message and an exit code.
#pragma once

#include <exception>
#include <string>

#include "gar/language.hpp"

namespace gar::measure {

/// Exit codes are a promise to scripts. This one: everything went well.
inline constexpr int kExitOk = 0;
/// A check failed: a wrong result, a plan that is not proved.
inline constexpr int kExitCheckFailed = 1;
/// The command line makes no sense.
inline constexpr int kExitUsage = 2;
/// A file, a value or a plan is not what it should be.
inline constexpr int kExitBadInput = 3;
/// Everything else that goes wrong while the program runs.
inline constexpr int kExitRunTime = 4;

/// What a process ended with, in words and as an exit code.
struct Failure {
  int code = 0;         ///< the exit code
  std::string message;  ///< for people, one line
};
/// UsageError is 2; ParseError, InvalidArgument and PlanError are 3; everything else is 4.
Failure describe_failure(const std::exception_ptr& error);

}  // namespace gar::measure
