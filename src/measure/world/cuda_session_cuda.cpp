// A program with CUDA.
#include "gar/cuda.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>

#include "gar/errors.hpp"
#include "gar/measure/cuda_session.hpp"
#ifdef GAR_HAS_NCCL
#include "gar/nccl.hpp"
#endif

namespace gar::measure {
namespace {

void check_cuda(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // so that it does not show up in a later call
  throw DeviceError(fmt::format("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)));
}

class Event {
 public:
  Event() { check_cuda(cudaEventCreate(&event_), "making an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class Session : public CudaSession {
 public:
  Session(int device, int num_devices) : device_(device), num_devices_(num_devices) {
    check_cuda(cudaSetDevice(device), fmt::format("taking GPU {}", device));
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), fmt::format("a stream on GPU {}", device));
  }
  ~Session() override { cudaStreamDestroy(stream_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] std::string words() const override {
    cudaDeviceProp properties = {};
    check_cuda(cudaGetDeviceProperties(&properties, device_), fmt::format("properties of GPU {}", device_));
    return fmt::format("{}, {} multiprocessors, {:.0f} GiB", properties.name, properties.multiProcessorCount,
                       static_cast<double>(properties.totalGlobalMem) / (1 << 30));
  }
  [[nodiscard]] int num_devices() const override { return num_devices_; }
  [[nodiscard]] std::int64_t free_bytes() const override {
    std::size_t free = 0;
    std::size_t total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), fmt::format("free memory of GPU {}", device_));
    return static_cast<std::int64_t>(free);
  }
  [[nodiscard]] std::string nccl_version() const override {
#ifdef GAR_HAS_NCCL
    return gar::nccl_version();
#else
    throw std::runtime_error(kNoNccl);
#endif
  }

  DeviceMemory allocate(std::int64_t bytes) override {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(bytes)),
               fmt::format("{} bytes of memory on GPU {}, of which {} are free", bytes, device_, free_bytes()));
    return DeviceMemory(static_cast<std::byte*>(memory), DeviceRelease{this});
  }
  void release(std::byte* memory) noexcept override { cudaFree(memory); }
  void upload(void* device, const void* host, std::int64_t bytes) override {
    move(device, host, bytes, cudaMemcpyHostToDevice, "copying to the GPU");
    synchronize();
  }
  void download(void* host, const void* device, std::int64_t bytes) override {
    move(host, device, bytes, cudaMemcpyDeviceToHost, "copying from the GPU");
    synchronize();
  }

  [[nodiscard]] Stream stream() const override { return {stream_}; }
  void copy(void* out, const void* in, std::int64_t bytes) override {
    move(out, in, bytes, cudaMemcpyDeviceToDevice, "copying on the GPU");
  }
  void reduce(DataType type, ReduceOp op, void* out, std::span<const void* const> operands,
              std::int64_t count) override {
    cuda_reduce(type, op, out, operands, count, stream());
  }
  void synchronize() override { check_cuda(cudaStreamSynchronize(stream_), "waiting for the GPU"); }
  double time(const std::function<void()>& enqueue, std::int64_t repetitions) override {
    const Event begin;
    const Event end;
    check_cuda(cudaEventRecord(begin.get(), stream_), "recording an event");
    for (std::int64_t i = 0; i < repetitions; ++i) enqueue();
    check_cuda(cudaEventRecord(end.get(), stream_), "recording an event");
    check_cuda(cudaEventSynchronize(end.get()), "waiting for the GPU");
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin.get(), end.get()), "reading events");
    return 1e-3 * static_cast<double>(ms) / static_cast<double>(repetitions);
  }

  Communicator communicator(const CudaPlace& place, const CommunicatorOptions& options,
                            TransportKind transport) override {
    if (transport != TransportKind::kNccl) return cuda_communicator(place.name, place.rank, place.size, options);
#ifdef GAR_HAS_NCCL
    return nccl_communicator(place.name, place.rank, place.size, options, NcclPath::kPlans);
#else
    throw std::runtime_error(kNoNccl);
#endif
  }
  Communicator native_communicator([[maybe_unused]] const CudaPlace& place,
                                   [[maybe_unused]] const CommunicatorOptions& options) override {
#ifdef GAR_HAS_NCCL
    return nccl_communicator(place.name, place.rank, place.size, options, NcclPath::kNative);
#else
    throw std::runtime_error(kNoNccl);
#endif
  }

 private:
#ifndef GAR_HAS_NCCL
  static constexpr const char* kNoNccl =
      "this program is built without NCCL, which --transport nccl and native need; build it where nccl.h and libnccl "
      "are";
#endif
  void move(void* out, const void* in, std::int64_t bytes, cudaMemcpyKind kind, const char* what) {
    check_cuda(cudaMemcpyAsync(out, in, static_cast<std::size_t>(bytes), kind, stream_), what);
  }

  int device_;
  int num_devices_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

bool is_built_with_cuda() { return true; }

bool is_reduced_on_cuda(DataType type, ReduceOp op) { return is_supported_on_cuda(type, op); }

std::unique_ptr<CudaSession> start_cuda(int rank, int size) {
  std::string why;
  const int num_devices = num_cuda_devices(&why);
  if (num_devices == 0) throw DeviceError(fmt::format("--device cuda: there is no GPU: {}", why));
  constexpr int kKeepTheUsers = 0;
  setenv("NCCL_SOCKET_IFNAME", "lo", kKeepTheUsers);
  if (size > num_devices) setenv("NCCL_HOSTID", fmt::format("gar-rank-{}", rank).c_str(), kKeepTheUsers);
  return std::make_unique<Session>(rank % num_devices, num_devices);
}

}  // namespace gar::measure
