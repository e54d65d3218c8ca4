// Processes of a host whose GPUs can read each other's memory: receivers take every operand from where its sender has
// it.
//
// Streams meet through mailboxes (runtime/mailbox_protocol.hpp): a step begins with telling its receivers, waits for
// its senders, and is one n-ary reduction or a bundle of copies straight out of the peers' buffers. Nothing is staged,
// and no rank writes into another rank's buffers.
#pragma once

#include <memory>
#include <vector>

#include "runtime/mailbox_protocol.hpp"
#include "runtime/transports/cuda/device_transport.hpp"
#include "runtime/transports/cuda/mailboxes.hpp"
#include "runtime/transports/cuda/mappings.hpp"

namespace gar {

class IpcTransport final : public DeviceTransport {
 public:
  /// Collective: the ranks exchange their mailboxes. Throws TransportError, DeviceError.
  IpcTransport(std::unique_ptr<SharedTransport> control, int rank, int size);
  ~IpcTransport() override;
  IpcTransport(const IpcTransport&) = delete;
  IpcTransport& operator=(const IpcTransport&) = delete;

  [[nodiscard]] std::string_view name() const override { return "cuda-ipc"; }
  [[nodiscard]] TransportLimits limits() const override;
  bool try_send(Flight& flight, int step) override;
  bool try_receive(Flight& flight, int step, std::span<const std::byte*> operands) override;
  void consumed(Flight& flight, int step) override;
  bool try_close(Flight& flight) override;

  /// Ranks on the GPU that has most of them.
  [[nodiscard]] int num_sharing() const { return num_sharing_; }

 private:
  /// What a rank tells the others: where its buffers are.
  struct Addresses {
    IpcAddress in;
    IpcAddress out;
  };
  /// A peer's buffers in this process; the second one is where it keeps what it has reduced.
  struct PeerBuffers {
    std::byte* in = nullptr;
    std::byte* out = nullptr;
  };
  struct OwnBuffers {
    const std::byte* in = nullptr;
    const std::byte* out = nullptr;
  };

  void meet_peers();
  void prepare(const Operands& operands, std::array<std::byte, kNoticeBytes>& words) override;
  void agree(std::span<const Notice* const> notices) override;
  void release() noexcept override;
  void add(const std::vector<BoxAction>& actions);

  MailboxMemory own_boxes_;
  Mappings mappings_;
  std::vector<Mailboxes> boxes_;  ///< of every rank
  std::vector<PeerBuffers> buffers_;
  OwnBuffers own_;
  StreamBatch batch_;  ///< writes and waits since the last kernel
  cudaStream_t releasing_ = nullptr;
  int num_sharing_ = 1;
};

}  // namespace gar
