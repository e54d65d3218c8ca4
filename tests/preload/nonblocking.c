// MPI_Iallreduce: several under way, completed in every way that MPI has, with other work in between.
#include "plain_mpi.h"

enum { kNumUnderWay = 8 };

struct Job {
  int count;
  int is_double;  ///< otherwise MPI_INT
  int in_place;
  void* in;
  void* out;
};

static struct Job make_job(int index) {
  static const int kCounts[] = {1, 3000, 7, 40000, 0, 1000, 2, 100003};
  struct Job job = {kCounts[index % 8], index % 2, index % 3 == 0, NULL, NULL};
  const size_t bytes = (size_t)(job.count + 1) * sizeof(double);
  job.in = malloc(bytes);
  job.out = job.in_place ? job.in : malloc(bytes);
  if (job.in == NULL || job.out == NULL) MPI_Abort(MPI_COMM_WORLD, 9);
  return job;
}

static void start(struct Job* job, MPI_Comm comm, MPI_Request* request) {
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (job->is_double) {
    fill_doubles(job->in, job->count, rank);
  } else {
    fill_ints(job->in, job->count, rank);
  }
  MPI_Iallreduce(job->in_place ? MPI_IN_PLACE : job->in, job->out, job->count, job->is_double ? MPI_DOUBLE : MPI_INT,
                 MPI_SUM, comm, request);
  if (comm == MPI_COMM_WORLD) ordinary_call(size, job->count);
}

static void finish(struct Job* job, int size, const char* what) {
  const long wrong =
      job->is_double ? first_wrong_double(job->out, job->count, size) : first_wrong_int(job->out, job->count, size);
  expect(wrong < 0, "%s, %d elements: element %ld is wrong", what, job->count, wrong);
  if (!job->in_place) free(job->out);
  free(job->in);
}

/// Something to do meanwhile; the result keeps the compiler from dropping it.
static double compute(int rounds) {
  double x = 1;
  for (int i = 0; i < rounds * 1000; ++i) x = x * 1.0000001 + 1e-9;
  return x;
}

static void wait_all(MPI_Request* requests) { MPI_Waitall(kNumUnderWay, requests, MPI_STATUSES_IGNORE); }

static void wait_backwards(MPI_Request* requests) {
  for (int i = kNumUnderWay - 1; i >= 0; --i) {
    MPI_Status status;
    MPI_Wait(&requests[i], &status);
  }
}

static void test_any(MPI_Request* requests) {
  for (int done = 0; done < kNumUnderWay;) {
    int index = 0, flag = 0;
    MPI_Testany(kNumUnderWay, requests, &index, &flag, MPI_STATUS_IGNORE);
    if (!flag) continue;
    expect(index != MPI_UNDEFINED, "MPI_Testany: no request is left after %d of %d", done, kNumUnderWay);
    if (index == MPI_UNDEFINED) return;
    expect(requests[index] == MPI_REQUEST_NULL, "MPI_Testany: request %d lives on", index);
    ++done;
  }
}

static void test_each(MPI_Request* requests) {
  for (int i = 0; i < kNumUnderWay; ++i) {
    const int which = (i * 3 + 1) % kNumUnderWay;  // the same odd order on every rank is not needed
    for (int flag = 0; !flag;) {
      expect(compute(2) > 1, "arithmetic");
      MPI_Test(&requests[which], &flag, MPI_STATUS_IGNORE);
    }
  }
}

static void wait_some(MPI_Request* requests) {
  int indices[kNumUnderWay];
  for (int done = 0; done < kNumUnderWay;) {
    int number = 0;
    MPI_Waitsome(kNumUnderWay, requests, &number, indices, MPI_STATUSES_IGNORE);
    expect(number != MPI_UNDEFINED && number > 0, "MPI_Waitsome: %d requests", number);
    if (number == MPI_UNDEFINED || number <= 0) return;
    done += number;
  }
}

static void wait_any_after_status(MPI_Request* requests) {
  int flag = 0;
  while (!flag) MPI_Request_get_status(requests[kNumUnderWay - 1], &flag, MPI_STATUS_IGNORE);
  for (int i = 0; i < kNumUnderWay; ++i) {
    int index = 0;
    MPI_Waitany(kNumUnderWay, requests, &index, MPI_STATUS_IGNORE);
    expect(index != MPI_UNDEFINED, "MPI_Waitany: no request is left after %d of %d", i, kNumUnderWay);
  }
}

static void test_all(MPI_Request* requests) {
  for (int flag = 0; !flag;) MPI_Testall(kNumUnderWay, requests, &flag, MPI_STATUSES_IGNORE);
}

static void check_under_way(MPI_Comm comm, const char* name) {
  struct Way {
    const char* name;
    void (*complete)(MPI_Request*);
  };
  static const struct Way kWays[] = {{"MPI_Waitall", wait_all},   {"MPI_Wait backwards", wait_backwards},
                                     {"MPI_Testany", test_any},   {"MPI_Test", test_each},
                                     {"MPI_Waitsome", wait_some}, {"MPI_Waitany", wait_any_after_status},
                                     {"MPI_Testall", test_all}};
  int size = 0;
  MPI_Comm_size(comm, &size);
  for (size_t way = 0; way < sizeof(kWays) / sizeof(kWays[0]); ++way) {
    struct Job jobs[kNumUnderWay];
    MPI_Request requests[kNumUnderWay];
    for (int i = 0; i < kNumUnderWay; ++i) {
      jobs[i] = make_job(i + (int)way);
      start(&jobs[i], comm, &requests[i]);
    }
    kWays[way].complete(requests);
    char what[128];
    snprintf(what, sizeof(what), "%s, %s", name, kWays[way].name);
    for (int i = 0; i < kNumUnderWay; ++i) finish(&jobs[i], size, what);
  }
}

/// Blocking collectives, other non-blocking ones and messages between start and completion, and all in one MPI_Waitall.
static void check_mixture(void) {
  enum { kCount = 5000 };
  static double values[kCount];
  struct Job job = make_job(3), second = make_job(5);
  MPI_Request requests[6];
  start(&job, MPI_COMM_WORLD, &requests[0]);
  fill_doubles(values, kCount, rank_of_world);
  MPI_Allreduce(MPI_IN_PLACE, values, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  ordinary_call(size_of_world, kCount);
  expect(first_wrong_double(values, kCount, size_of_world) < 0, "MPI_Allreduce beside MPI_Iallreduce");
  start(&second, MPI_COMM_WORLD, &requests[1]);
  int sent = rank_of_world, got = -1, root = rank_of_world == 0 ? 42 : 0;
  const int next = (rank_of_world + 1) % size_of_world, previous = (rank_of_world + size_of_world - 1) % size_of_world;
  MPI_Irecv(&got, 1, MPI_INT, previous, 5, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(&sent, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &requests[3]);
  MPI_Ibcast(&root, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[4]);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[5]);
  MPI_Status statuses[6];
  MPI_Waitall(6, requests, statuses);
  expect(got == previous && root == 42, "messages beside MPI_Iallreduce: got %d and %d", got, root);
  expect(statuses[2].MPI_SOURCE == previous && statuses[2].MPI_TAG == 5, "the status of a message");
  finish(&job, size_of_world, "the mixture");
  finish(&second, size_of_world, "the mixture");
}

/// A rank that comes late, and ranks that start more before the first is complete.
static void check_late_rank(void) {
  struct Job jobs[kNumUnderWay];
  MPI_Request requests[kNumUnderWay];
  if (rank_of_world == size_of_world - 1) expect(compute(5000) > 1, "arithmetic");
  for (int i = 0; i < kNumUnderWay; ++i) {
    jobs[i] = make_job(i);
    start(&jobs[i], MPI_COMM_WORLD, &requests[i]);
    if (rank_of_world == i % size_of_world) expect(compute(500) > 1, "arithmetic");
  }
  wait_all(requests);
  for (int i = 0; i < kNumUnderWay; ++i) finish(&jobs[i], size_of_world, "a late rank");
}

int main(int argc, char** argv) {
  start_mpi(&argc, &argv, argc > 1 && strcmp(argv[1], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  check_under_way(MPI_COMM_WORLD, "MPI_COMM_WORLD");
  check_mixture();
  check_late_rank();
  MPI_Comm fresh = MPI_COMM_NULL, used = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
  MPI_Comm_split(MPI_COMM_WORLD, rank_of_world % 2, -rank_of_world, &used);
  check_under_way(fresh, "a fresh communicator");
  double one = 1;
  int size = 0;
  MPI_Comm_size(used, &size);
  MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_DOUBLE, MPI_SUM, used);
  expect(one == size, "MPI_Allreduce on a part: %g", one);
  check_under_way(used, "a communicator in use");
#ifndef OPEN_MPI  // Open MPI 4.1.4 crashes here by itself
  // Freed while an operation is under way: it completes all the same.
  struct Job job = make_job(3);
  MPI_Request request;
  start(&job, used, &request);
  MPI_Comm_free(&used);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  finish(&job, size, "a communicator freed meanwhile");
#else
  MPI_Comm_free(&used);
#endif
  MPI_Comm_free(&fresh);
  return end_mpi();
}
