#include <fmt/format.h>
#include <nccl.h>

#include "gar/nccl.hpp"

namespace gar {

std::string nccl_version() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "unknown";
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace gar
