#include "runtime/transports/nccl/nccl_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "gar/errors.hpp"

namespace gar {

namespace {

constexpr const char* kName = "libnccl.so.2";

template <class Function>
void look_up(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw DeviceError(fmt::format("{} has no {}; expected NCCL 2.18 or later", kName, name));
  }
}

NcclLibrary load() {
  // What the program is linked with comes first: its communicators belong to that one.
  const bool is_linked = dlsym(RTLD_DEFAULT, "ncclSend") != nullptr;
  // Never closed: communicators may outlive everything that we know of.
  void* library = is_linked ? RTLD_DEFAULT : dlopen(kName, RTLD_NOW | RTLD_LOCAL);
#ifdef GAR_NCCL_PATH
  if (!is_linked && library == nullptr) library = dlopen(GAR_NCCL_PATH, RTLD_NOW | RTLD_LOCAL);
#endif
  if (!is_linked && library == nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): of this thread
    throw DeviceError(
        fmt::format("NCCL cannot be loaded: {}; expected a {} where the loader finds it", dlerror(), kName));
  }
  NcclLibrary functions;
  look_up(library, functions.all_gather, "ncclAllGather");
  look_up(library, functions.all_reduce, "ncclAllReduce");
  look_up(library, functions.comm_abort, "ncclCommAbort");
  look_up(library, functions.comm_count, "ncclCommCount");
  look_up(library, functions.comm_cu_device, "ncclCommCuDevice");
  look_up(library, functions.comm_destroy, "ncclCommDestroy");
  look_up(library, functions.comm_get_async_error, "ncclCommGetAsyncError");
  look_up(library, functions.comm_init_rank, "ncclCommInitRank");
  look_up(library, functions.comm_user_rank, "ncclCommUserRank");
  look_up(library, functions.get_error_string, "ncclGetErrorString");
  look_up(library, functions.get_last_error, "ncclGetLastError");
  look_up(library, functions.get_unique_id, "ncclGetUniqueId");
  look_up(library, functions.get_version, "ncclGetVersion");
  look_up(library, functions.group_end, "ncclGroupEnd");
  look_up(library, functions.group_start, "ncclGroupStart");
  look_up(library, functions.recv, "ncclRecv");
  look_up(library, functions.reduce_scatter, "ncclReduceScatter");
  look_up(library, functions.send, "ncclSend");
  return functions;
}

}  // namespace

const NcclLibrary& nccl() {
  static const NcclLibrary kFunctions = load();
  return kFunctions;
}

}  // namespace gar
