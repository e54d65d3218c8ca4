#include "runtime/transports/tcp/frames.hpp"

#include <cstring>

#include "runtime/transports/mpi/frame.hpp"

namespace gar {

namespace {

constexpr std::uint32_t kFrameMagic = 0x46726167U;

bool is_fitting(const FrameHead& head) {
  const auto most = [&](std::int64_t bytes) { return head.length <= static_cast<std::uint64_t>(bytes); };
  switch (head.kind) {
    case FrameKind::kStatus:
      return head.length == sizeof(WireSignature);
    case FrameKind::kAbort:
      return head.length == sizeof(WireAbort);
    case FrameKind::kData:
      return head.length > 0 && most(kMostFrameBytes);
    case FrameKind::kExchange:
      return head.length > 0 && most(kMostExchangeBytes);
    case FrameKind::kAdmit:
    case FrameKind::kBye:
      return head.length == 0;
  }
  return false;
}

}  // namespace

FrameHead make_head(FrameKind kind, std::uint64_t sequence, std::uint64_t length) {
  FrameHead out;
  out.magic = kFrameMagic;
  out.kind = kind;
  out.sequence = sequence;
  out.length = length;
  return out;
}

std::optional<FrameHead> read_head(std::span<const std::byte> bytes) {
  FrameHead head;
  if (bytes.size() != sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != kFrameMagic || head.zero != 0 || !is_fitting(head)) return std::nullopt;
  return head;
}

}  // namespace gar
