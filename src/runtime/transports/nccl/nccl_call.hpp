// NCCL's result codes as exceptions.
#pragma once

#include <nccl.h>

#include <string>
#include <string_view>

#include "runtime/transports/nccl/nccl_library.hpp"

namespace gar {

/// "unhandled system error (Call to connect failed: Connection refused)": the code, and what NCCL has noted about it.
std::string to_text(ncclResult_t result);

/// Throws DeviceError when CUDA or an argument is the reason, TransportError when it is the network or a peer.
[[noreturn]] void throw_nccl_error(ncclResult_t result, std::string_view what);

/// `what` says what was tried.
inline void check_nccl(ncclResult_t result, std::string_view what) {
  if (result != ncclSuccess) throw_nccl_error(result, what);
}

/// The same for calls on a communicator of the non-blocking kind, which may go on in the background: waits for them.
void check_nccl(ncclResult_t result, std::string_view what, ncclComm_t comm);

/// Calls between its making and end() are carried out together.
class NcclGroup {
 public:
  NcclGroup() { check_nccl(nccl().group_start(), "ncclGroupStart"); }
  /// An exception on the way: what has been called so far must not stay open.
  ~NcclGroup() {
    if (is_open_) static_cast<void>(nccl().group_end());
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  void end(ncclComm_t comm) {
    is_open_ = false;
    check_nccl(nccl().group_end(), "ncclGroupEnd", comm);
  }

 private:
  bool is_open_ = true;
};

}  // namespace gar
