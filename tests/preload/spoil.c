// Preloaded behind gar's library: MPI's own function gets a wrong number, so its result is wrong on all ranks, and
// GAR_CHECK has to find that. SPOIL_COUNT=N: on rank 0 of the job, the first MPI_Iallreduce (with which GAR_CHECK
// compares) of N elements. SPOIL_BLOCKING_COUNT=N: the first MPI_Allreduce (GAR_COMPARE).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static unsigned char* spoilt;  // until the process ends

/// What MPI shall get instead of `in`; the same, where that is not to be spoilt.
static const void* spoil(const char* variable, const void* in, int count, MPI_Datatype type) {
  const char* wanted = getenv(variable);
  const char* rank = getenv("OMPI_COMM_WORLD_RANK") != NULL ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
  int bytes = 0;
  if (spoilt != NULL || wanted == NULL || atoi(wanted) != count || rank == NULL || atoi(rank) != 0) return in;
  // Looked up, too: this is also preloaded into programs without MPI.
  int (*type_size)(MPI_Datatype, int*) = NULL;
  *(void**)&type_size = dlsym(RTLD_NEXT, "PMPI_Type_size");
  type_size(type, &bytes);
  spoilt = malloc((size_t)count * (size_t)bytes);
  if (spoilt == NULL) abort();
  memcpy(spoilt, in, (size_t)count * (size_t)bytes);
  spoilt[bytes - 1] ^= 0x20;
  return spoilt;
}

__attribute__((visibility("default"))) int PMPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type,
                                                           MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  int (*next)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*) = NULL;
  *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Iallreduce");
  return next(spoil("SPOIL_COUNT", in, count, type), out, count, type, op, comm, request);
}

__attribute__((visibility("default"))) int PMPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type,
                                                          MPI_Op op, MPI_Comm comm) {
  int (*next)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) = NULL;
  *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Allreduce");
  return next(spoil("SPOIL_BLOCKING_COUNT", in, count, type), out, count, type, op, comm);
}
