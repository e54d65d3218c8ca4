// What two ranks send each other over a connection, once they know each other: heads of a fixed length, each followed
// by a payload whose length it tells. Ranks of a job have one byte order (the handshake sees to it).
//
// A rank that runs wild may send anything: a head is looked at before a byte of its payload is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace gar {

enum class FrameKind : std::uint32_t {
  kStatus = 1,    ///< a WireSignature: what the sender has called; also a sign of life
  kData = 2,      ///< a part of a message of a plan
  kExchange = 3,  ///< a round of the latency path
  kAdmit = 4,     ///< the receiver of a message says that it may be sent
  kAbort = 5,     ///< a WireAbort: the sender gives up
  kBye = 6,       ///< the sender has ended its communicator; nothing follows
};

struct FrameHead {
  std::uint32_t magic = 0;
  FrameKind kind = FrameKind::kStatus;
  std::uint64_t sequence = 0;  ///< of the operation
  std::uint32_t serial = 0;    ///< data, admission: of the chunk; exchange: round
  std::uint32_t step = 0;      ///< data, admission: number of the plan's step
  std::uint32_t index = 0;     ///< data, admission: which of the messages of this step between the two ranks
  std::uint32_t zero = 0;
  std::uint64_t offset = 0;  ///< data: where in the message the payload begins
  std::uint64_t length = 0;  ///< of the payload
};
static_assert(sizeof(FrameHead) == 48);

/// Longer messages travel in several frames, so that a rank that gives up can say so soon.
inline constexpr std::int64_t kMostFrameBytes = std::int64_t{1} << 20;
/// Of an exchange, which is one frame.
inline constexpr std::int64_t kMostExchangeBytes = std::int64_t{64} << 20;

/// A head that can be sent: with the magic in it.
FrameHead make_head(FrameKind kind, std::uint64_t sequence, std::uint64_t length);
/// What the bytes, as many as a head has, say; nothing when no rank sends that.
std::optional<FrameHead> read_head(std::span<const std::byte> bytes);

}  // namespace gar
