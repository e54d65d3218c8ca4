#include "runtime/transports/hybrid/hybrid_transport.hpp"

#include <algorithm>

namespace gar {

namespace {

constexpr int kWaitsPerCheck = 64;  // between two looks after the ranks of this host

}  // namespace

TransportLimits HybridTransport::limits() const {
  TransportLimits limits = shared_->limits();
  limits.num_slots = std::min(limits.num_slots, messages_->limits().num_slots);
  limits.least_chunk_bytes = messages_->limits().least_chunk_bytes;
  return limits;
}

void HybridTransport::begin(const Signature& signature, const Operands& operands) {
  shared_->begin(signature, operands);
  messages_->begin(signature, operands);
}

bool HybridTransport::try_open(Flight& flight) { return shared_->try_open(flight) && messages_->try_open(flight); }

bool HybridTransport::try_send(Flight& flight, int step) {
  // Other hosts are farther away: their data leave first. Neither refuses.
  return messages_->try_send(flight, step) && shared_->try_send(flight, step);
}

bool HybridTransport::try_receive(Flight& flight, int step, std::span<const std::byte*> operands) {
  const bool has_messages = messages_->try_receive(flight, step, operands);
  return shared_->try_receive(flight, step, operands) && has_messages;
}

void HybridTransport::consumed(Flight& flight, int step) {
  shared_->consumed(flight, step);
  messages_->consumed(flight, step);
}

bool HybridTransport::try_close(Flight& flight) { return messages_->try_close(flight) && shared_->try_close(flight); }

void HybridTransport::wait() {
  if (!messages_->is_waiting()) {
    shared_->wait();
    return;
  }
  // Nothing wakes this thread for both, so shared memory is looked at when this returns.
  messages_->wait();
  if (++num_waits_ % kWaitsPerCheck == 0) shared_->check_peers();
}

void HybridTransport::progressed() {
  num_waits_ = 0;
  shared_->progressed();
  messages_->progressed();
}

void HybridTransport::fail(std::string_view reason) noexcept {
  shared_->fail(reason);
  messages_->fail(reason);
}

bool HybridTransport::try_exchange(const void* in, std::int64_t bytes, std::span<const std::byte*> operands) {
  return messages_->try_exchange(in, bytes, operands);
}

}  // namespace gar
