// Several threads, each with a communicator of its own, under MPI_THREAD_MULTIPLE; and requests that another thread
// completes.  threads [N]: N rounds (30)
#include <pthread.h>

#include "plain_mpi.h"

enum { kNumThreads = 3, kCount = 3000 };

struct Work {
  MPI_Comm comm;
  int rounds;
  int is_nonblocking;
};

static void* work(void* argument) {
  const struct Work* w = argument;
  int rank = 0, size = 0;
  MPI_Comm_rank(w->comm, &rank);
  MPI_Comm_size(w->comm, &size);
  double* values = malloc(kCount * sizeof(double));
  int* ints = malloc(kCount * sizeof(int));
  for (int round = 0; round < w->rounds; ++round) {
    fill_doubles(values, kCount, rank);
    fill_ints(ints, kCount, rank);
    if (w->is_nonblocking && round > 0) {
      MPI_Request requests[2];
      MPI_Iallreduce(MPI_IN_PLACE, values, kCount, MPI_DOUBLE, MPI_SUM, w->comm, &requests[0]);
      MPI_Iallreduce(MPI_IN_PLACE, ints, kCount, MPI_INT, MPI_SUM, w->comm, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
      MPI_Allreduce(MPI_IN_PLACE, values, kCount, MPI_DOUBLE, MPI_SUM, w->comm);
      MPI_Allreduce(MPI_IN_PLACE, ints, kCount, MPI_INT, MPI_SUM, w->comm);
    }
    ordinary_call(size, kCount);
    ordinary_call(size, kCount);
    const long wrong = first_wrong_double(values, kCount, size), wrong_int = first_wrong_int(ints, kCount, size);
    expect(wrong < 0, "a thread's doubles, round %d: element %ld is wrong", round, wrong);
    expect(wrong_int < 0, "a thread's ints, round %d: element %ld is wrong", round, wrong_int);
  }
  free(ints);
  free(values);
  return NULL;
}

static void* wait_for(void* request) {
  MPI_Wait(request, MPI_STATUS_IGNORE);
  return NULL;
}

int main(int argc, char** argv) {
  if (start_mpi(&argc, &argv, MPI_THREAD_MULTIPLE) != MPI_THREAD_MULTIPLE) {
    if (rank_of_world == 0) printf("this MPI has no MPI_THREAD_MULTIPLE\n");
    return end_mpi();
  }
  struct Work jobs[kNumThreads];
  pthread_t threads[kNumThreads];
  for (int i = 0; i < kNumThreads; ++i) {
    jobs[i].rounds = argc > 1 ? atoi(argv[1]) : 30;
    jobs[i].is_nonblocking = i == 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &jobs[i].comm);
  }
  for (int i = 0; i < kNumThreads; ++i) pthread_create(&threads[i], NULL, work, &jobs[i]);
  for (int i = 0; i < kNumThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kNumThreads; ++i) MPI_Comm_free(&jobs[i].comm);

  static double values[kCount];
  fill_doubles(values, kCount, rank_of_world);
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, values, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  ordinary_call(size_of_world, kCount);
  pthread_create(&threads[0], NULL, wait_for, &request);
  pthread_join(threads[0], NULL);
  const long wrong = first_wrong_double(values, kCount, size_of_world);
  expect(wrong < 0, "a request that another thread completes: element %ld is wrong", wrong);
  return end_mpi();
}
