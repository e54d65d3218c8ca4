// One rank alone makes a mistake, gets its error and calls again as it should: the others notice nothing, however often
// the communicator is used.
#include "plain_mpi.h"

enum { kCount = 100, kCalls = 40 };

static double in[16 * kCount], out[16 * kCount];
static MPI_Datatype pair;

static int reduce(const double* from, MPI_Comm comm) {
  return MPI_Allreduce(from, out, kCount, MPI_DOUBLE, MPI_SUM, comm);
}
static int scatter(const double* from, MPI_Comm comm) {
  return MPI_Reduce_scatter_block(from, out, kCount, MPI_DOUBLE, MPI_SUM, comm);
}
static int gather(const double* from, MPI_Comm comm) {
  return MPI_Allgather(from, kCount, MPI_DOUBLE, out, kCount, MPI_DOUBLE, comm);
}
static int gather_derived(const double* from, MPI_Comm comm) {
  return MPI_Allgather(from, kCount / 2, pair, out, kCount / 2, pair, comm);
}

/// Input and output are the same memory, which not every MPI refuses: alone, nobody waits for the answer.
static int is_refused(int (*call)(const double*, MPI_Comm)) {
  MPI_Comm self;
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
  const int code = call(out, self);
  MPI_Comm_free(&self);
  return code != MPI_SUCCESS;
}

static void run(const char* name, int (*call)(const double*, MPI_Comm)) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int errs = rank == size - 1 && is_refused(call);
  const int gathers = call == gather || call == gather_derived;
  for (int i = 0; i < kCalls; ++i) {
    // MPI looks at a rank's own block of what is gathered.
    const double* alias = gathers ? out + rank * kCount : out;
    if (errs && i % 5 == 3) expect(call(alias, comm) != MPI_SUCCESS, "%s: call %d was not refused", name, i);
    for (int k = 0; k < 16 * kCount; ++k) in[k] = rank + 1;
    ordinary_call(size, kCount);
    expect(call(in, comm) == MPI_SUCCESS, "%s: call %d failed", name, i);
    const double expected = gathers ? 1 : size * (size + 1) / 2.0;
    expect(out[0] == expected, "%s: call %d: %g instead of %g", name, i, out[0], expected);
  }
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
  MPI_Type_commit(&pair);
  run("MPI_Allreduce", reduce);
  run("MPI_Reduce_scatter_block", scatter);
  run("MPI_Allgather", gather);
  run("MPI_Allgather of a derived type", gather_derived);
  MPI_Type_free(&pair);
  return end_mpi();
}
