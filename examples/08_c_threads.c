/* The same from C: threads sum their vectors; what goes wrong is said in words. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "gar/gar.h"

enum { kNumRanks = 3, kCount = 4, kIterations = 5 };

static void check(gar_status status) {
  if (status != GAR_OK) {
    fprintf(stderr, "%s: %s\n", gar_status_name(status), gar_last_error());
    exit(1);
  }
}

static void* work(void* argument) {
  gar_comm* comm = argument;
  const int rank = gar_comm_rank(comm);
  double values[kCount] = {rank, rank * 0.5, rank * 0.25, 1};
  gar_request* request = NULL;

  check(gar_all_reduce(comm, GAR_IN_PLACE, values, kCount, GAR_FLOAT64, GAR_SUM));

  /* Planned once, run five times: every rank multiplies by the number of ranks. */
  check(gar_all_reduce_prepare(comm, GAR_IN_PLACE, values, kCount, GAR_FLOAT64, GAR_SUM, &request));
  for (int i = 0; i < kIterations; ++i) {
    check(gar_request_start(request));
    check(gar_request_wait(request));
  }
  gar_request_free(request);

  if (rank == 0) {
    printf("%g %g %g %g\n", values[0], values[1], values[2], values[3]);
    if (gar_all_reduce(comm, values, NULL, kCount, GAR_FLOAT64, GAR_SUM) == GAR_ERROR_ARGUMENT) {
      printf("%s\n", gar_last_error());
    }
  }
  return NULL;
}

int main(void) {
  gar_options options = GAR_OPTIONS_INIT;
  gar_comm* comms[kNumRanks];
  pthread_t threads[kNumRanks];
  options.timeout_s = 10;
  check(gar_comm_create_threads(kNumRanks, &options, comms));
  for (int r = 0; r < kNumRanks; ++r) {
    pthread_create(&threads[r], NULL, work, comms[r]);
  }
  for (int r = 0; r < kNumRanks; ++r) {
    pthread_join(threads[r], NULL);
    gar_comm_free(comms[r]);
  }
  return 0;
}
