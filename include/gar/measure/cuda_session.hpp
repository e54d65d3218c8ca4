// The GPUs of this host as `gar bench`, `gar fit` and `gar reproduce` see them. `gar` itself has none
// (cuda_session_none.cpp); gar-cuda is the same program with cuda_session_cuda.cpp instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "gar/communicator.hpp"
#include "gar/measure/transport_kind.hpp"
#include "gar/reduction.hpp"

namespace gar::measure {

/// Whose memory the vectors are in.
enum class Device { kCpu, kCuda };

class CudaSession;

/// Memory of a GPU that goes back when this does; before its session ends.
struct DeviceRelease {
  CudaSession* session = nullptr;  ///< where the memory came from
  /// Gives the memory back.
  void operator()(std::byte* memory) const noexcept;
};
/// Owns memory of a GPU.
using DeviceMemory = std::unique_ptr<std::byte, DeviceRelease>;

/// One of `size` processes of this host.
struct CudaPlace {
  std::string name;  ///< of what they make together; the same for all, and new every time
  int rank = 0;      ///< this process, from 0
  int size = 1;      ///< number of processes
};

/// One GPU of this host with a stream, seen from one rank. Everything throws DeviceError when CUDA refuses.
class CudaSession {
 public:
  CudaSession() = default;
  CudaSession(const CudaSession&) = delete;
  CudaSession& operator=(const CudaSession&) = delete;
  virtual ~CudaSession() = default;

  /// "NVIDIA H200, 132 multiprocessors, 140 GiB".
  [[nodiscard]] virtual std::string words() const = 0;
  /// GPUs that this process sees.
  [[nodiscard]] virtual int num_devices() const = 0;
  /// Memory of the GPU that is not in use.
  [[nodiscard]] virtual std::int64_t free_bytes() const = 0;
  /// "2.28.3". Throws std::runtime_error in a program that is built without NCCL.
  [[nodiscard]] virtual std::string nccl_version() const = 0;

  /// Memory on the device.
  virtual DeviceMemory allocate(std::int64_t bytes) = 0;
  /// Gives memory of `allocate` back; DeviceMemory calls it.
  virtual void release(std::byte* memory) noexcept = 0;
  /// Copies from host to device; complete when it returns.
  virtual void upload(void* device, const void* host, std::int64_t bytes) = 0;
  /// Copies from device to host; complete when it returns.
  virtual void download(void* host, const void* device, std::int64_t bytes) = 0;

  /// The stream of the session.
  [[nodiscard]] virtual Stream stream() const = 0;
  /// Copies inside the device; returns when the copy is in the stream.
  virtual void copy(void* out, const void* in, std::int64_t bytes) = 0;
  /// gar::reduce on device memory; returns when it is in the stream.
  virtual void reduce(DataType type, ReduceOp op, void* out, std::span<const void* const> operands,
                      std::int64_t count) = 0;
  /// Returns when everything in the stream is done.
  virtual void synchronize() = 0;
  /// Seconds between two events around what `enqueue` puts into the stream `repetitions` times, divided by these.
  virtual double time(const std::function<void()>& enqueue, std::int64_t repetitions) = 0;

  /// Collective; the transport is kCudaIpc or kNccl. Throws std::runtime_error for NCCL in a program that is built
  /// without.
  virtual Communicator communicator(const CudaPlace& place, const CommunicatorOptions& options,
                                    TransportKind transport) = 0;
  /// NCCL's own collectives. As above.
  virtual Communicator native_communicator(const CudaPlace& place, const CommunicatorOptions& options) = 0;
};

inline void DeviceRelease::operator()(std::byte* memory) const noexcept { session->release(memory); }

/// True when this program is built with CUDA.
bool is_built_with_cuda();
/// True when GPUs can reduce this. Always true in a program without CUDA, which does not know.
bool is_reduced_on_cuda(DataType type, ReduceOp op);
/// Takes the GPU of a rank: its number modulo the number of GPUs. Prepares the environment for NCCL where the user has
/// not: sockets stay on this host, and ranks that share a GPU pretend to be hosts of their own, since NCCL refuses them
/// otherwise. Not before a fork: CUDA does not survive that. Throws DeviceError that says why there is no GPU, and
/// std::runtime_error in a program that is built without CUDA.
std::unique_ptr<CudaSession> start_cuda(int rank, int size);

/// Reads plus writes per second of copies inside a GPU's memory: the fastest of a few.
double copy_bytes_per_s(CudaSession& session, std::int64_t bytes);

}  // namespace gar::measure
