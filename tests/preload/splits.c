// Many communicators: made, and freed without having been used, or used a little.
//   splits N                 N times MPI_Comm_split and MPI_Comm_free
//   splits N COUNT [CALLS]   with an MPI_Allreduce of COUNT doubles on each, or several
// Rank 0 prints the milliseconds of a round.
#include "plain_mpi.h"

int main(int argc, char** argv) {
  start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
  const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
  const int count = argc > 2 ? atoi(argv[2]) : 0;
  const int calls = count == 0 ? 0 : argc > 3 ? atoi(argv[3]) : 1;
  double* values = malloc((size_t)(count + 1) * sizeof(double));
  if (values == NULL) MPI_Abort(MPI_COMM_WORLD, 9);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank_of_world, &comm);
    for (int call = 0; call < calls; ++call) {
      fill_doubles(values, count, rank_of_world);
      MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, comm);
      ordinary_call(size_of_world, count);
      expect(first_wrong_double(values, count, size_of_world) < 0, "MPI_Allreduce of round %d", round);
    }
    MPI_Comm_free(&comm);
  }
  if (rank_of_world == 0) printf("%.4f ms each\n", (MPI_Wtime() - begin) / rounds * 1e3);
  free(values);
  return end_mpi();
}
