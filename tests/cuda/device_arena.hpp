// Memory of a GPU with an image of it on the host: the image is changed by the CPU's kernels, the memory by the GPU's,
// and both must end the same, byte for byte; also where nothing should have been written.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transports/cuda/cuda_call.hpp"

namespace gar::test {

class DeviceArena {
 public:
  explicit DeviceArena(std::int64_t capacity) : before_(static_cast<std::size_t>(capacity), std::byte{0xa5}) {
    check_cuda(cudaMalloc(&memory_, before_.size()), "cudaMalloc of the arena");
  }
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;
  ~DeviceArena() { cudaFree(memory_); }

  /// Forgets all buffers.
  void clear() {
    std::memset(before_.data(), 0xa5, static_cast<std::size_t>(used_));
    used_ = 0;
  }
  /// Room for so many bytes at `past` bytes after a multiple of 16, between guard bytes; its offset.
  std::int64_t place(std::int64_t bytes, std::int64_t past) {
    const std::int64_t begin = (used_ + kGuard + 15) / 16 * 16 + past;
    used_ = begin + bytes + kGuard;
    if (used_ > static_cast<std::int64_t>(before_.size())) throw std::length_error("the arena is too small");
    return begin;
  }
  std::byte* host(std::int64_t offset) { return before_.data() + offset; }
  [[nodiscard]] std::byte* device(std::int64_t offset) const { return static_cast<std::byte*>(memory_) + offset; }

  /// To the GPU; what comes next on the host is what the GPU should do.
  void upload(cudaStream_t stream = nullptr) {
    check_cuda(
        cudaMemcpyAsync(memory_, before_.data(), static_cast<std::size_t>(used_), cudaMemcpyHostToDevice, stream),
        "upload of the arena");
    check_cuda(cudaStreamSynchronize(stream), "upload of the arena");
  }
  /// Waits for the stream; the first difference as text, or "".
  std::string difference(cudaStream_t stream = nullptr) {
    after_.resize(static_cast<std::size_t>(used_));
    check_cuda(cudaMemcpyAsync(after_.data(), memory_, after_.size(), cudaMemcpyDeviceToHost, stream),
               "download of the arena");
    check_cuda(cudaStreamSynchronize(stream), "kernels of the test");
    if (std::memcmp(after_.data(), before_.data(), after_.size()) == 0) return "";
    std::size_t i = 0;
    while (after_[i] == before_[i]) ++i;
    std::string text = "byte " + std::to_string(i) + " of the arena:";
    const std::size_t begin = i / 16 * 16;
    for (const auto& [name, bytes] : {std::pair{" GPU", &after_}, std::pair{", CPU", &before_}}) {
      text += std::string(name);
      for (std::size_t j = begin; j < begin + 16 && j < after_.size(); ++j) {
        constexpr const char* kDigits = "0123456789abcdef";
        const auto byte = std::to_integer<unsigned>((*bytes)[j]);
        text += std::string(j % 4 == 0 ? " " : "") + kDigits[byte / 16] + kDigits[byte % 16];
      }
    }
    return text;
  }

 private:
  static constexpr std::int64_t kGuard = 48;
  std::vector<std::byte> before_;
  std::vector<std::byte> after_;
  void* memory_ = nullptr;
  std::int64_t used_ = 0;
};

}  // namespace gar::test
