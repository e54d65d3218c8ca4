// What the environment asks of the preload library.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <limits>
#include <string>

namespace gar::preload {

struct Settings {
  bool is_disabled = false;                                                    ///< GAR_DISABLE
  bool checks = false;                                                         ///< GAR_CHECK
  bool compares = false;                                                       ///< GAR_COMPARE, which checks as well
  std::int64_t most_checked_bytes = std::numeric_limits<std::int64_t>::max();  ///< of the copies for a check
  bool closes = false;                                                         ///< GAR_MPIRUN: a line at the end
  bool reports = false;                                                        ///< GAR_DEBUG=INFO
  bool upgrades_threads = false;                                               ///< GAR_THREADS
  std::int64_t min_bytes = 0;              ///< GAR_MIN_BYTES: shorter vectors are left to the MPI library
  std::int64_t min_bytes_nonblocking = 0;  ///< the same for MPI_Iallreduce; -1: all of them
};

inline constexpr std::int64_t kDefaultMinBytes = 256;
// A non-blocking call costs a thread its waking up, while the program may spin in MPI_Wait on the core that the thread
// needs. Open MPI can be told to give the core away; MPICH 4.0 cannot, and there it is never worth it.
#ifdef OPEN_MPI
inline constexpr std::int64_t kDefaultMinBytesNonblocking = 64 << 10;
#else
inline constexpr std::int64_t kDefaultMinBytesNonblocking = -1;
#endif

/// With GAR_COMPARE and without GAR_CHECK longer calls are not copied.
inline constexpr std::int64_t kMostComparedBytes = 256 << 20;

/// Throws InvalidArgument that names the variable.
Settings settings_from_environment();

}  // namespace gar::preload
