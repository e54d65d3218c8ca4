// What transports on GPUs have in common: streams, the check of buffers, and the meeting of all ranks before an
// operation.
//
// A call puts its whole operation into a stream and waits for nothing that the GPU does. Before that the ranks meet on
// the host (where they share memory): they compare what they were asked for, tell each other what their GPUs need to
// know, and refuse together when one of them cannot take part, so that nothing has begun anywhere.
#pragma once

#include <array>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "runtime/schedule.hpp"
#include "runtime/transports/cuda/device_compute.hpp"
#include "runtime/transports/shared/shared_transport.hpp"

namespace gar {

class DeviceTransport : public Transport, public DeviceSide {
 public:
  /// Takes part with the current device. `control` connects the ranks' processes; without it they do not meet.
  DeviceTransport(std::unique_ptr<SharedTransport> control, int rank, int size);
  ~DeviceTransport() override;
  DeviceTransport(const DeviceTransport&) = delete;
  DeviceTransport& operator=(const DeviceTransport&) = delete;

  [[nodiscard]] int rank() const final { return rank_; }
  [[nodiscard]] int size() const final { return size_; }
  [[nodiscard]] TransportLimits limits() const override;
  [[nodiscard]] bool allows_threads() const final { return true; }
  [[nodiscard]] DeviceCompute& compute() final { return compute_; }
  [[nodiscard]] DeviceSide* device() final { return this; }

  [[nodiscard]] std::shared_ptr<void> enter() final;
  [[nodiscard]] bool is_intact() const final { return is_intact_; }
  bool try_meet() final;
  bool try_complete() final;
  bool is_idle(Stream stream) final;

  void begin(const Signature& signature, const Operands& operands) final;
  bool try_open(Flight& flight) override;
  void wait() final;
  void progressed() final;
  void fail(std::string_view reason) noexcept final;

 protected:
  /// What a rank tells the others before an operation.
  static constexpr std::size_t kNoticeBytes = 384;
  struct Notice {
    std::int32_t is_refused = 0;
    std::array<char, 252> reason{};
    alignas(8) std::array<std::byte, kNoticeBytes> words{};
  };

  /// An operation with elements: reserves memory, and writes what peers need to know. May throw, then no rank begins.
  virtual void prepare(const Operands& operands, std::array<std::byte, kNoticeBytes>& words) = 0;
  /// All ranks take part; `notices` are in the order of ranks (empty: they do not meet).
  virtual void agree(std::span<const Notice* const> notices) = 0;
  /// When this is done in the stream, all ranks have begun the operation. Called for operations without elements where
  /// the ranks do not meet on the host.
  virtual void meet_on_device() {}
  /// Called now and then while this rank waits: throws when what connects the GPUs has failed.
  virtual void check_device() {}
  /// Ends waits in streams that no rank will fulfil. Called again and again until the stream is empty.
  virtual void release() noexcept = 0;
  /// To be called by destructors: as enter, and waits for what is in streams, as far as the peers are alive.
  [[nodiscard]] std::shared_ptr<void> enter_for_good() noexcept;
  void finish() noexcept;

  [[nodiscard]] CudaStream stream() const { return compute_.stream(); }
  [[nodiscard]] bool is_capturing() const { return is_capturing_; }
  [[nodiscard]] SharedTransport* control() { return control_.get(); }
  [[nodiscard]] bool has_failed() const { return has_failed_; }

 private:
  void choose_stream(const Operands& operands);
  void check_buffers(const Operands& operands) const;
  void check_buffer(const void* pointer, const char* name) const;
  [[noreturn]] void refuse(std::span<const Notice* const> notices);
  void look_after_peers();
  [[nodiscard]] bool are_streams_idle() const;
  void wait_for_last();

  std::unique_ptr<SharedTransport> control_;
  int rank_;
  int size_;
  int device_ = 0;
  DeviceCompute compute_;
  cudaStream_t own_ = nullptr;
  cudaEvent_t last_ = nullptr;  ///< the end of the last operation
  bool has_last_ = false;
  bool is_blocking_ = true;
  bool is_capturing_ = false;
  bool has_recorded_ = false;
  bool has_elements_ = false;
  bool has_met_ = false;
  bool is_intact_ = false;
  bool has_failed_ = false;
  Notice notice_;
  std::exception_ptr problem_;
  CudaStream user_stream_ = nullptr;  ///< that synchronize() waits for
  bool has_user_stream_ = false;
  bool is_entering_ = false;     ///< an operation is on its way into a stream
  bool is_gpu_awaited_ = false;  ///< and not the other ranks
  int num_looks_ = 0;
  std::chrono::steady_clock::time_point next_check_;
};

}  // namespace gar
