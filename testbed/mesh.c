// Measures the virtual cluster: mesh FLOATS REPETITIONS
//
// Latency: half a round trip of 8 bytes between ranks 0 and 1. Incast: among the first x = 2, 3, ... ranks everybody
// sends to everybody, so that each receives FLOATS floats in all, whatever x is; what it takes longer with more senders
// is incast. All hosts are on one machine and share its clock: a repetition lasts from the first start to the last end.
// Rank 0 prints "latency SECONDS" and, for every repetition, "mesh X SECONDS".
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

// The median: a lost packet is no latency.
static double latency(int rank) {
  enum { kRounds = 101 };
  double seconds[kRounds];
  char message[8] = {0};
  for (int i = 0; i < kRounds; ++i) {
    const double start = now_s();
    if (rank == 0) {
      MPI_Send(message, sizeof message, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(message, sizeof message, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Recv(message, sizeof message, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(message, sizeof message, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    seconds[i] = (now_s() - start) / 2;
  }
  qsort(seconds, kRounds, sizeof(double), compare);
  return seconds[kRounds / 2];
}

typedef struct {
  float* out;
  float* in;
  MPI_Request* requests;
  MPI_Status* statuses;
  int num_floats;
} Buffers;

static double mesh(int rank, int x, const Buffers* b) {
  MPI_Barrier(MPI_COMM_WORLD);
  double times[2] = {-1e300, -1e300};  // minus the start and the end, so that one MAX serves both
  if (rank < x) {
    const int part = b->num_floats / (x - 1);
    int n = 0;
    times[0] = -now_s();
    for (int i = 1; i < x; ++i) {
      const int peer = (rank + i) % x;
      MPI_Irecv(b->in + (size_t)part * (size_t)(i - 1), part, MPI_FLOAT, peer, x, MPI_COMM_WORLD, &b->requests[n++]);
    }
    for (int i = 1; i < x; ++i) {
      const int peer = (rank + x - i) % x;
      MPI_Isend(b->out + (size_t)part * (size_t)(i - 1), part, MPI_FLOAT, peer, x, MPI_COMM_WORLD, &b->requests[n++]);
    }
    MPI_Waitall(n, b->requests, b->statuses);
    times[1] = now_s();
  }
  double ends[2];
  MPI_Allreduce(times, ends, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return ends[1] + ends[0];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int num_ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  Buffers b = {.num_floats = argc > 1 ? atoi(argv[1]) : 0};
  const int repetitions = argc > 2 ? atoi(argv[2]) : 0;
  if (b.num_floats < num_ranks || repetitions < 1 || num_ranks < 2) {
    if (rank == 0) fprintf(stderr, "usage: mesh FLOATS REPETITIONS, with at least 2 ranks and a float for each\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  b.out = calloc((size_t)b.num_floats, sizeof(float));
  b.in = calloc((size_t)b.num_floats, sizeof(float));
  b.requests = calloc(2 * (size_t)num_ranks, sizeof(MPI_Request));
  b.statuses = calloc(2 * (size_t)num_ranks, sizeof(MPI_Status));
  if (!b.out || !b.in || !b.requests || !b.statuses) MPI_Abort(MPI_COMM_WORLD, 4);

  const double one_way = latency(rank);
  if (rank == 0) printf("latency %.9f\n", one_way);
  for (int i = -1; i < repetitions; ++i) {  // the first one opens connections
    for (int x = 2; x <= num_ranks; ++x) {
      const double seconds = mesh(rank, x, &b);
      if (rank == 0 && i >= 0) printf("mesh %d %.9f\n", x, seconds);
      if (rank == 0) fflush(stdout);
    }
  }
  free(b.out);
  free(b.in);
  free(b.requests);
  free(b.statuses);
  MPI_Finalize();
  return 0;
}
