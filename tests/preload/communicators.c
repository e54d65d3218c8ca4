// Communicators made in every way, used and freed many times over, or never freed; attributes and names of the user's.
//   communicators [N]: N rounds (200)
#include "plain_mpi.h"

/// The sum over a communicator, in vectors of several lengths; twice, as the second call may find things prepared.
static void check_sum(MPI_Comm comm, int count, const char* what) {
  static double values[4000];
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int round = 0; round < 2; ++round) {
    fill_doubles(values, count, rank);
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, comm);
    ordinary_call(size, count);
    const long wrong = first_wrong_double(values, count, size);
    expect(wrong < 0, "%s, %d ranks, %d elements: element %ld is wrong", what, size, count, wrong);
  }
}

static int num_copied, num_deleted;
static int copy_attribute(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)key, (void)extra;
  ++num_copied;
  *(void**)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}
static int delete_attribute(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  ++num_deleted;
  return MPI_SUCCESS;
}

static void check_many(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm comm = MPI_COMM_NULL;
    switch (round % 4) {
      case 0:
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        break;
      case 1:
        MPI_Comm_split(MPI_COMM_WORLD, rank_of_world % 2, -rank_of_world, &comm);
        break;
      case 2:
        MPI_Comm_split(MPI_COMM_WORLD, rank_of_world == 0 ? MPI_UNDEFINED : 1, rank_of_world, &comm);
        break;
      default: {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
    }
    if (comm == MPI_COMM_NULL) continue;
    if (round % 5 != 4) check_sum(comm, round % 10 == 0 ? 3000 : 20, "one of many");
    MPI_Comm_free(&comm);
    expect(comm == MPI_COMM_NULL, "MPI_Comm_free left the handle");
  }
}

static void check_attributes(void) {
  int key = MPI_KEYVAL_INVALID, value = 7;
  MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, NULL);
  MPI_Comm first = MPI_COMM_NULL, second = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_set_attr(first, key, &value);
  MPI_Comm_set_name(first, "mine");
  num_copied = num_deleted = 0;
  check_sum(first, 100, "with an attribute");
  expect(num_copied == 0 && num_deleted == 0, "a collective copied %d and deleted %d attributes of the user's",
         num_copied, num_deleted);
  MPI_Comm_dup(first, &second);
  expect(num_copied == 1, "MPI_Comm_dup copied %d attributes of the user's", num_copied);
  check_sum(second, 100, "a copy with an attribute");
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  MPI_Comm_get_name(first, name, &length);
  expect(strcmp(name, "mine") == 0, "the name became '%s'", name);
  MPI_Comm_free(&first);
  check_sum(second, 100, "a copy whose original is gone");
  MPI_Comm_free(&second);
  expect(num_copied == 1 && num_deleted == 2, "in all %d copied, %d deleted", num_copied, num_deleted);
  MPI_Comm_free_keyval(&key);
}

static void check_others(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  int dims[1] = {size_of_world}, periods[1] = {1};
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm);
  check_sum(comm, 2000, "a ring");
  MPI_Comm_free(&comm);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  check_sum(comm, 2000, "the ranks of a host");
  MPI_Comm_free(&comm);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
  check_sum(comm, 2000, "with info");
  MPI_Comm_free(&comm);
  // Only members call MPI_Comm_create_group, and then their collectives.
  MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int range[1][3] = {{size_of_world - 1, 0, -1}};
  if (size_of_world > 2) range[0][1] = 1;
  MPI_Group_range_incl(world, 1, range, &group);
  if (size_of_world <= 2 || rank_of_world >= 1) {
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 11, &comm);
    check_sum(comm, 2000, "a group, backwards");
    MPI_Comm_free(&comm);
  }
  MPI_Group_free(&group);
  MPI_Group_free(&world);
}

int main(int argc, char** argv) {
  start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
  check_sum(MPI_COMM_WORLD, 4000, "MPI_COMM_WORLD");
  check_many(argc > 1 ? atoi(argv[1]) : 200);
  check_attributes();
  check_others();
  for (int i = 0; i < 20; ++i) {
    MPI_Comm lost = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &lost);
    check_sum(lost, 50 + i, "never freed");
  }
  check_sum(MPI_COMM_WORLD, 4000, "MPI_COMM_WORLD at the end");
  return end_mpi();
}
