// NCCL carries the messages of plans, our kernels reduce them; or NCCL does all of an operation (NcclPath::kNative).
//
// A step is one group of ncclSend and ncclRecv, and then one launch of reductions, both in the same stream. That order
// is all the safety there is to see to: a group is done when what it sends has been read and what it receives is there,
// so that neither the reductions of a step nor any later step can overwrite something that is still being sent, and the
// next group fills the staging memory after the reductions have read it. Only inside a group nothing is ordered: a
// message that is received straight into its place must not lie where the group sends from, and ChunkRecv::is_direct
// promises that.
#pragma once

#include <nccl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gar/nccl.hpp"
#include "runtime/transports/cuda/device_transport.hpp"

namespace gar {

/// A communicator of NCCL: our own, which ends with this object, or the caller's.
class NcclComm {
 public:
  /// Collective: rank 0 made the id. Throws DeviceError, TransportError.
  static NcclComm join(const ncclUniqueId& id, int rank, int size);
  static NcclComm borrow(ncclComm_t comm) { return {comm, false}; }
  NcclComm(NcclComm&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)), is_own_(other.is_own_) {}
  NcclComm& operator=(NcclComm&&) = delete;
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;
  ~NcclComm();

  /// Null after abort().
  [[nodiscard]] ncclComm_t get() const { return comm_; }
  /// Ends what is under way in streams. Not on the caller's communicator, which is not ours to end.
  void abort() noexcept;

 private:
  NcclComm(ncclComm_t comm, bool is_own) : comm_(comm), is_own_(is_own) {}

  ncclComm_t comm_ = nullptr;
  bool is_own_ = false;
};

class NcclTransport final : public DeviceTransport, public OwnCollectives {
 public:
  NcclTransport(std::unique_ptr<SharedTransport> control, NcclComm comm, NcclPath path);
  ~NcclTransport() override;
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  [[nodiscard]] std::string_view name() const override { return "nccl"; }
  bool try_send(Flight& flight, int step) override;
  bool try_receive(Flight& flight, int step, std::span<const std::byte*> operands) override;
  void consumed(Flight& flight, int step) override;
  bool try_close(Flight& flight) override;
  [[nodiscard]] OwnCollectives* own_collectives() override { return library_.empty() ? nullptr : this; }
  [[nodiscard]] std::string_view library() const override { return library_; }
  void run(const Signature& signature, const Operands& operands) override;

 private:
  /// One part of the vector on its way between two ranks.
  struct Parcel {
    std::int32_t peer = 0;
    std::int64_t begin = 0;  ///< interval of the chunk's vector
    std::int64_t end = 0;
    std::byte* memory = nullptr;
    auto operator<=>(const Parcel&) const = default;
  };

  void prepare(const Operands& operands, std::array<std::byte, kNoticeBytes>& words) override;
  void agree(std::span<const Notice* const> /*notices*/) override {}
  void meet_on_device() override;
  void check_device() override;
  void release() noexcept override;
  void collect_sends(const Flight& flight, const ChunkStep& step);
  void collect_receives(const Flight& flight, const ChunkStep& step, std::span<const std::byte*> operands);
  void exchange(std::int64_t element_size);
  /// NCCL's ReduceScatter cannot have its result in another rank's block of the input.
  [[nodiscard]] bool needs_detour(const Operands& operands) const;

  NcclComm comm_;
  std::string library_;   ///< "NCCL 2.28.3" where it runs operations itself, otherwise empty
  DeviceBuffer staging_;  ///< what a step receives, as far as it is not received into its place
  DeviceBuffer token_;    ///< a byte for barriers
  std::vector<Parcel> sends_;
  std::vector<Parcel> receives_;
};

}  // namespace gar
