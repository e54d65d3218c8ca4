// The C interface for MPI programs. Link gar::mpi_openmpi or gar::mpi_mpich, whichever the program's MPI is. See
// docs/runtime.md.
#ifndef GAR_GAR_MPI_H
#define GAR_GAR_MPI_H

#include <mpi.h>

#include "gar/gar.h"

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/// Which way the bytes go.
typedef int gar_mpi_path;

/// The values of gar_mpi_path.
enum {
  GAR_MPI_HIERARCHY = 0,  ///< shared memory inside a host, messages between hosts
  GAR_MPI_MESSAGES = 1,   ///< messages everywhere
  GAR_MPI_SHARED = 2      ///< shared memory only; GAR_ERROR_ARGUMENT when the ranks are on several hosts
};

/// Makes a communicator with the ranks of `mpi_comm`; a collective call. `options` may be NULL. Free it, on all ranks,
/// before MPI_Finalize.
gar_status gar_comm_create_mpi(MPI_Comm mpi_comm, gar_mpi_path path, const gar_options* options, gar_comm** comm);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif  // GAR_GAR_MPI_H
