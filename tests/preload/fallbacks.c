// What has to be left to the MPI library, in between calls that do not: operators and types of the user's own,
// MPI_MINLOC, intercommunicators, communicators of one rank. And MPI_Allgather, where every rank may describe the same
// data by another type.
#include <complex.h>
#include <math.h>
#include <stdbool.h>

#include "plain_mpi.h"

static void check_ordinary(const char* after) {
  enum { kCount = 600 };
  double values[kCount];
  fill_doubles(values, kCount, rank_of_world);
  MPI_Allreduce(MPI_IN_PLACE, values, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  ordinary_call(size_of_world, kCount);
  const long wrong = first_wrong_double(values, kCount, size_of_world);
  expect(wrong < 0, "MPI_Allreduce after %s: element %ld is wrong", after, wrong);
}

static void add_modulo(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] = (((int*)in)[i] + ((int*)inout)[i]) % 1000003;
}

/// The affine map x -> a x + b modulo a prime; in after inout is not inout after in. `in` comes from the lower rank.
struct Map {
  int a, b;
};
static void compose(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  const struct Map* first = in;
  struct Map* second = inout;
  for (int i = 0; i < *count; ++i) {
    const struct Map result = {first[i].a * second[i].a % 1009, (second[i].a * first[i].b + second[i].b) % 1009};
    second[i] = result;
  }
}

static struct Map map_of(int index, int rank) {
  const struct Map out = {(index * 7 + rank * 11) % 1008 + 1, (index + rank * 5) % 1009};
  return out;
}
static struct Map composed(int index) {
  struct Map out = map_of(index, 0);
  for (int r = 1; r < size_of_world; ++r) {
    struct Map next = map_of(index, r);
    int one = 1;
    compose(&out, &next, &one, NULL);
    out = next;
  }
  return out;
}

static void check_user_operators(void) {
  enum { kCount = 1500 };
  static int ints[kCount];
  MPI_Op sum = MPI_OP_NULL, composition = MPI_OP_NULL;
  MPI_Op_create(add_modulo, 1, &sum);
  MPI_Op_create(compose, 0, &composition);
  for (int i = 0; i < kCount; ++i) ints[i] = i + rank_of_world * 1000;
  MPI_Allreduce(MPI_IN_PLACE, ints, kCount, MPI_INT, sum, MPI_COMM_WORLD);
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) {
    const int expected = (i * size_of_world + 1000 * (size_of_world * (size_of_world - 1) / 2)) % 1000003;
    if (ints[i] != expected) ++wrong;
  }
  expect(wrong == 0, "a user's operator: %d wrong", wrong);
  check_ordinary("a user's operator");

  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  static struct Map maps[kCount], results[kCount];
  for (int i = 0; i < kCount; ++i) maps[i] = map_of(i, rank_of_world);
  MPI_Allreduce(maps, results, kCount, pair, composition, MPI_COMM_WORLD);
  wrong = 0;
  for (int i = 0; i < kCount; ++i) {
    const struct Map expected = composed(i);
    if (results[i].a != expected.a || results[i].b != expected.b) ++wrong;
  }
  expect(wrong == 0, "an operator that does not commute: %d wrong", wrong);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(maps, results, kCount, pair, composition, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  wrong = 0;
  for (int i = 0; i < kCount; ++i) {
    const struct Map expected = composed(i);
    if (results[i].a != expected.a || results[i].b != expected.b) ++wrong;
  }
  expect(wrong == 0, "MPI_Iallreduce with an operator that does not commute: %d wrong", wrong);
  const int block = kCount / size_of_world;
  MPI_Reduce_scatter_block(maps, results, block, pair, composition, MPI_COMM_WORLD);
  wrong = 0;
  for (int i = 0; i < block; ++i) {
    const struct Map expected = composed(i + block * rank_of_world);
    if (results[i].a != expected.a || results[i].b != expected.b) ++wrong;
  }
  expect(wrong == 0, "MPI_Reduce_scatter_block with an operator that does not commute: %d wrong", wrong);
  MPI_Type_free(&pair);
  MPI_Op_free(&composition);
  MPI_Op_free(&sum);
  check_ordinary("operators were freed");
}

static void check_unusual_types(void) {
  struct {
    double value;
    int index;
  } located[40];
  for (int i = 0; i < 40; ++i) {
    located[i].value = (double)((i + rank_of_world) % size_of_world);
    located[i].index = rank_of_world;
  }
  MPI_Allreduce(MPI_IN_PLACE, located, 40, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
  int wrong = 0;
  for (int i = 0; i < 40; ++i) {
    const int expected = (size_of_world - i % size_of_world) % size_of_world;
    if (located[i].value != 0 || located[i].index != expected) ++wrong;
  }
  expect(wrong == 0, "MPI_MINLOC: %d wrong", wrong);
  check_ordinary("MPI_MINLOC");

  int pairs[2][2] = {{rank_of_world, 7 * rank_of_world}, {-rank_of_world, rank_of_world}};
  MPI_Allreduce(MPI_IN_PLACE, pairs, 2, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD);
  expect(pairs[0][0] == size_of_world - 1 && pairs[0][1] == 7 * (size_of_world - 1), "MPI_MAXLOC of MPI_2INT");
  expect(pairs[1][0] == 0 && pairs[1][1] == 0, "MPI_MAXLOC of MPI_2INT, second");

  double complex numbers[30];
  for (int i = 0; i < 30; ++i) numbers[i] = rank_of_world + 1 + (double)i * I;
  MPI_Allreduce(MPI_IN_PLACE, numbers, 30, MPI_C_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
  wrong = 0;
  for (int i = 0; i < 30; ++i) {
    if (creal(numbers[i]) != (double)size_of_world * (size_of_world + 1) / 2) ++wrong;
    if (cimag(numbers[i]) != (double)(i * size_of_world)) ++wrong;
  }
  expect(wrong == 0, "MPI_C_DOUBLE_COMPLEX: %d wrong", wrong);
  for (int i = 0; i < 30; ++i) numbers[i] = I;
  MPI_Allreduce(MPI_IN_PLACE, numbers, 30, MPI_C_DOUBLE_COMPLEX, MPI_PROD, MPI_COMM_WORLD);
  const double complex powers[] = {1, I, -1, -I};
  expect(numbers[29] == powers[size_of_world % 4], "the product of MPI_C_DOUBLE_COMPLEX");

  bool flags[3] = {true, rank_of_world == 0, false};
  MPI_Allreduce(MPI_IN_PLACE, flags, 3, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD);
  expect(flags[0] && flags[1] == (size_of_world == 1) && !flags[2], "MPI_C_BOOL");
  check_ordinary("unusual types");
}

static void check_special_values(void) {
  // Infinities and NaN come through a sum; what min and max make of a NaN is up to the library.
  double values[4] = {rank_of_world == 0 ? INFINITY : 1, rank_of_world == 0 ? NAN : 1, -0.0, 1e308};
  double sums[4];
  MPI_Allreduce(values, sums, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  ordinary_call(size_of_world, 4);
  expect(isinf(sums[0]) && isnan(sums[1]) && sums[2] == 0, "special values: %g %g %g", sums[0], sums[1], sums[2]);
  expect(size_of_world == 1 || isinf(sums[3]), "overflow: %g", sums[3]);
}

static void check_communicators(void) {
  double value = 3;
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
  expect(value == 3, "MPI_COMM_SELF: %g", value);
  double all[1] = {0};
  MPI_Allgather(&value, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_SELF);
  expect(all[0] == 3, "MPI_Allgather on MPI_COMM_SELF: %g", all[0]);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&value, all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_SELF, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(all[0] == 3, "MPI_Iallreduce on MPI_COMM_SELF: %g", all[0]);

  if (size_of_world > 1) {
    MPI_Comm half = MPI_COMM_NULL, between = MPI_COMM_NULL, merged = MPI_COMM_NULL;
    const int is_upper = rank_of_world >= size_of_world / 2;
    MPI_Comm_split(MPI_COMM_WORLD, is_upper, rank_of_world, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_upper ? 0 : size_of_world / 2, 3, &between);
    int ranks[2] = {rank_of_world, 1}, sums[2] = {0, 0}, other = 0;
    MPI_Comm_remote_size(between, &other);
    MPI_Allreduce(ranks, sums, 2, MPI_INT, MPI_SUM, between);  // each side gets the sum of the other one
    expect(sums[1] == other, "MPI_Allreduce between communicators: %d, not %d", sums[1], other);
    int gathered[64] = {0};
    MPI_Allgather(&rank_of_world, 1, MPI_INT, gathered, 1, MPI_INT, between);
    expect(gathered[0] == (is_upper ? 0 : size_of_world / 2), "MPI_Allgather between communicators: %d", gathered[0]);
    MPI_Intercomm_merge(between, is_upper, &merged);
    MPI_Allreduce(ranks, sums, 2, MPI_INT, MPI_SUM, merged);
    ordinary_call(size_of_world, 2);
    expect(sums[1] == size_of_world, "MPI_Allreduce on a merged communicator: %d", sums[1]);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
  }
  check_ordinary("other communicators");
}

/// `count` pairs of ints from every rank. Even ranks send ints, odd ones pairs from every second place; and who
/// receives how depends on the rank, too.
static void check_allgather(int count) {
  MPI_Datatype pair = MPI_DATATYPE_NULL, spread = MPI_DATATYPE_NULL, spread_out = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_create_resized(pair, 0, 4 * (MPI_Aint)sizeof(int), &spread);  // a pair, then a gap of two ints
  MPI_Type_vector(count, 2, 4, MPI_INT, &spread_out);                    // all pairs of a rank, with gaps
  MPI_Type_commit(&pair);
  MPI_Type_commit(&spread);
  MPI_Type_commit(&spread_out);
  int* in = malloc((size_t)count * 4 * sizeof(int));
  int* out = malloc((size_t)count * 4 * (size_t)size_of_world * sizeof(int));
  for (int round = 0; round < 4; ++round) {
    const int is_spread = (round & 1) != 0 && rank_of_world % 2 == 1;
    for (int i = 0; i < count * 4; ++i) in[i] = -1;
    for (int i = 0; i < count * 2; ++i) in[is_spread ? i / 2 * 4 + i % 2 : i] = rank_of_world * 100000 + i;
    for (int i = 0; i < count * 4 * size_of_world; ++i) out[i] = -2;
    const int is_spread_out = (round & 2) != 0 && rank_of_world == size_of_world - 1;
    MPI_Allgather(in, is_spread ? count : count * 2, is_spread ? spread : MPI_INT, out,
                  is_spread_out            ? count
                  : rank_of_world % 2 == 0 ? count
                                           : count * 2,
                  is_spread_out            ? spread
                  : rank_of_world % 2 == 0 ? pair
                                           : MPI_INT,
                  MPI_COMM_WORLD);
    int wrong = 0;
    for (int i = 0; i < count * 2 * size_of_world; ++i) {
      const int expected = i / (count * 2) * 100000 + i % (count * 2);
      if (out[is_spread_out ? i / 2 * 4 + i % 2 : i] != expected) ++wrong;
      if (is_spread_out && out[i / 2 * 4 + i % 2 + 2] != -2) ++wrong;
    }
    expect(wrong == 0, "MPI_Allgather of %d pairs, round %d: %d wrong", count, round, wrong);
  }
  // In place, with gaps on one rank only: the gaps stay.
  for (int i = 0; i < count * 4 * size_of_world; ++i) out[i] = -2;
  const int has_gaps = rank_of_world == 0;
  for (int i = 0; i < count * 2; ++i) {
    const int at = rank_of_world * count * 2 + i;
    out[has_gaps ? at / 2 * 4 + at % 2 : at] = rank_of_world * 100000 + i;
  }
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, has_gaps ? count : count * 2, has_gaps ? spread : MPI_INT,
                MPI_COMM_WORLD);
  int wrong = 0;
  for (int i = 0; i < count * 2 * size_of_world; ++i) {
    const int expected = i / (count * 2) * 100000 + i % (count * 2);
    if (out[has_gaps ? i / 2 * 4 + i % 2 : i] != expected) ++wrong;
  }
  expect(wrong == 0, "MPI_Allgather of %d pairs in place, gaps on rank 0: %d wrong", count, wrong);
  free(in);
  free(out);
  MPI_Type_free(&pair);
  MPI_Type_free(&spread);
  MPI_Type_free(&spread_out);
}

/// A type with absolute addresses, relative to MPI_BOTTOM, on one rank; plain memory on the others.
static void check_absolute_addresses(void) {
  enum { kCount = 500 };
  static int first[kCount / 2], second[kCount / 2], plain[kCount], out[64 * kCount];
  MPI_Aint addresses[2];
  MPI_Get_address(first, &addresses[0]);
  MPI_Get_address(second, &addresses[1]);
  const int lengths[2] = {kCount / 2, kCount / 2};
  MPI_Datatype absolute = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed(2, lengths, addresses, MPI_INT, &absolute);
  MPI_Type_commit(&absolute);
  for (int i = 0; i < kCount; ++i) plain[i] = rank_of_world * 100000 + i;
  memcpy(first, plain, sizeof(first));
  memcpy(second, plain + kCount / 2, sizeof(second));
  if (rank_of_world == 0) {
    MPI_Allgather(MPI_BOTTOM, 1, absolute, out, kCount, MPI_INT, MPI_COMM_WORLD);
  } else {
    MPI_Allgather(plain, kCount, MPI_INT, out, kCount, MPI_INT, MPI_COMM_WORLD);
  }
  int wrong = 0;
  for (int i = 0; i < kCount * size_of_world; ++i) {
    if (out[i] != i / kCount * 100000 + i % kCount) ++wrong;
  }
  expect(wrong == 0, "MPI_Allgather from MPI_BOTTOM: %d wrong", wrong);
  MPI_Type_free(&absolute);
}

int main(int argc, char** argv) {
  start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
  check_user_operators();
  check_unusual_types();
  check_special_values();
  check_communicators();
  check_allgather(1);
  check_allgather(300);
  check_allgather(20000);
  check_absolute_addresses();
  check_ordinary("MPI_Allgather");
  return end_mpi();
}
