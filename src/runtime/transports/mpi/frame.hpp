// What the ranks of an MPI job send each other besides data, as bytes: what they were called with, and that they give
// up. Knows nothing of MPI, so that fuzzers and tests read frames without a job.
//
// A rank that runs wild may send anything. What it says is therefore looked at before it is used: lengths, numbers that
// stand for names, ranks, and texts, which may have no end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/transport.hpp"

namespace gar {

/// A signature as bytes; the ranks of a job have one architecture.
struct WireSignature {
  std::uint64_t sequence = 0;
  std::int64_t count = 0;
  std::uint64_t plan = 0;
  std::int32_t collective = 0;
  std::int32_t type = 0;
  std::int32_t op = 0;
  std::int32_t rank = 0;  ///< of the sender
};
WireSignature to_wire(const Signature& signature, int rank);
/// What `sender` was called with. Throws TransportError when these bytes are nothing that it could have sent: another
/// length, numbers without a meaning, the name of another rank.
Signature read_signature(std::span<const std::byte> bytes, int sender);

/// A rank gives up.
struct WireAbort {
  std::int32_t origin = -1;      ///< the rank that gave up first; -1: none
  std::array<char, 508> text{};  ///< its reason, ended by 0
};
WireAbort make_abort(int origin, std::string_view reason) noexcept;
/// What `sender` says, whose message it is that it gives up: that much is sure, whatever the bytes are. The text has an
/// end, and the origin is a rank of the job; where they do not say which, it is the sender.
WireAbort read_abort(std::span<const std::byte> bytes, int sender, int num_ranks) noexcept;
/// "rank 3 gave up: its reason"
std::string describe(const WireAbort& abort);

}  // namespace gar
