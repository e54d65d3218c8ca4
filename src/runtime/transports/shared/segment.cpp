#include "runtime/transports/shared/segment.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace gar {

namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kMinStaging = 1 << 10;
constexpr std::int64_t kStagingPerPeer = 128;  // room for at least a few elements to each
constexpr std::int64_t kMaxStaging = 512 << 10;
constexpr std::int64_t kExchangeBytes = 36 << 10;  // vectors below 32 KiB, and the word of a communicator that explores

std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

class PrivateSegment final : public Segment {
 public:
  explicit PrivateSegment(const SegmentShape& shape) : Segment(shape) {
    const auto bytes = static_cast<std::size_t>(total_bytes(shape));
    base_ = static_cast<std::byte*>(std::aligned_alloc(kPage, bytes));
    if (base_ == nullptr) throw std::bad_alloc();
    std::memset(base_, 0, bytes);
    construct();
  }
  ~PrivateSegment() override { std::free(base_); }
  PrivateSegment(const PrivateSegment&) = delete;
  PrivateSegment& operator=(const PrivateSegment&) = delete;
  [[nodiscard]] bool is_alive(int /*rank*/) const override { return true; }
  [[nodiscard]] std::string_view kind() const override { return "threads"; }
};

}  // namespace

SegmentShape suitable_shape(int num_ranks, std::int64_t staging_bytes) {
  SegmentShape shape;
  shape.num_ranks = num_ranks;
  shape.exchange_bytes = std::max<std::int64_t>(kExchangeBytes / std::max(1, num_ranks / 16) / 64 * 64, kMinStaging);
  if (staging_bytes > 0) {
    shape.staging_bytes = std::max(kMinStaging, staging_bytes / shape.num_slots / 64 * 64);
    return shape;
  }
  // All staging areas together shall stay in the last-level cache, with room for what passes through.
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::int64_t budget = cache > 0 ? cache / 2 : 8 << 20;
  const std::int64_t least = std::max<std::int64_t>(16 << 10, num_ranks * kStagingPerPeer);
  shape.staging_bytes = std::max(least, std::min(budget / num_ranks / shape.num_slots, kMaxStaging)) / 64 * 64;
  return shape;
}

std::int64_t Segment::header_bytes() { return round_up(sizeof(SegmentHeader), kPage); }

std::int64_t Segment::region_bytes(const SegmentShape& shape) {
  return round_up(sizeof(RankBlock), kPage) + round_up(2 * shape.exchange_bytes, kPage) +
         round_up(shape.num_slots * shape.staging_bytes, kPage);
}

std::int64_t Segment::total_bytes(const SegmentShape& shape) {
  return header_bytes() + shape.num_ranks * region_bytes(shape);
}

std::byte* Segment::exchange_area(int rank, std::uint32_t number) const {
  return region(rank) + round_up(sizeof(RankBlock), kPage) + (number % 2) * shape_.exchange_bytes;
}

std::byte* Segment::staging(int rank, int slot) const {
  return region(rank) + round_up(sizeof(RankBlock), kPage) + round_up(2 * shape_.exchange_bytes, kPage) +
         slot * shape_.staging_bytes;
}

void Segment::construct() {
  new (base_) SegmentHeader;
  for (int rank = 0; rank < shape_.num_ranks; ++rank) new (region(rank)) RankBlock;
}

void Segment::set_failure(std::string_view text) const {
  SegmentHeader& h = header();
  std::uint32_t none = 0;
  if (!h.failure_state.compare_exchange_strong(none, 1)) return;
  const std::size_t length = std::min(text.size(), h.failure.size() - 1);
  std::copy_n(text.begin(), length, h.failure.begin());
  h.failure[length] = '\0';
  h.failure_state.store(2, std::memory_order_release);
}

std::string Segment::failure() const {
  const SegmentHeader& h = header();
  if (h.failure_state.load(std::memory_order_acquire) != 2) return {};
  const std::string out(h.failure.data(), strnlen(h.failure.data(), h.failure.size()));
  return out.empty() ? "a rank has failed, and did not say why" : out;
}

std::shared_ptr<Segment> make_private_segment(const SegmentShape& shape) {
  return std::make_shared<PrivateSegment>(shape);
}

}  // namespace gar
