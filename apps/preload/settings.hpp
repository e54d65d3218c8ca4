// What the environment asks of the preload library.
#pragma once

#include <cstdint>
#include <string>

namespace gar::preload {

struct Settings {
  bool is_disabled = false;         ///< GAR_DISABLE
  bool checks = false;              ///< GAR_CHECK
  bool reports = false;             ///< GAR_DEBUG=INFO
  bool upgrades_threads = true;     ///< GAR_THREADS
  std::int64_t min_bytes = 0;       ///< GAR_MIN_BYTES: shorter vectors are left to the MPI library
  std::int64_t corrupted_call = 0;  ///< GAR_TEST_CORRUPT, a test aid: rank 0 spoils its result of that call
};

inline constexpr std::int64_t kDefaultMinBytes = 256;

/// Throws InvalidArgument that names the variable.
Settings settings_from_environment();

}  // namespace gar::preload
