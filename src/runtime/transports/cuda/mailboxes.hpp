// The boxes of runtime/mailbox_protocol.hpp: numbers in device memory that streams of several processes write and wait
// for.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/transports/cuda/driver.hpp"

namespace gar {

/// The boxes of one rank, in its own device memory.
class MailboxMemory {
 public:
  explicit MailboxMemory(int num_ranks);
  /// Memory that peers may still have mapped is kept for the next communicator of the process, if it is clean.
  ~MailboxMemory();
  MailboxMemory(const MailboxMemory&) = delete;
  MailboxMemory& operator=(const MailboxMemory&) = delete;
  [[nodiscard]] std::uint32_t* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const;
  void set_dirty() { is_dirty_ = true; }

 private:
  int device_ = 0;
  int num_ranks_;
  std::uint32_t* data_ = nullptr;
  bool is_dirty_ = false;
};

/// Where the boxes of a rank are that another one fills.
struct Mailboxes {
  std::uint32_t* base = nullptr;
  int num_ranks = 1;
  [[nodiscard]] std::uint32_t* published(int writer) const { return base + std::int64_t{writer} * kStride; }
  [[nodiscard]] std::uint32_t* consumed(int writer) const { return published(num_ranks + writer); }
  static constexpr std::int64_t kStride = 16;  // numbers: a cache line for each box
};

/// Writes and waits that enter a stream together.
class StreamBatch {
 public:
  void write(std::uint32_t* box, std::uint32_t value);
  /// Until the box has at least this value.
  void wait(std::uint32_t* box, std::uint32_t value);
  /// Throws DeviceError.
  void enter(CUstream stream);

 private:
  std::vector<CUstreamBatchMemOpParams> operations_;
};

}  // namespace gar
