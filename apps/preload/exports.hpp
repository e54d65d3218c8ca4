// What stands between the two parts of the preload library: exports.cpp, which is preloaded, and the rest, which it
// loads when the program's MPI is the right one. No mpi.h here: arguments are machine words on this side.
#pragma once

#include <cstdint>

namespace gar::preload {

struct Hooks {
  using Word = std::uintptr_t;
  bool (*passes)();  ///< does a call go straight to the MPI library?
  int (*init)(int* argc, char*** argv);
  int (*init_thread)(int* argc, char*** argv, int required, int* provided);
  void (*start)();  ///< MPI is there, and all ranks have both parts; collective
  int (*finalize)();
  int (*all_reduce)(Word, Word, Word, Word, Word, Word);
  int (*iall_reduce)(Word, Word, Word, Word, Word, Word, Word);
  int (*reduce_scatter_block)(Word, Word, Word, Word, Word, Word);
  int (*all_gather)(Word, Word, Word, Word, Word, Word, Word);
};

}  // namespace gar::preload
