// Ranks of two jobs in one communicator: each job has decided by itself what it takes over.
#include "plain_mpi.h"

enum { kNumSpawned = 2, kCount = 1000 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm other = MPI_COMM_NULL, all = MPI_COMM_NULL;
  MPI_Comm_get_parent(&other);
  const int is_spawned = other != MPI_COMM_NULL;
  if (!is_spawned) {
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, kNumSpawned, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
  }
  MPI_Intercomm_merge(other, is_spawned, &all);
  int size = 0, wrong = 0;
  MPI_Comm_size(all, &size);
  static double values[kCount];
  for (int i = 0; i < kCount; ++i) values[i] = i;
  MPI_Allreduce(MPI_IN_PLACE, values, kCount, MPI_DOUBLE, MPI_SUM, all);
  for (int i = 0; i < kCount; ++i) wrong += values[i] != (double)i * size;
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&other);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
