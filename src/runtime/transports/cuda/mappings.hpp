// Peers' device memory in this process (CUDA IPC).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace gar {

/// An address in a process's device memory, as other processes can find it.
struct IpcAddress {
  cudaIpcMemHandle_t handle{};  ///< of the whole allocation
  std::uint64_t process = 0;    ///< a number of the owner's
  std::uint64_t base = 0;       ///< address of the allocation in the owner's process
  std::uint64_t bytes = 0;      ///< of the allocation
  std::uint64_t identity = 0;   ///< of the allocation: a later one at the same address has another
  std::uint64_t offset = 0;     ///< in the allocation
};

/// Throws InvalidArgument when the memory cannot be shared.
IpcAddress ipc_address_of(const void* pointer, const char* name);

/// What a communicator has mapped. Opening costs time and closing waits for the GPU, so mappings are kept, and shared
/// by the communicators of the process: CUDA maps no memory twice. They are closed when no communicator uses them any
/// more, when their owner has put new memory in their place, or when there are too many.
class Mappings {
 public:
  Mappings() = default;
  ~Mappings() { close(); }
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;

  /// An operation begins: what is opened from now on stays open at least until the next one begins.
  void begin();
  /// Where a peer's memory is in this process. `is_pinned`: keep it as long as this object lives. Throws DeviceError.
  std::byte* open(const IpcAddress& remote, bool is_pinned);
  void close();

 private:
  std::uint64_t begin_ = 0;
};

}  // namespace gar
