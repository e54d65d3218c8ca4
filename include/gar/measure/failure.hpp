// What a failure means for people and for scripts: a message and an exit code.
#pragma once

#include <exception>
#include <string>

namespace gar::measure {

/// Exit codes; a promise to scripts.
inline constexpr int kExitOk = 0;
inline constexpr int kExitCheckFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitBadInput = 3;
inline constexpr int kExitRunTime = 4;

/// What a process ended with, in words and as an exit code.
struct Failure {
  int code = 0;
  std::string message;
};
/// UsageError is 2; ParseError, InvalidArgument and PlanError are 3; everything else is 4.
Failure describe_failure(const std::exception_ptr& error);

}  // namespace gar::measure
