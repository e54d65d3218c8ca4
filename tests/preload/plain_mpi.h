// What the test programs share. They are plain MPI programs that know nothing of gar: they check their own results, and
// rank 0 says at the end how many calls of all ranks a library that takes collectives over cannot have a reason to
// leave alone ("calls N").
#ifndef PLAIN_MPI_H
#define PLAIN_MPI_H

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank_of_world, size_of_world;
static int num_failures;
static long num_ordinary_calls;

/// Starts MPI with the thread level that the program wants; MPI_Init when that is MPI_THREAD_SINGLE.
static inline int start_mpi(int* argc, char*** argv, int level) {
  int provided = MPI_THREAD_SINGLE;
  if (level == MPI_THREAD_SINGLE) {
    MPI_Init(argc, argv);
  } else {
    MPI_Init_thread(argc, argv, level, &provided);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_of_world);
  MPI_Comm_size(MPI_COMM_WORLD, &size_of_world);
  return provided;
}

/// Notes a failure when `ok` is 0. The first ten are printed.
static inline void expect(int ok, const char* format, ...) {
  if (ok) return;
  if (__atomic_fetch_add(&num_failures, 1, __ATOMIC_RELAXED) >= 10) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  fprintf(stderr, "FAILED on rank %d of %d: %s\n", rank_of_world, size_of_world, text);
}

/// Counts a call on a communicator of `size` ranks with `count` elements of a basic type and operator.
static inline void ordinary_call(int size, long count) {
  if (size > 1 && count > 0) __atomic_fetch_add(&num_ordinary_calls, 1, __ATOMIC_RELAXED);
}

/// Ends MPI; returns main's result.
static inline int end_mpi(void) {
  long total = 0;
  MPI_Reduce(&num_ordinary_calls, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank_of_world == 0) printf("calls %ld\n", total);
  fflush(stdout);
  MPI_Finalize();
  return num_failures == 0 ? 0 : 1;
}

/// Whether all elements of an MPI_DOUBLE sum over ranks 0..size-1 of (rank + 1) * (index % 7 + 1) are right: exact.
static inline void fill_doubles(double* values, long count, int rank) {
  for (long i = 0; i < count; ++i) values[i] = (double)(rank + 1) * (double)(i % 7 + 1);
}
static inline long first_wrong_double(const double* values, long count, int size) {
  const double ranks = (double)size * (size + 1) / 2;
  for (long i = 0; i < count; ++i) {
    if (values[i] != ranks * (double)(i % 7 + 1)) return i;
  }
  return -1;
}

/// The same with MPI_INT.
static inline void fill_ints(int* values, long count, int rank) {
  for (long i = 0; i < count; ++i) values[i] = (rank + 1) * (int)(i % 7 + 1);
}
static inline long first_wrong_int(const int* values, long count, int size) {
  const int ranks = size * (size + 1) / 2;
  for (long i = 0; i < count; ++i) {
    if (values[i] != ranks * (int)(i % 7 + 1)) return i;
  }
  return -1;
}

#endif
