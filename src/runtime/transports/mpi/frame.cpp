#include "runtime/transports/mpi/frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "gar/errors.hpp"
#include "gar/format.hpp"

namespace gar {

namespace {

bool is_below(std::int32_t value, int limit) { return value >= 0 && value < limit; }

/// Could a rank have sent this?
bool is_meaningful(const WireSignature& wire) {
  return wire.count >= 0 && is_below(wire.collective, kNumSignatureCodes) && is_below(wire.type, kNumDataTypes) &&
         is_below(wire.op, kNumReduceOps);
}

}  // namespace

WireSignature to_wire(const Signature& signature, int rank) {
  return {signature.sequence,
          signature.count,
          signature.plan,
          code_of(signature),
          static_cast<std::int32_t>(signature.type),
          static_cast<std::int32_t>(signature.op),
          rank};
}

Signature read_signature(std::span<const std::byte> bytes, int sender) {
  WireSignature wire;
  const bool is_whole = bytes.size() == sizeof wire;
  if (is_whole) std::memcpy(&wire, bytes.data(), sizeof wire);
  if (!is_whole || !is_meaningful(wire) || wire.rank != sender) {
    throw TransportError(fmt::format("rank {} has sent a message that no rank sends", sender));
  }
  Signature out;
  set_code(out, wire.collective);
  out.sequence = wire.sequence;
  out.count = wire.count;
  out.type = static_cast<DataType>(wire.type);
  out.op = static_cast<ReduceOp>(wire.op);
  out.plan = wire.plan;
  return out;
}

WireAbort make_abort(int origin, std::string_view reason) noexcept {
  WireAbort out;
  out.origin = origin;
  std::copy_n(reason.data(), std::min(reason.size(), out.text.size() - 1), out.text.data());
  return out;
}

WireAbort read_abort(std::span<const std::byte> bytes, int sender, int num_ranks) noexcept {
  WireAbort out;
  if (bytes.size() != sizeof out) return make_abort(sender, "");
  std::memcpy(&out, bytes.data(), sizeof out);
  if (!is_below(out.origin, num_ranks)) return make_abort(sender, "");
  out.text.back() = '\0';
  return out;
}

std::string describe(const WireAbort& abort) {
  const std::string_view text(abort.text.data(), strnlen(abort.text.data(), abort.text.size()));
  return text.empty() ? fmt::format("rank {} gave up, and did not say why", abort.origin)
                      : fmt::format("rank {} gave up: {}", abort.origin, escaped(text));
}

}  // namespace gar
