// gar/gar_cuda.h on top of gar/nccl.hpp.
#include "gar/gar_cuda.h"
#include "gar/nccl.hpp"
#include "runtime/c_api.hpp"

gar_status gar_comm_create_nccl(const char* name, int rank, int size, const gar_options* options, gar_comm** comm) {
  return gar::c_api::guarded(__func__, [&](const char* function) {
    gar::c_api::require_name(name, comm, function);
    *comm = new gar_comm{gar::nccl_communicator(name, rank, size, gar::c_api::communicator_options(options, function))};
  });
}

gar_status gar_comm_create_nccl_on(void* nccl_comm, const gar_options* options, gar_comm** comm) {
  return gar::c_api::guarded(__func__, [&](const char* function) {
    gar::c_api::require(comm != nullptr, function, "`comm` is NULL; expected where the communicator shall be written");
    gar::c_api::require(nccl_comm != nullptr, function, "`nccl_comm` is NULL; expected an ncclComm_t");
    *comm = new gar_comm{
        gar::nccl_communicator(static_cast<ncclComm*>(nccl_comm), gar::c_api::communicator_options(options, function))};
  });
}
