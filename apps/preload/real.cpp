#include "apps/preload/real.hpp"

namespace gar::preload {

namespace {

Real table;

template <class F>
void take(F& function, void* (*look_up)(const char*), const char* name) {
  function = reinterpret_cast<F>(look_up(name));  // NOLINT(*-reinterpret-cast): that is what dlsym gives
}

}  // namespace

int& Inside::depth() {
  thread_local int depth = 0;
  return depth;
}

const Real& real() { return table; }

void look_up_real(void* (*look_up)(const char*)) {
  take(table.init, look_up, "PMPI_Init");
  take(table.init_thread, look_up, "PMPI_Init_thread");
  take(table.finalize, look_up, "PMPI_Finalize");
  take(table.all_reduce, look_up, "PMPI_Allreduce");
  take(table.iall_reduce, look_up, "PMPI_Iallreduce");
  take(table.reduce_scatter_block, look_up, "PMPI_Reduce_scatter_block");
  take(table.all_gather, look_up, "PMPI_Allgather");
}

}  // namespace gar::preload
