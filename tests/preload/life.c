// The life of a process: what happens between MPI_Init and MPI_Finalize, and around them.
//   life idle               no collective at all
//   life single|funneled|serialized|multiple
//                           that level of threads; what MPI says about it
//   life child              a child that calls what its parent calls: an error, under a library that takes calls over
//   life elsewhere FOLDER   a program that goes into another folder before it starts MPI
//   life fork               children that go on with the program, that end it, that become another one
#include <sys/wait.h>
#include <unistd.h>

#include "plain_mpi.h"

static void check_sum(const char* what) {
  enum { kCount = 20000 };
  static double values[kCount];
  fill_doubles(values, kCount, rank_of_world);
  MPI_Allreduce(MPI_IN_PLACE, values, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  ordinary_call(size_of_world, kCount);
  const long wrong = first_wrong_double(values, kCount, size_of_world);
  expect(wrong < 0, "%s: element %ld is wrong", what, wrong);
}

static void check_thread_level(int wanted, int provided) {
  int level = -1, is_main = 0, is_initialized = 0, is_finalized = 1;
  MPI_Query_thread(&level);
  MPI_Is_thread_main(&is_main);
  MPI_Initialized(&is_initialized);
  MPI_Finalized(&is_finalized);
  expect(provided >= wanted, "asked for thread level %d, got %d", wanted, provided);
  if (wanted != MPI_THREAD_SINGLE) expect(level == provided, "MPI_Query_thread: %d, not %d", level, provided);
  expect(is_main && is_initialized && !is_finalized, "main thread %d, initialized %d, finalized %d", is_main,
         is_initialized, is_finalized);
}

static void check_child(void (*child)(void), int expected) {
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    child();
    _exit(99);
  }
  check_sum("while a child runs");
  int status = -1;
  expect(waitpid(pid, &status, 0) == pid, "waitpid");
  expect(WIFEXITED(status) && WEXITSTATUS(status) == expected, "the child ended with %x, not with code %d",
         (unsigned)status, expected);
  check_sum("after a child");
}
static void leave_at_once(void) { _exit(3); }
static void leave_through_handlers(void) { exit(4); }
static void become_another(void) { execl("/bin/sh", "sh", "-c", "exit 5", (char*)NULL); }

/// Calls that only ranks may make. The number of those that do not say so.
static void call_as_a_rank(void) {
  enum { kCount = 20000 };
  static double in[4 * kCount], out[64 * kCount];
  MPI_Request request = MPI_REQUEST_NULL;
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) in[i] = out[i] = -7;
  wrong += MPI_Allreduce(in, out, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS;
  wrong += MPI_Iallreduce(in, out, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request) == MPI_SUCCESS;
  wrong += MPI_Reduce_scatter_block(in, out, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS;
  wrong += MPI_Allgather(in, kCount, MPI_DOUBLE, out, kCount, MPI_DOUBLE, MPI_COMM_WORLD) == MPI_SUCCESS;
  for (int i = 0; i < kCount; ++i) wrong += out[i] != -7;
  _exit(wrong == 0 ? 6 : 90 + (wrong < 9 ? wrong : 8));
}

int main(int argc, char** argv) {
  const char* const kLevels[] = {"single", "funneled", "serialized", "multiple"};
  const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  const char* what = argc > 1 ? argv[1] : "idle";
  int wanted = MPI_THREAD_SINGLE;
  for (int i = 0; i < 4; ++i) {
    if (strcmp(what, kLevels[i]) == 0) wanted = levels[i];
  }
  if (strcmp(what, "elsewhere") == 0 && (argc < 3 || chdir(argv[2]) != 0)) return 8;
  const int provided = start_mpi(&argc, &argv, wanted);
  if (strcmp(what, "idle") == 0) return end_mpi();
  check_thread_level(wanted, provided);
  check_sum(what);
  if (strcmp(what, "fork") == 0) {
    check_child(leave_at_once, 3);
    check_child(leave_through_handlers, 4);
    check_child(become_another, 5);
  }
  if (strcmp(what, "child") == 0) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check_child(call_as_a_rank, 6);
  }
  const int result = end_mpi();
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (!is_finalized) fprintf(stderr, "FAILED: MPI_Finalized says no\n");
  return is_finalized ? result : 1;
}
