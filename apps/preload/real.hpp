// The MPI library's own functions, looked up behind ours.
#pragma once

#include <mpi.h>

namespace gar::preload {

struct Real {
  int (*init)(int*, char***) = nullptr;
  int (*init_thread)(int*, char***, int, int*) = nullptr;
  int (*finalize)() = nullptr;
  int (*all_reduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) = nullptr;
  int (*iall_reduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*) = nullptr;
  int (*reduce_scatter_block)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) = nullptr;
  int (*all_gather)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm) = nullptr;
};

const Real& real();
/// Before anything else.
void look_up_real(void* (*look_up)(const char*));

/// What we call of MPI while this lives, on this thread, goes to the library, although the dynamic linker finds our
/// functions first.
class Inside {
 public:
  Inside() { ++depth(); }
  ~Inside() { --depth(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool is_inside() { return depth() > 0; }

 private:
  static int& depth();
};

}  // namespace gar::preload
