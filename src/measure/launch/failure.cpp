// Exceptions as messages and exit codes: the only place that knows which is which.
#include "gar/measure/failure.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <new>

#include "gar/errors.hpp"

namespace gar::measure {

Failure describe_failure(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const UsageError& e) {
    return {kExitUsage, e.what()};
  } catch (const TransportError& e) {
    return {kExitRunTime, e.what()};
  } catch (const DeviceError& e) {
    return {kExitRunTime, e.what()};
  } catch (const Error& e) {
    return {kExitBadInput, e.what()};
  } catch (const std::bad_alloc&) {
    return {kExitRunTime, "out of memory"};
  } catch (const std::exception& e) {
    return {kExitRunTime, e.what()};
  } catch (...) {
    return {kExitRunTime, "an unknown error"};
  }
}

void print_failure(std::string_view message) {
  const std::string text = fmt::format("gar: {}\n", message);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace gar::measure
