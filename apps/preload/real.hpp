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

/// While it lives, errors on MPI_COMM_WORLD are returned: for calls that ask the library what it refuses.
class ErrorsReturned {
 public:
  ErrorsReturned() {
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  ~ErrorsReturned() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before_);
    MPI_Errhandler_free(&before_);
  }
  ErrorsReturned(const ErrorsReturned&) = delete;
  ErrorsReturned& operator=(const ErrorsReturned&) = delete;

 private:
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

}  // namespace gar::preload
