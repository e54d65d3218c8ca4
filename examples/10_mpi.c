/* The same from C, without waiting in between: a second vector starts before the first is complete. */
#include <mpi.h>
#include <stdio.h>

#include "gar/gar_mpi.h"

static void check(gar_status status) {
  if (status != GAR_OK) {
    fprintf(stderr, "%s: %s\n", gar_status_name(status), gar_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);

  gar_comm* comm = NULL;
  check(gar_comm_create_mpi(MPI_COMM_WORLD, GAR_MPI_HIERARCHY, NULL, &comm));
  const int rank = gar_comm_rank(comm);
  int32_t largest[2] = {rank, -rank};
  int64_t sums[3] = {rank, 10 * rank, 100 * rank};

  gar_request* first = NULL;
  gar_request* second = NULL;
  check(gar_all_reduce_start(comm, GAR_IN_PLACE, largest, 2, GAR_INT32, GAR_MAX, &first));
  check(gar_all_reduce_start(comm, GAR_IN_PLACE, sums, 3, GAR_INT64, GAR_SUM, &second));
  check(gar_request_wait(second));
  check(gar_request_wait(first));
  gar_request_free(second);
  gar_request_free(first);

  if (rank == 0) {
    printf("%d ranks: largest %d %d, sums %ld %ld %ld\n", gar_comm_size(comm), (int)largest[0], (int)largest[1],
           (long)sums[0], (long)sums[1], (long)sums[2]);
  }
  gar_comm_free(comm); /* before MPI ends */
  MPI_Finalize();
  return 0;
}
