#include "runtime/transports/shared/greeting.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "gar/errors.hpp"

namespace gar {

namespace {

constexpr std::uint64_t kMagic = 0x32'30'72'61'67U + (sizeof(RankBlock) << 40U);  // our version's layout

template <std::size_t N>
void put(std::array<char, N>& field, std::string_view text) {
  const std::size_t length = std::min(text.size(), N - 1);
  std::copy_n(text.begin(), length, field.begin());
  field[length] = '\0';
}
template <std::size_t N>
std::string text_of(const std::array<char, N>& field) {
  return {field.data(), strnlen(field.data(), N)};
}

/// Are these numbers such as rank 0 sends, and do they fit the memory that came with them?
bool is_plausible(const SegmentShape& shape, std::int64_t total_bytes, int fd) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (shape.num_ranks < 1 || shape.num_slots < 1 || shape.num_slots > kMaxSlots) return false;
  for (const std::int64_t bytes : {shape.staging_bytes, shape.exchange_bytes}) {
    if (bytes < 0 || bytes > kMost / shape.num_ranks / kMaxSlots || bytes % 64 != 0) return false;
  }
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) return false;
  const int seals = fcntl(fd, F_GET_SEALS);
  return Segment::total_bytes(shape) == total_bytes && status.st_size == total_bytes && seals >= 0 &&
         (seals & F_SEAL_SHRINK) != 0;
}

}  // namespace

Greeting::Greeting(std::string_view name, const SegmentShape& shape, std::string_view failure) {
  fields_.magic = kMagic;
  fields_.shape = shape;
  fields_.total_bytes = Segment::total_bytes(shape);
  put(fields_.name, name);
  put(fields_.failure, failure);
}

std::optional<Greeting> Greeting::read(std::string_view bytes, int fd, std::string_view name) {
  Greeting out;
  Fields& fields = out.fields_;
  std::memcpy(&fields, bytes.data(), std::min(bytes.size(), sizeof fields));
  if (bytes.size() != sizeof fields || fields.magic != kMagic) {
    throw TransportError(fmt::format("communicator '{}': rank 0 runs another version of the library", name));
  }
  if (text_of(fields.name) != name) return std::nullopt;
  if (const std::string failure = text_of(fields.failure); !failure.empty()) throw TransportError(failure);
  if (!is_plausible(fields.shape, fields.total_bytes, fd)) {
    throw TransportError(fmt::format(
        "communicator '{}': what rank 0 says of the shared memory does not fit the memory that it gives", name));
  }
  return out;
}

}  // namespace gar
