// Invalid arguments: what the program gets back, one line for each in a file, and how often its error handler was
// called. The lines have to be the same with and without a library in between.
//   invalid FILE SKIPPED          all cases but those of the list ",3,17,"
//   invalid FILE only NUMBER      one case
// A case that ends the program, or hangs, leaves its line unfinished: not every MPI checks arguments.
#include <stdint.h>
#include <unistd.h>

#include "plain_mpi.h"

enum { kCount = 8, kRoom = 64 * kCount };

static double in[kRoom], out[kRoom];
static MPI_Request request;
static MPI_Comm freed, between;
static MPI_Datatype uncommitted, pair, spaced;
static char garbage[4096];  // as an object that a handle could point to

#define HANDLE(type) ((type)(intptr_t)(sizeof(type) == sizeof(int) ? 0x1234567 : (intptr_t)(void*)garbage))
#define CASE(name, ...)            \
  static int name(MPI_Comm comm) { \
    (void)comm;                    \
    return __VA_ARGS__;            \
  }

CASE(ar_negative, MPI_Allreduce(in, out, -1, MPI_DOUBLE, MPI_SUM, comm))
CASE(ar_no_type, MPI_Allreduce(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm))
CASE(ar_no_op, MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_OP_NULL, comm))
CASE(ar_bits, MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, comm))
CASE(ar_minloc, MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_MINLOC, comm))
CASE(ar_uncommitted, MPI_Allreduce(in, out, 1, uncommitted, MPI_SUM, comm))
CASE(ar_garbage_type, MPI_Allreduce(in, out, 1, HANDLE(MPI_Datatype), MPI_SUM, comm))
CASE(ar_garbage_op, MPI_Allreduce(in, out, 1, MPI_DOUBLE, HANDLE(MPI_Op), comm))
CASE(ar_no_comm, MPI_Allreduce(in, out, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_NULL))
CASE(ar_garbage_comm, MPI_Allreduce(in, out, kCount, MPI_DOUBLE, MPI_SUM, HANDLE(MPI_Comm)))
CASE(ar_freed_comm, MPI_Allreduce(in, out, kCount, MPI_DOUBLE, MPI_SUM, freed))
CASE(ar_null_in, MPI_Allreduce(NULL, out, kCount, MPI_DOUBLE, MPI_SUM, comm))
CASE(ar_null_out, MPI_Allreduce(in, NULL, kCount, MPI_DOUBLE, MPI_SUM, comm))
CASE(ar_in_place_out, MPI_Allreduce(in, MPI_IN_PLACE, kCount, MPI_DOUBLE, MPI_SUM, comm))
CASE(ar_in_place_both, MPI_Allreduce(MPI_IN_PLACE, MPI_IN_PLACE, kCount, MPI_DOUBLE, MPI_SUM, comm))
CASE(ar_alias, MPI_Allreduce(out, out, kCount, MPI_DOUBLE, MPI_SUM, comm))
CASE(ar_alias_one, MPI_Allreduce(out, out, 1, MPI_DOUBLE, MPI_SUM, comm))
CASE(ar_overlap, MPI_Allreduce(out + 3, out, kCount, MPI_DOUBLE, MPI_SUM, comm))
CASE(ar_between, MPI_Allreduce(MPI_IN_PLACE, out, kCount, MPI_DOUBLE, MPI_SUM, between))

CASE(iar_negative, MPI_Iallreduce(in, out, -1, MPI_DOUBLE, MPI_SUM, comm, &request))
CASE(iar_no_type, MPI_Iallreduce(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm, &request))
CASE(iar_no_op, MPI_Iallreduce(in, out, 1, MPI_DOUBLE, MPI_OP_NULL, comm, &request))
CASE(iar_bits, MPI_Iallreduce(in, out, 1, MPI_DOUBLE, MPI_BXOR, comm, &request))
CASE(iar_no_comm, MPI_Iallreduce(in, out, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_NULL, &request))
CASE(iar_freed_comm, MPI_Iallreduce(in, out, kCount, MPI_DOUBLE, MPI_SUM, freed, &request))
CASE(iar_null_out, MPI_Iallreduce(in, NULL, kCount, MPI_DOUBLE, MPI_SUM, comm, &request))
CASE(iar_in_place_out, MPI_Iallreduce(in, MPI_IN_PLACE, kCount, MPI_DOUBLE, MPI_SUM, comm, &request))
CASE(iar_alias, MPI_Iallreduce(out, out, kCount, MPI_DOUBLE, MPI_SUM, comm, &request))
CASE(iar_overlap, MPI_Iallreduce(out + 3, out, kCount, MPI_DOUBLE, MPI_SUM, comm, &request))
CASE(iar_between, MPI_Iallreduce(MPI_IN_PLACE, out, kCount, MPI_DOUBLE, MPI_SUM, between, &request))

CASE(rs_negative, MPI_Reduce_scatter_block(in, out, -3, MPI_INT, MPI_SUM, comm))
CASE(rs_no_type, MPI_Reduce_scatter_block(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm))
CASE(rs_no_op, MPI_Reduce_scatter_block(in, out, 1, MPI_INT, MPI_OP_NULL, comm))
CASE(rs_no_comm, MPI_Reduce_scatter_block(in, out, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_NULL))
CASE(rs_freed_comm, MPI_Reduce_scatter_block(in, out, kCount, MPI_DOUBLE, MPI_SUM, freed))
CASE(rs_null_in, MPI_Reduce_scatter_block(NULL, out, kCount, MPI_DOUBLE, MPI_SUM, comm))
CASE(rs_null_out, MPI_Reduce_scatter_block(in, NULL, kCount, MPI_DOUBLE, MPI_SUM, comm))
CASE(rs_in_place_out, MPI_Reduce_scatter_block(in, MPI_IN_PLACE, kCount, MPI_DOUBLE, MPI_SUM, comm))
CASE(rs_alias, MPI_Reduce_scatter_block(in, in, kCount, MPI_DOUBLE, MPI_SUM, comm))
CASE(rs_overlap, MPI_Reduce_scatter_block(in, in + 3, kCount, MPI_DOUBLE, MPI_SUM, comm))
CASE(rs_between, MPI_Reduce_scatter_block(MPI_IN_PLACE, out, kCount, MPI_DOUBLE, MPI_SUM, between))

CASE(ag_negative, MPI_Allgather(in, -1, MPI_INT, out, -1, MPI_INT, comm))
CASE(ag_negative_in, MPI_Allgather(in, -1, MPI_INT, out, 1, MPI_INT, comm))
CASE(ag_no_type, MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, comm))
CASE(ag_no_in_type, MPI_Allgather(in, 1, MPI_DATATYPE_NULL, out, 1, MPI_INT, comm))
CASE(ag_uncommitted, MPI_Allgather(in, 1, uncommitted, out, 1, uncommitted, comm))
CASE(ag_garbage_type, MPI_Allgather(in, 1, HANDLE(MPI_Datatype), out, 1, MPI_INT, comm))
CASE(ag_no_comm, MPI_Allgather(in, 1, MPI_DOUBLE, out, 1, MPI_DOUBLE, MPI_COMM_NULL))
CASE(ag_freed_comm, MPI_Allgather(in, 1, MPI_DOUBLE, out, 1, MPI_DOUBLE, freed))
CASE(ag_null_in, MPI_Allgather(NULL, 4, MPI_DOUBLE, out, 4, MPI_DOUBLE, comm))
CASE(ag_null_out, MPI_Allgather(in, 4, MPI_DOUBLE, NULL, 4, MPI_DOUBLE, comm))
CASE(ag_in_place_out, MPI_Allgather(in, 4, MPI_DOUBLE, MPI_IN_PLACE, 4, MPI_DOUBLE, comm))
CASE(ag_alias, MPI_Allgather(out + 4 * rank_of_world, 4, MPI_DOUBLE, out, 4, MPI_DOUBLE, comm))
CASE(ag_overlap, MPI_Allgather(out + 1, 4, MPI_DOUBLE, out, 4, MPI_DOUBLE, comm))
// The same with a derived type. MPICH knows two of a kind by their handles, and looks for the input by the bytes of the
// elements, whatever is between them.
CASE(ag_alias_pairs, MPI_Allgather(out + 4 * rank_of_world, 2, pair, out, 2, pair, comm))
CASE(ag_alias_spaced, MPI_Allgather(out + 4 * rank_of_world, 4, spaced, out, 4, spaced, comm))
CASE(ag_alias_types, MPI_Allgather(out + 4 * rank_of_world, 4, MPI_LONG, out, 4, MPI_INT64_T, comm))
CASE(ag_alias_pair_in, MPI_Allgather(out + 4 * rank_of_world, 2, pair, out, 4, MPI_DOUBLE, comm))
CASE(ag_alias_alone, MPI_Allgather(rank_of_world == 0 ? out : in, 4, rank_of_world == 0 ? MPI_LONG : MPI_DOUBLE, out, 4,
                                   MPI_DOUBLE, comm))
#ifdef OPEN_MPI
CASE(ag_between, MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 4, MPI_DOUBLE, between))
#endif

static const struct {
  const char* name;
  int (*call)(MPI_Comm comm);
  int is_undefined;  ///< if it is no error, its result is not defined either
} kCases[] = {
    {"Allreduce, negative count", ar_negative, 0},
    {"Allreduce, no type", ar_no_type, 0},
    {"Allreduce, no operator", ar_no_op, 0},
    {"Allreduce, bits of doubles", ar_bits, 1},
    {"Allreduce, MPI_MINLOC of doubles", ar_minloc, 1},
    {"Allreduce, sum of a type not committed", ar_uncommitted, 1},
    {"Allreduce, a type that never was", ar_garbage_type, 1},
    {"Allreduce, an operator that never was", ar_garbage_op, 1},
    {"Allreduce, no communicator", ar_no_comm, 0},
    {"Allreduce, a communicator that never was", ar_garbage_comm, 1},
    {"Allreduce, a freed communicator", ar_freed_comm, 1},
    {"Allreduce, no input", ar_null_in, 0},
    {"Allreduce, no output", ar_null_out, 0},
    {"Allreduce, MPI_IN_PLACE as output", ar_in_place_out, 0},
    {"Allreduce, MPI_IN_PLACE as both", ar_in_place_both, 0},
    {"Allreduce, the same buffer twice", ar_alias, 0},
    {"Allreduce, the same buffer twice, one element", ar_alias_one, 0},
    {"Allreduce, buffers that overlap", ar_overlap, 1},
    {"Allreduce, MPI_IN_PLACE between communicators", ar_between, 1},
    {"Iallreduce, negative count", iar_negative, 0},
    {"Iallreduce, no type", iar_no_type, 0},
    {"Iallreduce, no operator", iar_no_op, 0},
    {"Iallreduce, bits of doubles", iar_bits, 1},
    {"Iallreduce, no communicator", iar_no_comm, 0},
    {"Iallreduce, a freed communicator", iar_freed_comm, 1},
    {"Iallreduce, no output", iar_null_out, 0},
    {"Iallreduce, MPI_IN_PLACE as output", iar_in_place_out, 0},
    {"Iallreduce, the same buffer twice", iar_alias, 0},
    {"Iallreduce, buffers that overlap", iar_overlap, 1},
    {"Iallreduce, MPI_IN_PLACE between communicators", iar_between, 1},
    {"Reduce_scatter_block, negative count", rs_negative, 0},
    {"Reduce_scatter_block, no type", rs_no_type, 0},
    {"Reduce_scatter_block, no operator", rs_no_op, 0},
    {"Reduce_scatter_block, no communicator", rs_no_comm, 0},
    {"Reduce_scatter_block, a freed communicator", rs_freed_comm, 1},
    {"Reduce_scatter_block, no input", rs_null_in, 0},
    {"Reduce_scatter_block, no output", rs_null_out, 0},
    {"Reduce_scatter_block, MPI_IN_PLACE as output", rs_in_place_out, 0},
    {"Reduce_scatter_block, the same buffer twice", rs_alias, 0},
    {"Reduce_scatter_block, buffers that overlap", rs_overlap, 1},
    {"Reduce_scatter_block, MPI_IN_PLACE between communicators", rs_between, 1},
    {"Allgather, negative count", ag_negative, 0},
    {"Allgather, negative count of the input", ag_negative_in, 0},
    {"Allgather, no type", ag_no_type, 0},
    {"Allgather, no type of the input", ag_no_in_type, 0},
    {"Allgather, a type not committed", ag_uncommitted, 1},
    {"Allgather, a type that never was", ag_garbage_type, 1},
    {"Allgather, no communicator", ag_no_comm, 0},
    {"Allgather, a freed communicator", ag_freed_comm, 1},
    {"Allgather, no input", ag_null_in, 0},
    {"Allgather, no output", ag_null_out, 0},
    {"Allgather, MPI_IN_PLACE as output", ag_in_place_out, 0},
    {"Allgather, the same buffer twice", ag_alias, 0},
    {"Allgather, buffers that overlap", ag_overlap, 1},
    {"Allgather, the same buffer twice, a derived type", ag_alias_pairs, 0},
    {"Allgather, the same buffer twice, a type with gaps", ag_alias_spaced, 1},
    {"Allgather, the same buffer twice, two types of the same numbers", ag_alias_types, 0},
    {"Allgather, the same buffer twice, a derived type and its elements", ag_alias_pair_in, 0},
    {"Allgather, the same buffer twice, two types, on one rank alone", ag_alias_alone, 0},
#ifdef OPEN_MPI  // MPICH hangs
    {"Allgather, MPI_IN_PLACE between communicators", ag_between, 1},
#endif
};
enum { kNumCases = sizeof(kCases) / sizeof(kCases[0]) };

static FILE* lines;  ///< null on all ranks but one
static int num_handled;
static void handle(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++num_handled;
}

/// The case's number, its name, the class of the error, and how often a handler was called.
static void run_case(int number, MPI_Comm comm) {
  for (int i = 0; i < kRoom; ++i) in[i] = out[i] = i % 7 + rank_of_world;
  if (lines != NULL) fprintf(lines, "%d %s: ", number, kCases[number].name), fflush(lines);
  MPI_Barrier(MPI_COMM_WORLD);
  num_handled = 0;
  request = MPI_REQUEST_NULL;
  alarm(60);  // ends what hangs
  const int code = kCases[number].call(comm);
  if (code == MPI_SUCCESS) MPI_Wait(&request, MPI_STATUS_IGNORE);
  alarm(0);
  int class = MPI_SUCCESS, length = 0;
  char text[MPI_MAX_ERROR_STRING] = "no error";
  if (code != MPI_SUCCESS) {
    MPI_Error_class(code, &class);
    MPI_Error_string(class, text, &length);
  }
  double sum = 0;
  for (int i = 0; i < kRoom; ++i) sum += (double)(i + 1) * (in[i] + out[i]);
  if (lines == NULL) return;
  fprintf(lines, "%s, %d calls of the handler", text, num_handled);
  if (!kCases[number].is_undefined) fprintf(lines, ", %.0f", sum);
  fprintf(lines, "\n");
  fflush(lines);
}

static int is_skipped(const char* skipped, int number) {
  char text[16];
  snprintf(text, sizeof(text), ",%d,", number);
  return strstr(skipped, text) != NULL;
}

int main(int argc, char** argv) {
  start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  MPI_Comm mine = MPI_COMM_NULL, half = MPI_COMM_NULL;
  double value = 1;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  for (int i = 0; i < 20; ++i) MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, mine);
  MPI_Comm_split(MPI_COMM_WORLD, rank_of_world > 0, rank_of_world, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank_of_world > 0 ? 0 : 1, 3, &between);
  MPI_Comm_set_errhandler(between, handler);
  MPI_Type_contiguous(2, MPI_DOUBLE, &uncommitted);
  MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
  MPI_Type_commit(&pair);
  MPI_Type_create_resized(MPI_DOUBLE, 0, 2 * sizeof(double), &spaced);
  MPI_Type_commit(&spaced);
  MPI_Comm used = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &used);
  for (int i = 0; i < 20; ++i) MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, used);
  freed = used;
  MPI_Comm_free(&used);
  expect(num_handled == 0, "the handler was called %d times without an error", num_handled);

  if (rank_of_world == 0 && argc > 1) lines = fopen(argv[1], "w");
  const int only = argc > 3 && strcmp(argv[2], "only") == 0 ? atoi(argv[3]) : -1;
  const char* skipped = only < 0 && argc > 2 ? argv[2] : "";
  for (int round = 0; round < 2; ++round) {
    for (int number = 0; number < kNumCases; ++number) {
      if ((only >= 0 && number != only) || is_skipped(skipped, number)) continue;
      run_case(number, round == 0 ? MPI_COMM_WORLD : mine);
    }
  }

  // Life goes on.
  double values[100];
  fill_doubles(values, 100, rank_of_world);
  MPI_Allreduce(MPI_IN_PLACE, values, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  ordinary_call(size_of_world, 100);
  expect(first_wrong_double(values, 100, size_of_world) < 0, "MPI_Allreduce after errors");
  MPI_Type_free(&uncommitted);
  MPI_Type_free(&pair);
  MPI_Type_free(&spaced);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
  MPI_Comm_free(&mine);
  MPI_Errhandler_free(&handler);
  if (lines != NULL) fclose(lines);
  return end_mpi();
}
