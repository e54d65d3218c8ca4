#include "apps/preload/real.hpp"

#include <dlfcn.h>

namespace gar::preload {

namespace {

/// The next definition behind this library's: PMPI_ where a tool has wrapped MPI_ in a library behind us, it has had
/// its turn when the program called it.
template <class F>
void look_up(F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(RTLD_NEXT, name));  // NOLINT(*-reinterpret-cast): that is what dlsym gives
}

Real look_up_all() {
  Real out;
  look_up(out.init, "PMPI_Init");
  look_up(out.init_thread, "PMPI_Init_thread");
  look_up(out.finalize, "PMPI_Finalize");
  look_up(out.get_library_version, "PMPI_Get_library_version");
  look_up(out.all_reduce, "PMPI_Allreduce");
  look_up(out.iall_reduce, "PMPI_Iallreduce");
  look_up(out.reduce_scatter_block, "PMPI_Reduce_scatter_block");
  look_up(out.all_gather, "PMPI_Allgather");
  return out;
}

}  // namespace

thread_local int Inside::depth_ = 0;

const Real& real() {
  static const Real kReal = look_up_all();
  return kReal;
}

}  // namespace gar::preload
