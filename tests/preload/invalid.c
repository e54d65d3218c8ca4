// Invalid arguments: what the program gets back, one line for each on standard output. The lines have to be the same
// with and without a library in between.
#include "plain_mpi.h"

static MPI_Comm last_comm = MPI_COMM_NULL;
static int num_handled;
static void handle(MPI_Comm* comm, int* code, ...) {
  (void)code;
  last_comm = *comm;
  ++num_handled;
}

static void say(const char* what, int code) {
  int class = MPI_SUCCESS, length = 0;
  char text[MPI_MAX_ERROR_STRING];
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  MPI_Error_string(class, text, &length);
  if (rank_of_world == 0) printf("%s: %s\n", what, class == MPI_SUCCESS ? "no error" : text);
}

static void check_calls(MPI_Comm comm) {
  double in[8] = {0}, out[64] = {0};
  MPI_Request request = MPI_REQUEST_NULL;
  say("Allreduce, negative count", MPI_Allreduce(in, out, -1, MPI_DOUBLE, MPI_SUM, comm));
  say("Allreduce, no type", MPI_Allreduce(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
  say("Allreduce, no operator", MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_OP_NULL, comm));
  say("Allreduce, bits of doubles", MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, comm));
  say("Allreduce, MPI_MINLOC of doubles", MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_MINLOC, comm));
  say("Iallreduce, negative count", MPI_Iallreduce(in, out, -1, MPI_DOUBLE, MPI_SUM, comm, &request));
  say("Iallreduce, no type", MPI_Iallreduce(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm, &request));
  say("Iallreduce, no operator", MPI_Iallreduce(in, out, 1, MPI_DOUBLE, MPI_OP_NULL, comm, &request));
  say("Iallreduce, bits of doubles", MPI_Iallreduce(in, out, 1, MPI_DOUBLE, MPI_BXOR, comm, &request));
  say("Reduce_scatter_block, negative count", MPI_Reduce_scatter_block(in, out, -3, MPI_INT, MPI_SUM, comm));
  say("Reduce_scatter_block, no type", MPI_Reduce_scatter_block(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
  say("Reduce_scatter_block, no operator", MPI_Reduce_scatter_block(in, out, 1, MPI_INT, MPI_OP_NULL, comm));
  say("Allgather, negative count", MPI_Allgather(in, -1, MPI_INT, out, -1, MPI_INT, comm));
  say("Allgather, no type", MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, comm));
  MPI_Datatype uncommitted = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  say("Allgather, a type not committed", MPI_Allgather(in, 1, uncommitted, out, 1, uncommitted, comm));
  MPI_Type_free(&uncommitted);
}

int main(int argc, char** argv) {
  start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (rank_of_world == 0) printf("MPI_COMM_WORLD\n");
  check_calls(MPI_COMM_WORLD);
  double value = 1, result = 0;
  say("Allreduce, no communicator", MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_NULL));

  if (rank_of_world == 0) printf("a communicator with a handler\n");
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(mine, handler);
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, mine);
  expect(num_handled == 0, "the handler was called %d times without an error", num_handled);
  check_calls(mine);
  if (rank_of_world == 0) printf("handler called %d times\n", num_handled);
  expect(last_comm == mine, "the handler was given another communicator");
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&mine);

  // Life goes on.
  double values[100];
  fill_doubles(values, 100, rank_of_world);
  MPI_Allreduce(MPI_IN_PLACE, values, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  ordinary_call(size_of_world, 100);
  expect(first_wrong_double(values, 100, size_of_world) < 0, "MPI_Allreduce after errors");
  return end_mpi();
}
