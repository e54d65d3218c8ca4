// What a process hands out that says it is rank 0: it is either refused with a TransportError, or describes the memory
// that came with it, to the byte. The input stands for the whole greeting, and for what follows the first number of a
// real one.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "fuzz/harness.hpp"
#include "gar/errors.hpp"
#include "runtime/transports/shared/greeting.hpp"
#include "runtime/transports/shared/segment.hpp"

namespace {

using gar::fuzz::require;

constexpr const char* kName = "fuzz";

gar::SegmentShape real_shape() {
  return {.num_ranks = 3, .num_slots = 2, .staging_bytes = 4096, .exchange_bytes = 1024};
}

int sealed_memory(std::int64_t bytes) {
  const int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  require(fd >= 0 && ftruncate(fd, bytes) == 0);
  require(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  return fd;
}

void read(const std::string& bytes, int fd, std::int64_t length) {
  try {
    const std::optional<gar::Greeting> greeting = gar::Greeting::read(bytes, fd, kName);
    if (!greeting) return;
    const gar::SegmentShape& shape = greeting->shape();
    require(shape.num_ranks >= 1 && shape.num_slots >= 1 && shape.num_slots <= gar::kMaxSlots);
    require(shape.staging_bytes >= 0 && shape.exchange_bytes >= 0);
    // As floating-point numbers: these cannot overflow.
    const double areas = static_cast<double>(shape.num_slots) * static_cast<double>(shape.staging_bytes) +
                         2 * static_cast<double>(shape.exchange_bytes) + sizeof(gar::RankBlock);
    require(shape.num_ranks * areas <= static_cast<double>(length));
  } catch (const gar::TransportError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::int64_t kLength = gar::Segment::total_bytes(real_shape());
  static const int kMemory = sealed_memory(kLength);
  const gar::Greeting real(kName, real_shape());
  std::string changed(reinterpret_cast<const char*>(real.bytes().data()), real.bytes().size());
  constexpr std::size_t kMagicBytes = 8;
  std::memcpy(changed.data() + kMagicBytes, data, std::min(size, changed.size() - kMagicBytes));
  const std::string whole(reinterpret_cast<const char*>(data), size);
  for (const std::string& bytes : {changed, whole}) {
    read(bytes, kMemory, kLength);
    read(bytes, -1, 0);
  }
  return 0;
}
