#include "runtime/transports/cuda/device_compute.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gar/errors.hpp"
#include "runtime/transports/cuda/cuda_call.hpp"

namespace gar {

DeviceBuffer::~DeviceBuffer() {
  for (std::byte* memory : old_) static_cast<void>(cudaFree(memory));
  if (data_ != nullptr) static_cast<void>(cudaFree(data_));
}

void DeviceBuffer::reserve(std::int64_t bytes) {
  if (bytes <= bytes_) return;
  const RelaxedCapture relaxed;
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(bytes)),
             [&] { return fmt::format("cudaMalloc of {}", bytes_text(static_cast<double>(bytes))); });
  if (keeps_old_ && data_ != nullptr) {
    old_.push_back(data_);
  } else if (data_ != nullptr) {
    static_cast<void>(cudaFree(data_));  // waits for what still uses it
  }
  data_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
}

void DeviceCompute::reduce(DataType type, ReduceOp op, void* out, std::span<const void* const> operands,
                           std::int64_t count) {
  type_ = type;
  op_ = op;
  DeviceReduction job;
  job.out = out;
  std::copy(operands.begin(), operands.end(), job.operands.begin());
  job.num_operands = static_cast<int>(operands.size());
  job.count = count;
  reductions_.push_back(job);
}

void DeviceCompute::copy(void* out, const void* in, std::int64_t bytes, Stores /*stores*/) {
  copies_.push_back({out, in, bytes});
}

void DeviceCompute::end_step() {
  if (!reductions_.empty()) launch_reductions(type_, op_, reductions_, stream_);
  if (!copies_.empty()) {
    const auto first = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank_) % copies_.size());
    std::rotate(copies_.begin(), copies_.begin() + first, copies_.end());
    launch_copies(copies_, stream_);
  }
  reductions_.clear();
  copies_.clear();
}

}  // namespace gar
