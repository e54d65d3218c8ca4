#include "apps/preload/settings.hpp"

#include <optional>

#include "gar/environment.hpp"

namespace gar::preload {

Settings settings_from_environment() {
  Settings out;
  out.is_disabled = environment::flag(environment::kDisable).value_or(false);
  if (out.is_disabled) return out;
  out.checks = environment::flag(environment::kCheck).value_or(false);
  out.compares = environment::flag(environment::kCompare).value_or(false);
  if (out.compares && !out.checks) out.most_checked_bytes = kMostComparedBytes;
  out.checks = out.checks || out.compares;
  out.closes = !environment::text(environment::kMpirun).empty();
  out.upgrades_threads = environment::flag(environment::kThreads).value_or(false);
  const std::optional<std::int64_t> min_bytes = environment::whole_number(environment::kMinBytes);
  out.min_bytes = min_bytes.value_or(kDefaultMinBytes);
  out.min_bytes_nonblocking = min_bytes.value_or(kDefaultMinBytesNonblocking);
  out.reports = environment::text(environment::kDebug) == "INFO";
  return out;
}

}  // namespace gar::preload
