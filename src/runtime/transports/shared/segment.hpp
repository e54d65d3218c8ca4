// The memory that the ranks of a host share, and which of them are still there.
//
//   Header | rank 0: RankBlock, exchange areas, staging of slot 0, 1, ... | rank 1: ... | ...
//
// Between processes it is a file in memory that never has a name, so the kernel frees it with the last process, however
// that ends. Every process holds a lock on one byte of the file; the kernel drops it when the process dies, and that is
// how the others know.
//
// A rank that runs wild may write anything anywhere in it. What a rank reads out of it is therefore never used as an
// address or a length; how the memory is divided, each rank keeps for itself.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/transport.hpp"
#include "runtime/transports/shared/signal.hpp"

namespace gar {

inline constexpr int kMaxSlots = 8;

/// How a segment is divided; the same for all ranks (rank 0 decides).
struct SegmentShape {
  int num_ranks = 1;
  int num_slots = 3;
  std::int64_t staging_bytes = 0;   ///< of one rank and slot
  std::int64_t exchange_bytes = 0;  ///< of one rank, for each of two areas
};
/// What suits the caches of this machine. `staging_bytes` > 0: that much per rank, all slots together (at least 1 KiB
/// per slot is taken).
SegmentShape suitable_shape(int num_ranks, std::int64_t staging_bytes);

/// A signature that others may read while it changes.
struct SignatureCell {
  std::atomic<std::uint64_t> sequence{0};
  std::array<std::atomic<std::uint64_t>, 4> words{};
};

struct SlotSignals {
  Signal published;  ///< serial of the chunk and number of its steps whose sends are staged
  Signal released;   ///< receivers that need nothing of a chunk any more, counted over all chunks
};

/// What a rank shows to the others.
struct RankBlock {
  Signal exchanged;  ///< number of the latency exchange; its note is a hash of the signature
  std::array<SlotSignals, kMaxSlots> slots;
  std::array<SignatureCell, 4> signatures;  ///< of the operation with this number modulo 4
  alignas(64) std::atomic<std::uint32_t> has_joined{0};
  std::atomic<std::uint32_t> has_left{0};
  std::atomic<std::uint32_t> heartbeat{0};  ///< changes while the rank waits for others
};

struct SegmentHeader {
  Signal num_joined;
  std::atomic<std::uint32_t> failure_state{0};  ///< 0 none, 1 being written, 2 to be read
  std::array<char, 1024> failure{};             ///< text
};

class Segment {
 public:
  explicit Segment(const SegmentShape& shape) : shape_(shape) {}
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  virtual ~Segment() = default;

  [[nodiscard]] const SegmentShape& shape() const { return shape_; }
  [[nodiscard]] SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  [[nodiscard]] RankBlock& block(int rank) const { return *reinterpret_cast<RankBlock*>(region(rank)); }
  [[nodiscard]] std::byte* exchange_area(int rank, std::uint32_t number) const;
  [[nodiscard]] std::byte* staging(int rank, int slot) const;
  /// Does the process of this rank still exist?
  [[nodiscard]] virtual bool is_alive(int rank) const = 0;
  /// "threads" or "shm"
  [[nodiscard]] virtual std::string_view kind() const = 0;

  /// Tells all ranks why it ends; the first reason counts.
  void set_failure(std::string_view text) const;
  /// That reason; empty when all is well.
  [[nodiscard]] std::string failure() const;
  static std::int64_t total_bytes(const SegmentShape& shape);

 protected:
  static std::int64_t header_bytes();
  static std::int64_t region_bytes(const SegmentShape& shape);
  [[nodiscard]] std::byte* region(int rank) const { return base_ + header_bytes() + rank * region_bytes(shape_); }
  /// Makes the header and the blocks in zeroed memory.
  void construct();

  SegmentShape shape_;
  std::byte* base_ = nullptr;
};

/// Memory of this process, for its threads.
std::shared_ptr<Segment> make_private_segment(const SegmentShape& shape);

/// Rank 0 makes the segment of that name, the others find it; returns when all have joined. Calls `look` now and then,
/// which may throw. Throws TransportError; PeerLost when ranks did not come, or died.
std::shared_ptr<Segment> join_segment(std::string_view name, int rank, const SegmentShape& shape, double timeout_s,
                                      const std::function<void()>& look = {});

}  // namespace gar
