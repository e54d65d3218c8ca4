/* What an MPI_Allreduce takes in a program that knows nothing of gar: calls WARM_CALLS BATCHES BYTES... prints the
 * microseconds of a call for every size: the median of batches, in each the slowest rank's. bench/calls.sh runs it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 4) {
    if (rank == 0) fprintf(stderr, "calls: accepted: WARM_CALLS BATCHES BYTES...\n");
    MPI_Finalize();
    return 2;
  }
  const int warm = atoi(argv[1]);
  const int batches = atoi(argv[2]);
  double* seconds = malloc((size_t)batches * sizeof(double));
  for (int i = 3; i < argc; ++i) {
    const int count = atoi(argv[i]) / (int)sizeof(float);
    float* in = calloc((size_t)count + 1, sizeof(float));
    float* out = calloc((size_t)count + 1, sizeof(float));
    double begin = MPI_Wtime();
    for (int k = 0; k < warm; ++k) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    /* A batch of some milliseconds, the same on all ranks. */
    double each = (MPI_Wtime() - begin) / (warm > 0 ? warm : 1);
    MPI_Bcast(&each, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    const int calls = each * 2000 < 0.004 ? 2000 : (int)(0.004 / each) + 1;
    for (int b = 0; b < batches; ++b) {
      MPI_Barrier(MPI_COMM_WORLD);
      begin = MPI_Wtime();
      for (int k = 0; k < calls; ++k) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      const double own = (MPI_Wtime() - begin) / calls;
      MPI_Reduce(&own, &seconds[b], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) {
      qsort(seconds, (size_t)batches, sizeof(double), compare);
      printf("%s %.3f\n", argv[i], seconds[batches / 2] * 1e6);
    }
    free(in);
    free(out);
  }
  free(seconds);
  MPI_Finalize();
  return 0;
}
