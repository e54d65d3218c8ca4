// gar/gar_cuda.h on top of gar/cuda.hpp.
#include "gar/cuda.hpp"
#include "gar/gar_cuda.h"
#include "runtime/c_api.hpp"

gar_status gar_comm_create_cuda(const char* name, int rank, int size, const gar_options* options, gar_comm** comm) {
  return gar::c_api::guarded(__func__, [&](const char* function) {
    gar::c_api::require_name(name, comm, function);
    *comm = new gar_comm{gar::cuda_communicator(name, rank, size, gar::c_api::communicator_options(options, function))};
  });
}

gar_status gar_cuda_reduce(gar_type type, gar_op op, void* out, const void* const* operands, int num_operands,
                           int64_t count, void* stream) {
  return gar::c_api::guarded(__func__, [&](const char* function) {
    const gar::c_api::Reduction call =
        gar::c_api::checked_reduction({type, op, out, operands, num_operands, count}, function);
    gar::cuda_reduce(call.type, call.op, out, call.operands, count, gar::Stream{stream});
  });
}
