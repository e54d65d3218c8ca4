// Signs that ranks leave for the gar mpirun that has started them, on its host.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gar/environment.hpp"

namespace gar::preload {

/// Each has its place in the file, so that ranks that leave the same one write the same.
enum class Sign : off_t {
  kReached,   ///< the program has called MPI_Init
  kCompared,  ///< calls were compared with the MPI library's own
};

/// Does nothing where there is no gar mpirun on this host. GAR_MPIRUN names a file in the memory of that command,
/// "PID.FD.TOKEN". Of another process there is none with that token.
inline void leave_sign(Sign sign) {
  const char* value = secure_getenv(environment::kMpirun.name);
  std::array<char, 33> token{};
  int process = 0;
  int file = 0;
  if (value == nullptr || std::sscanf(value, "%d.%d.%32[0-9a-f]", &process, &file, token.data()) != 3) return;
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
  std::array<char, 128> target{};
  if (readlink(path.c_str(), target.data(), target.size() - 1) < 0) return;
  if (target.data() != "/memfd:gar-mpirun-" + std::string(token.data()) + " (deleted)") return;
  const int opened = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (opened < 0) return;
  [[maybe_unused]] const auto written = pwrite(opened, "+", 1, static_cast<off_t>(sign));
  close(opened);
}

}  // namespace gar::preload
