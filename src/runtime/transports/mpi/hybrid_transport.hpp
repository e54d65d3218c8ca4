// Shared memory between the ranks of a host, MPI between hosts: one plan over both.
//
// Both transports see the same chunks and steps; each carries the messages of its own peers and leaves the others
// alone.
#pragma once

#include <memory>

#include "runtime/transports/mpi/mpi_transport.hpp"
#include "runtime/transports/shared/shared_transport.hpp"

namespace gar {

class HybridTransport final : public Transport {
 public:
  HybridTransport(std::unique_ptr<SharedTransport> shared, std::unique_ptr<MpiTransport> mpi)
      : shared_(std::move(shared)), mpi_(std::move(mpi)) {}

  [[nodiscard]] int rank() const override { return mpi_->rank(); }
  [[nodiscard]] int size() const override { return mpi_->size(); }
  [[nodiscard]] std::string_view name() const override { return "shm+mpi"; }
  [[nodiscard]] TransportLimits limits() const override;
  [[nodiscard]] bool allows_threads() const override { return mpi_->allows_threads(); }

  void begin(const Signature& signature, const Operands& operands) override;
  bool try_open(Flight& flight) override;
  bool try_send(Flight& flight, int step) override;
  bool try_receive(Flight& flight, int step, std::span<const std::byte*> operands) override;
  void consumed(Flight& flight, int step) override;
  bool try_close(Flight& flight) override;
  void wait() override;
  void progressed() override;
  void fail(std::string_view reason) noexcept override;
  [[nodiscard]] QuickGather quick_gather() const override { return mpi_->quick_gather(); }
  bool try_exchange(const void* in, std::int64_t bytes, std::span<const std::byte*> operands) override;

 private:
  std::unique_ptr<SharedTransport> shared_;
  std::unique_ptr<MpiTransport> mpi_;
  int num_waits_ = 0;
};

}  // namespace gar
