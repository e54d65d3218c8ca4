// NCCL's version, in words.
#include <fmt/format.h>
#include <nccl.h>

#include "gar/nccl.hpp"
#include "runtime/transports/nccl/nccl_library.hpp"

namespace gar {

std::string nccl_version() {
  int version = 0;
  if (nccl().get_version(&version) != ncclSuccess) return "unknown";
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace gar
