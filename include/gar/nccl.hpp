// Communicators on top of NCCL: it carries the messages of our plans, our kernels reduce them. Link gar::nccl. See
// docs/gpu.md.
#pragma once

#include <string_view>

#include "gar/cuda.hpp"

struct ncclComm;

namespace gar {

/// What NCCL is used for.
enum class NcclPath {
  kPlans,   ///< the stages of plans as grouped ncclSend and ncclRecv
  kNative,  ///< NCCL's own collectives, for comparison; algorithm and plan do not matter
};

/// Joins the processes of this host that call this with the same `name` and `size`; each takes part with the CUDA
/// device that is current. Ranks that share a GPU need a different NCCL_HOSTID each.
Communicator nccl_communicator(std::string_view name, int rank, int size, const CommunicatorOptions& options = {},
                               NcclPath path = NcclPath::kPlans);

/// On a communicator of NCCL that the caller has made, with its device current, and keeps until this one is gone. That
/// all ranks make the same calls is not checked.
Communicator nccl_communicator(ncclComm* comm, const CommunicatorOptions& options = {},
                               NcclPath path = NcclPath::kPlans);

/// The version of NCCL that is loaded: "2.28.3". Throws DeviceError where there is none.
std::string nccl_version();

}  // namespace gar
