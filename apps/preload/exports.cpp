// The functions that the dynamic linker finds before those of the MPI library.
//
// Handles are pointers in Open MPI and integers in MPICH, and either build may find itself in a program of the other.
// Then everything must reach the program's own library as it came; so arguments are machine words here, and only what
// is taken over meets the types of mpi.h (interpose.cpp). That is sound where a word holds every argument of a C
// function and an integer's upper half means nothing, as on x86-64 and aarch64.
//
// Open MPI's Fortran functions call PMPI_Allreduce, so that name is ours, too; MPICH's call MPI_Allreduce.
#include <dlfcn.h>

#include <cstdint>

using Word = std::uintptr_t;
static_assert(sizeof(Word) == sizeof(void*) && sizeof(Word) >= sizeof(int));

namespace {

/// The library's own function, behind ours.
template <class... Words>
int call_native(const char* name, Words... words) {
  using Function = int (*)(Words...);
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name))(words...);  // NOLINT(*-reinterpret-cast): what dlsym gives
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): MPI's names
extern "C" {

// interpose.cpp
int gar_preload_passes();
int gar_preload_init(int* argc, char*** argv);
int gar_preload_init_thread(int* argc, char*** argv, int required, int* provided);
int gar_preload_finalize();
int gar_preload_all_reduce(Word, Word, Word, Word, Word, Word);
int gar_preload_iall_reduce(Word, Word, Word, Word, Word, Word, Word);
int gar_preload_reduce_scatter_block(Word, Word, Word, Word, Word, Word);
int gar_preload_all_gather(Word, Word, Word, Word, Word, Word, Word);

int MPI_Init(int* argc, char*** argv) { return gar_preload_init(argc, argv); }

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return gar_preload_init_thread(argc, argv, required, provided);
}

int MPI_Finalize() { return gar_preload_finalize(); }

int MPI_Allreduce(Word a, Word b, Word c, Word d, Word e, Word f) {
  if (gar_preload_passes() != 0) return call_native("PMPI_Allreduce", a, b, c, d, e, f);
  return gar_preload_all_reduce(a, b, c, d, e, f);
}

int MPI_Iallreduce(Word a, Word b, Word c, Word d, Word e, Word f, Word g) {
  if (gar_preload_passes() != 0) return call_native("PMPI_Iallreduce", a, b, c, d, e, f, g);
  return gar_preload_iall_reduce(a, b, c, d, e, f, g);
}

int MPI_Reduce_scatter_block(Word a, Word b, Word c, Word d, Word e, Word f) {
  if (gar_preload_passes() != 0) return call_native("PMPI_Reduce_scatter_block", a, b, c, d, e, f);
  return gar_preload_reduce_scatter_block(a, b, c, d, e, f);
}

int MPI_Allgather(Word a, Word b, Word c, Word d, Word e, Word f, Word g) {
  if (gar_preload_passes() != 0) return call_native("PMPI_Allgather", a, b, c, d, e, f, g);
  return gar_preload_all_gather(a, b, c, d, e, f, g);
}

#ifdef GAR_PRELOAD_EXPORTS_PMPI
int PMPI_Init(int* argc, char*** argv) __attribute__((alias("MPI_Init")));
int PMPI_Init_thread(int* argc, char*** argv, int required, int* provided) __attribute__((alias("MPI_Init_thread")));
int PMPI_Finalize() __attribute__((alias("MPI_Finalize")));
int PMPI_Allreduce(Word, Word, Word, Word, Word, Word) __attribute__((alias("MPI_Allreduce")));
int PMPI_Iallreduce(Word, Word, Word, Word, Word, Word, Word) __attribute__((alias("MPI_Iallreduce")));
int PMPI_Reduce_scatter_block(Word, Word, Word, Word, Word, Word) __attribute__((alias("MPI_Reduce_scatter_block")));
int PMPI_Allgather(Word, Word, Word, Word, Word, Word, Word) __attribute__((alias("MPI_Allgather")));
#endif
}
// NOLINTEND(readability-identifier-naming)
