#include "runtime/transports/nccl/nccl_call.hpp"

#include <fmt/format.h>

#include <thread>

#include "gar/errors.hpp"

namespace gar {

std::string to_text(ncclResult_t result) {
  // NCCL keeps the text per process, whatever communicator is named.
  const char* noted = nccl().get_last_error(nullptr);
  const std::string_view details = noted == nullptr ? "" : noted;
  if (details.empty()) return nccl().get_error_string(result);
  return fmt::format("{} ({})", nccl().get_error_string(result),
                     details.substr(0, details.find_last_not_of("\n ") + 1));
}

void throw_nccl_error(ncclResult_t result, std::string_view what) {
  const std::string text = fmt::format("{}: {}", what, to_text(result));
  const bool is_network = result == ncclSystemError || result == ncclRemoteError || result == ncclInternalError;
  if (is_network) throw TransportError(text);
  throw DeviceError(text);
}

void check_nccl(ncclResult_t result, std::string_view what, ncclComm_t comm) {
  while (result == ncclInProgress) {
    std::this_thread::yield();
    check_nccl(nccl().comm_get_async_error(comm, &result), "ncclCommGetAsyncError");
  }
  check_nccl(result, what);
}

}  // namespace gar
