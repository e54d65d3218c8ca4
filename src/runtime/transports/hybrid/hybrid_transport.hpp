// Shared memory between the ranks of a host, messages between hosts: one plan over both.
//
// Both transports see the same chunks and steps; each carries the messages of its own peers and leaves the others
// alone.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "runtime/transports/shared/shared_transport.hpp"

namespace gar {

/// A transport of messages that may leave some ranks to another one.
class MessageTransport : public Transport {
 public:
  /// Is a message under way?
  [[nodiscard]] virtual bool is_waiting() const = 0;
};

class HybridTransport final : public Transport {
 public:
  HybridTransport(std::unique_ptr<SharedTransport> shared, std::unique_ptr<MessageTransport> messages)
      : shared_(std::move(shared)), messages_(std::move(messages)), name_("shm+" + std::string(messages_->name())) {}

  [[nodiscard]] int rank() const override { return messages_->rank(); }
  [[nodiscard]] int size() const override { return messages_->size(); }
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] TransportLimits limits() const override;
  [[nodiscard]] bool allows_threads() const override { return messages_->allows_threads(); }

  void begin(const Signature& signature, const Operands& operands) override;
  bool try_open(Flight& flight) override;
  bool try_send(Flight& flight, int step) override;
  bool try_receive(Flight& flight, int step, std::span<const std::byte*> operands) override;
  void consumed(Flight& flight, int step) override;
  bool try_close(Flight& flight) override;
  void wait() override;
  void progressed() override;
  void fail(std::string_view reason) noexcept override;
  [[nodiscard]] QuickGather quick_gather() const override { return messages_->quick_gather(); }
  bool try_exchange(const void* in, std::int64_t bytes, std::span<const std::byte*> operands) override;

 private:
  std::unique_ptr<SharedTransport> shared_;
  std::unique_ptr<MessageTransport> messages_;
  std::string name_;
  int num_waits_ = 0;
};

}  // namespace gar
