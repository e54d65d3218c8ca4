#include "runtime/transports/cuda/mappings.hpp"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "gar/errors.hpp"
#include "runtime/transports/cuda/cuda_call.hpp"
#include "runtime/transports/cuda/device_compute.hpp"
#include "runtime/transports/cuda/driver.hpp"

namespace gar {

namespace {

// Freed memory of a peer stays taken while it is mapped here, so not too many.
constexpr std::size_t kMostMappings = 16;  // of a process

struct Mapping {
  std::uint64_t bytes = 0;
  std::uint64_t identity = 0;
  std::byte* address = nullptr;
  std::uint64_t last_use = 0;
  bool is_pinned = false;
  std::set<const Mappings*> users;
};

struct Registry {
  using Key = std::tuple<int, std::uint64_t, std::uint64_t>;  // device of this process, owner's process, base
  std::mutex mutex;
  std::map<Key, Mapping> mappings;
  std::uint64_t num_uses = 0;

  using Iterator = std::map<Key, Mapping>::iterator;
  Iterator first_of(int device, std::uint64_t process) { return mappings.lower_bound({device, process, 0}); }
  Iterator end_of(int device, std::uint64_t process) {
    return mappings.upper_bound({device, process, std::numeric_limits<std::uint64_t>::max()});
  }
  Iterator close(Iterator mapping) {
    const RelaxedCapture relaxed;
    static_cast<void>(cudaIpcCloseMemHandle(mapping->second.address));
    return mappings.erase(mapping);
  }

  /// What lies where new memory is now has been freed by its owner.
  void close_old(int device, const IpcAddress& address) {
    for (auto m = first_of(device, address.process); m != end_of(device, address.process);) {
      const std::uint64_t base = std::get<2>(m->first);
      const bool is_other = m->second.identity != address.identity;
      const bool meets = base < address.base + address.bytes && address.base < base + m->second.bytes;
      m = is_other && meets ? close(m) : std::next(m);
    }
  }

  /// Makes room for one more: closes only what no one but `user` has, and has not opened since `begin`.
  void make_room(int device, std::uint64_t process, const Mappings* user, std::uint64_t begin) {
    std::size_t number = 0;
    auto oldest = mappings.end();
    for (auto m = first_of(device, process); m != end_of(device, process); ++m) {
      ++number;
      const bool is_own = m->second.users.size() == 1 && m->second.users.count(user) == 1;
      if (m->second.is_pinned || !is_own || m->second.last_use > begin) continue;
      if (oldest == mappings.end() || m->second.last_use < oldest->second.last_use) oldest = m;
    }
    if (number >= kMostMappings && oldest != mappings.end()) close(oldest);
  }
};

Registry& registry() {
  // Never destroyed: CUDA may be gone before it.
  static auto* const kInstance = new Registry;
  return *kInstance;
}

/// Process numbers of the system are not enough: processes in different containers may have the same.
std::uint64_t process_number() {
  static const std::uint64_t kNumber = [] {
    std::random_device random;
    return (std::uint64_t{random()} << 32U) | random();
  }();
  return kNumber;
}

}  // namespace

IpcAddress ipc_address_of(const void* pointer, const char* name) {
  IpcAddress address;
  address.process = process_number();
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  check_driver(driver().get_address_range(&base, &bytes, device_address(pointer)), "cuMemGetAddressRange");
  check_driver(driver().pointer_attribute(&address.identity, CU_POINTER_ATTRIBUTE_BUFFER_ID, device_address(pointer)),
               "cuPointerGetAttribute");
  address.base = base;
  address.bytes = bytes;
  address.offset = device_address(pointer) - base;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's word for the same address
  const cudaError_t error = cudaIpcGetMemHandle(&address.handle, reinterpret_cast<void*>(base));
  if (error == cudaSuccess) return address;
  static_cast<void>(cudaGetLastError());
  throw InvalidArgument(
      fmt::format("`{}` is device memory that other processes cannot map ({}); expected memory of cudaMalloc (not "
                  "of cudaMallocAsync, nor of cuMemMap)",
                  name, to_text(error)));
}

void Mappings::begin() {
  const std::lock_guard lock(registry().mutex);
  begin_ = registry().num_uses;
}

std::byte* Mappings::open(const IpcAddress& remote, bool is_pinned) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  all.close_old(device, remote);
  const Registry::Key key{device, remote.process, remote.base};
  auto known = all.mappings.find(key);
  if (known == all.mappings.end()) {
    all.make_room(device, remote.process, this, begin_);
    const RelaxedCapture relaxed;
    void* address = nullptr;
    check_cuda(
        cudaIpcOpenMemHandle(&address, remote.handle, cudaIpcMemLazyEnablePeerAccess),
        "cudaIpcOpenMemHandle for a peer's memory (GPUs must be able to read each other's; otherwise there is nccl)");
    Mapping mapping;
    mapping.bytes = remote.bytes;
    mapping.identity = remote.identity;
    mapping.address = static_cast<std::byte*>(address);
    known = all.mappings.emplace(key, std::move(mapping)).first;
  }
  known->second.last_use = ++all.num_uses;
  known->second.is_pinned = known->second.is_pinned || is_pinned;
  known->second.users.insert(this);
  return known->second.address + remote.offset;
}

void Mappings::close() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (auto m = all.mappings.begin(); m != all.mappings.end();) {
    m->second.users.erase(this);
    m = m->second.users.empty() ? all.close(m) : std::next(m);
  }
}

}  // namespace gar
