// Collective operations on device memory, checked on the host; and processes that share the GPUs of this machine.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gar/cuda.hpp"
#include "runtime/transports/cuda/cuda_call.hpp"
#include "support/collective_cases.hpp"
#include "support/rank_groups.hpp"

namespace gar::test {

/// Why there is no GPU; empty: there is one. Asked in a process of its own, because a process that has used CUDA cannot
/// fork others that do.
inline std::string why_no_gpu() {
  Processes processes;
  processes.start([] {
    std::string why;
    if (num_cuda_devices(&why) == 0) throw Failure(why.empty() ? "no GPU" : why);
  });
  return processes.collect().front().text;
}

#define GAR_SKIP_WITHOUT_GPU() \
  if (const std::string why = why_no_gpu(); why != "") GTEST_SKIP() << "needs a GPU: " << why

/// Keeps a stream from going on until the flag is set; a minute at most, so that a test that fails ends.
inline void hold_up(cudaStream_t stream, std::atomic<bool>& is_released) {
  const auto wait = [](void* flag) {
    const auto start = Clock::now();
    while (!static_cast<std::atomic<bool>*>(flag)->load() && seconds_since(start) < 60) usleep(1000);
  };
  check_cuda(cudaLaunchHostFunc(stream, wait, &is_released), "cudaLaunchHostFunc");
}

/// Device memory of a test.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes) { check_cuda(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  DeviceMemory(DeviceMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { cudaFree(data_); }
  [[nodiscard]] std::byte* bytes() const { return static_cast<std::byte*>(data_); }
  [[nodiscard]] float* floats() const { return static_cast<float*>(data_); }

 private:
  void* data_ = nullptr;
};

inline void upload(void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "upload");
  check_cuda(cudaDeviceSynchronize(), "upload");
}
inline void download(void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "download");
}

/// A case whose buffers, with the zones around them, are in device memory while it runs.
class DeviceCaseRun : public CaseRun {
 public:
  DeviceCaseRun(const Case& c, int rank, int size, std::uint64_t salt) : CaseRun(c, rank, size, salt), collective_(c) {
    for (GuardedBuffer* buffer : {&in_buffer_, &out_buffer_}) {
      images_.emplace_back(std::max<std::size_t>(buffer->all().size(), 1));
    }
    host_in_ = in_;
    host_out_ = out_;
  }

  void to_device() {
    const GuardedBuffers buffers = all_buffers();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      upload(images_[i].bytes(), buffers[i]->all().data(), buffers[i]->all().size());
    }
    in_ = image_of(host_in_);
    out_ = image_of(host_out_);
  }
  void to_host() {
    const GuardedBuffers buffers = all_buffers();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      download(buffers[i]->all().data(), images_[i].bytes(), buffers[i]->all().size());
    }
    in_ = host_in_;
    out_ = host_out_;
  }
  void run_on(Communicator& communicator, Stream stream) {
    const Case& c = collective_;
    if (c.collective == Collective::kAllReduce) communicator.all_reduce(in_, out_, c.count, c.type, c.op, stream);
    if (c.collective == Collective::kReduceScatter)
      communicator.reduce_scatter(in_, out_, c.count, c.type, c.op, stream);
    if (c.collective == Collective::kAllGather) communicator.all_gather(in_, out_, c.count, c.type, stream);
  }

 private:
  using GuardedBuffers = std::vector<GuardedBuffer*>;
  GuardedBuffers all_buffers() { return {&in_buffer_, &out_buffer_}; }
  std::byte* image_of(const std::byte* address) {
    const GuardedBuffers buffers = all_buffers();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const std::span<std::byte> all = buffers[i]->all();
      if (address >= all.data() && address < all.data() + all.size())
        return images_[i].bytes() + (address - all.data());
    }
    throw Failure("a buffer of the test has no image");
  }

  Case collective_;
  std::vector<DeviceMemory> images_;
  std::byte* host_in_ = nullptr;
  std::byte* host_out_ = nullptr;
};

/// With a stream, or blocking in one of the ways.
inline void run_device_case(Communicator& communicator, const Case& c, std::uint64_t salt, cudaStream_t stream) {
  DeviceCaseRun run(c, communicator.rank(), communicator.size(), salt);
  run.to_device();
  if (stream != nullptr) {
    run.run_on(communicator, Stream{stream});
    communicator.synchronize(Stream{stream});
  } else if (c.call == Call::kStart) {
    run.start(communicator).wait();
  } else if (c.call == Call::kPersistent) {
    Request request = run.prepare(communicator);
    request.start();
    request.wait();
    // Once more with fresh input, in the same buffers.
    run.to_host();
    run.verify();
    run.load();
    run.to_device();
    request.start();
    request.wait();
  } else {
    run.block(communicator);
  }
  run.to_host();
  run.verify();
}

/// Cases with types and operators that GPUs have.
inline std::vector<Case> device_cases(int num_ranks, std::uint64_t seed, std::size_t number) {
  CaseDealer dealer(seed);
  std::vector<Case> out;
  while (out.size() < number) {
    Case c = dealer.deal(num_ranks);
    if (c.count > 0 && is_supported_on_cuda(c.type, c.op)) out.push_back(c);
  }
  return out;
}

/// What a function threw, as text.
template <class Function>
std::string error_of(Function function) {
  try {
    function();
    return "no error";
  } catch (const std::exception& e) {
    return text_of(e);
  }
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Free memory of the GPU as all ranks see it while nobody does anything.
inline std::size_t quiet_free_memory(Communicator& communicator) {
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  communicator.barrier();
  std::size_t free = 0;
  std::size_t total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  communicator.barrier();
  return free;
}

/// All memory of the GPU but a few megabytes.
class Hoard {
 public:
  Hoard() = default;
  Hoard(const Hoard&) = delete;
  Hoard& operator=(const Hoard&) = delete;
  ~Hoard() { release(); }
  void fill() {
    for (std::size_t bytes = std::size_t{1} << 36; bytes >= std::size_t{1} << 22;) {
      void* memory = nullptr;
      if (cudaMalloc(&memory, bytes) == cudaSuccess) {
        memory_.push_back(memory);
      } else {
        cudaGetLastError();
        bytes /= 2;
      }
    }
  }
  void release() {
    for (void* memory : memory_) cudaFree(memory);
    memory_.clear();
  }

 private:
  std::vector<void*> memory_;
};

struct DeviceMember {
  int rank = 0;
  int size = 1;
  std::string name;  ///< for communicators; the same on all ranks
};

/// Runs the body in `size` processes that share the GPUs, and returns what they threw.
inline std::vector<std::string> run_on_gpus(int size, const std::function<void(const DeviceMember&)>& body,
                                            double limit_s = kLongestWait) {
  const std::string name = unique_name("gpu");
  Processes processes;
  for (int rank = 0; rank < size; ++rank) {
    processes.start([&, rank] {
      // NCCL refuses ranks of one host that share a GPU; these pretend to be on several.
      setenv("NCCL_HOSTID", (name + std::to_string(rank)).c_str(), 1);
      setenv("NCCL_SOCKET_IFNAME", "lo", 1);
      check_cuda(cudaSetDevice(rank % num_cuda_devices()), "cudaSetDevice");
      body({rank, size, name});
    });
  }
  std::vector<std::string> out;
  for (const Processes::Outcome& outcome : processes.collect(limit_s)) out.push_back(outcome.text);
  return out;
}

}  // namespace gar::test
