// Reductions and copies of plans on a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "runtime/compute.hpp"
#include "runtime/transports/cuda/kernels.hpp"

namespace gar {

/// Device memory that grows when it has to.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  /// Throws DeviceError; then what there was is still there. What is in it is lost when it grows.
  void reserve(std::int64_t bytes);
  [[nodiscard]] std::byte* data() const { return data_; }
  /// From now on memory stays when it is replaced by more, because a graph may have its address.
  void keep_old() { keeps_old_ = true; }

 private:
  std::vector<std::byte*> old_;
  bool keeps_old_ = false;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

class DeviceCompute final : public Compute {
 public:
  void set_stream(CudaStream stream) { stream_ = stream; }
  /// Of the copies of a step this rank begins with another one than the others do, so that not all of them read from
  /// the same peer at the same time.
  void set_rank(int rank) { rank_ = rank; }
  [[nodiscard]] CudaStream stream() const { return stream_; }
  void reserve_scratch(std::int64_t bytes) { scratch_.reserve(bytes); }
  void keep_scratch() { scratch_.keep_old(); }

  [[nodiscard]] bool supports(DataType type, ReduceOp op) const override { return is_supported_on_device(type, op); }
  void reduce(DataType type, ReduceOp op, void* out, std::span<const void* const> operands,
              std::int64_t count) override;
  void copy(void* out, const void* in, std::int64_t bytes, Stores stores) override;
  void end_step() override;
  /// What reserve_scratch has made: allocations must not fail in the middle of an operation.
  std::byte* scratch(std::int64_t /*bytes*/) override { return scratch_.data(); }

 private:
  CudaStream stream_ = nullptr;
  int rank_ = 0;
  DeviceBuffer scratch_;
  DataType type_ = DataType::kFloat32;
  ReduceOp op_ = ReduceOp::kSum;
  std::vector<DeviceReduction> reductions_;  ///< of this step
  std::vector<DeviceCopy> copies_;
};

/// For as long as it lives, memory can be allocated although a stream is being captured into a graph.
class RelaxedCapture {
 public:
  RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace gar
