// NCCL's functions. The library is loaded when it is needed, so that programs that can do without start where there is
// none; where the program has loaded one already, it is that one.
#pragma once

#include <nccl.h>

namespace gar {

struct NcclLibrary {
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclCommCount) comm_count = nullptr;
  decltype(&ncclCommCuDevice) comm_cu_device = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommInitRank) comm_init_rank = nullptr;
  decltype(&ncclCommUserRank) comm_user_rank = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclSend) send = nullptr;
};

/// Throws DeviceError when there is no libnccl.so.2.
const NcclLibrary& nccl();

}  // namespace gar
