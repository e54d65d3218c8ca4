// Every basic type with every operator, in place and not: MPI_Allreduce, MPI_Reduce_scatter_block, MPI_Allgather, and
// MPI_Iallreduce one at a time. Nothing beside the result may change.
//   types [N]: one case in N, drawn (MPICH takes a time slice for each call when ranks outnumber cores)
#include <stddef.h>
#include <stdint.h>

#include "plain_mpi.h"

enum Op { kSum, kProd, kMin, kMax, kLand, kLor, kLxor, kBand, kBor, kBxor, kNumOps };
enum OpSet { kArithmetic = 1, kLogical = 2, kBits = 4 };
enum Collective { kAllreduce, kIallreduce, kReduceScatterBlock, kNumReductions };

/// Small values, so that results are exact in every type.
static long value_of(long index, int rank, enum Op op, int is_signed) {
  switch (op) {
    case kSum:
      return (index * 7 + rank * 3) % 5 - (is_signed ? 2 : 0);
    case kProd:
      return (index + rank) % 2 + 1;
    case kMin:
    case kMax:
      return (index * 31 + rank * 17) % 101 - (is_signed ? 50 : 0);
    case kLand:
    case kLor:
    case kLxor:
      return (index + rank) % 3;
    default:
      return (index * 29 + rank * 53) & 127;
  }
}

// fill_T writes rank's elements; wrong_T returns the first index that is not the reduction of all ranks' elements.
// Elements are numbered from `begin`. With kNumOps the element is that of the rank alone.
#define DEFINE_TYPE(T, NAME, SCALE)                                                                                  \
  static T value_##NAME(long index, int rank, enum Op op, int is_signed) {                                           \
    return (T)(value_of(index, rank, op, is_signed) * (SCALE));                                                      \
  }                                                                                                                  \
  static T combine_##NAME(T a, T b, enum Op op) {                                                                    \
    switch (op) {                                                                                                    \
      case kSum:                                                                                                     \
        return (T)(a + b);                                                                                           \
      case kProd:                                                                                                    \
        return (T)(a * b);                                                                                           \
      case kMin:                                                                                                     \
        return a < b ? a : b;                                                                                        \
      case kMax:                                                                                                     \
        return a > b ? a : b;                                                                                        \
      case kLand:                                                                                                    \
        return (T)(a != 0 && b != 0);                                                                                \
      case kLor:                                                                                                     \
        return (T)(a != 0 || b != 0);                                                                                \
      case kLxor:                                                                                                    \
        return (T)((a != 0) != (b != 0));                                                                            \
      case kBand:                                                                                                    \
        return (T)((long)a & (long)b);                                                                               \
      case kBor:                                                                                                     \
        return (T)((long)a | (long)b);                                                                               \
      default:                                                                                                       \
        return (T)((long)a ^ (long)b);                                                                               \
    }                                                                                                                \
  }                                                                                                                  \
  static void fill_##NAME(void* to, long begin, long count, int rank, enum Op op, int is_signed) {                   \
    for (long i = 0; i < count; ++i) ((T*)to)[i] = value_##NAME(begin + i, rank, op, is_signed);                     \
  }                                                                                                                  \
  static long wrong_##NAME(const void* at, long begin, long count, int size, enum Op op, int is_signed) {            \
    for (long i = 0; i < count; ++i) {                                                                               \
      T result = value_##NAME(begin + i, 0, op, is_signed);                                                          \
      for (int r = 1; r < size; ++r) result = combine_##NAME(result, value_##NAME(begin + i, r, op, is_signed), op); \
      if (((const T*)at)[i] != result) return i;                                                                     \
    }                                                                                                                \
    return -1;                                                                                                       \
  }

DEFINE_TYPE(signed char, schar, 1)
DEFINE_TYPE(unsigned char, uchar, 1)
DEFINE_TYPE(short, short, 1)
DEFINE_TYPE(unsigned short, ushort, 1)
DEFINE_TYPE(int, int, 1)
DEFINE_TYPE(unsigned, unsigned, 1)
DEFINE_TYPE(long, long, 1)
DEFINE_TYPE(unsigned long, ulong, 1)
DEFINE_TYPE(float, float, 0.25F)
DEFINE_TYPE(double, double, 0.25)
DEFINE_TYPE(long double, ldouble, 0.25L)

struct Type {
  const char* name;
  MPI_Datatype type;
  size_t bytes;
  int is_signed;
  int ops;
  int is_ordinary;  ///< must be taken over
  void (*fill)(void*, long, long, int, enum Op, int);
  long (*wrong)(const void*, long, long, int, enum Op, int);
};

enum { kGuard = 64 };

/// `bytes` bytes and a guard behind them.
static char* guarded(size_t bytes) {
  char* out = malloc(bytes + kGuard);
  if (out == NULL) MPI_Abort(MPI_COMM_WORLD, 9);
  memset(out + bytes, 0x5a, kGuard);
  return out;
}
static void check_guard(char* buffer, size_t bytes, const char* what) {
  for (int i = 0; i < kGuard; ++i) {
    if (buffer[bytes + (size_t)i] != 0x5a) {
      expect(0, "%s: byte %d behind the buffer was written", what, i);
      return;
    }
  }
}

static MPI_Op mpi_op(enum Op op) {
  const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
  return ops[op];
}
/// Is this left to MPI, which does it in its own way?
static int is_deviation(const struct Type* t, enum Op op) {
  if (t->ops == kArithmetic && (op == kMin || op == kMax)) return 1;  // floating point: NaN and zeros
#ifdef OPEN_MPI
  return (op == kSum && t->bytes <= 2) || ((op == kMin || op == kMax) && !t->is_signed && t->bytes == 8);
#else
  return (op == kMin || op == kMax) && !t->is_signed;
#endif
}
static enum OpSet set_of(enum Op op) { return op <= kMax ? kArithmetic : op <= kLxor ? kLogical : kBits; }

static void check_reduction(const struct Type* t, enum Op op, int count, enum Collective collective, int in_place) {
  static const char* const kNames[] = {"MPI_Allreduce", "MPI_Iallreduce", "MPI_Reduce_scatter_block"};
  char what[160];
  snprintf(what, sizeof(what), "%s of %d %s, operator %d%s", kNames[collective], count, t->name, (int)op,
           in_place ? ", in place" : "");
  const int is_scatter = collective == kReduceScatterBlock;
  const long in_count = is_scatter ? (long)count * size_of_world : count;
  const size_t in_bytes = (size_t)in_count * t->bytes, out_bytes = (size_t)count * t->bytes;
  char* in = guarded(in_bytes);
  char* before = guarded(in_bytes);
  char* out = in_place ? in : guarded(out_bytes);
  t->fill(in, 0, in_count, rank_of_world, op, t->is_signed);
  memcpy(before, in, in_bytes);
  if (!in_place) memset(out, 0x33, out_bytes);
  const void* send = in_place ? MPI_IN_PLACE : in;
  int code = MPI_SUCCESS;
  if (collective == kAllreduce) {
    code = MPI_Allreduce(send, out, count, t->type, mpi_op(op), MPI_COMM_WORLD);
  } else if (is_scatter) {
    code = MPI_Reduce_scatter_block(send, out, count, t->type, mpi_op(op), MPI_COMM_WORLD);
  } else {
    MPI_Request request = MPI_REQUEST_NULL;
    code = MPI_Iallreduce(send, out, count, t->type, mpi_op(op), MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(request == MPI_REQUEST_NULL, "%s: the request lives on", what);
  }
  expect(code == MPI_SUCCESS, "%s: code %d", what, code);
  if (t->is_ordinary && !is_deviation(t, op)) ordinary_call(size_of_world, count);
  const long wrong =
      t->wrong(out, is_scatter ? (long)count * rank_of_world : 0, count, size_of_world, op, t->is_signed);
  expect(wrong < 0, "%s: element %ld is wrong", what, wrong);
  if (!in_place) expect(memcmp(in, before, in_bytes) == 0, "%s: the input was changed", what);
  check_guard(in, in_bytes, what);
  if (!in_place) check_guard(out, out_bytes, what);
  if (!in_place) free(out);
  free(in);
  free(before);
}

static void check_allgather(const struct Type* t, int count, int in_place) {
  char what[160];
  snprintf(what, sizeof(what), "MPI_Allgather of %d %s%s", count, t->name, in_place ? ", in place" : "");
  const size_t bytes = (size_t)count * t->bytes, all_bytes = bytes * (size_t)size_of_world;
  char* in = guarded(bytes);
  char* out = guarded(all_bytes);
  memset(out, 0x33, all_bytes);
  char* own = in_place ? out + bytes * (size_t)rank_of_world : in;
  t->fill(own, (long)count * rank_of_world, count, 0, kMax, t->is_signed);
  const int code = in_place ? MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, count, t->type, MPI_COMM_WORLD)
                            : MPI_Allgather(in, count, t->type, out, count, t->type, MPI_COMM_WORLD);
  expect(code == MPI_SUCCESS, "%s: code %d", what, code);
  if (t->is_ordinary) ordinary_call(size_of_world, count);
  // "All ranks" of one rank: its values are those of the whole vector.
  const long wrong = t->wrong(out, 0, (long)count * size_of_world, 1, kMax, t->is_signed);
  expect(wrong < 0, "%s: element %ld is wrong", what, wrong);
  check_guard(in, bytes, what);
  check_guard(out, all_bytes, what);
  free(in);
  free(out);
}

#define INTEGER(MPI_NAME, NAME, IS_SIGNED) \
  { #MPI_NAME, MPI_NAME, 0, IS_SIGNED, kArithmetic | kLogical | kBits, 1, fill_##NAME, wrong_##NAME }
#define FLOATING(MPI_NAME, NAME, ORDINARY) \
  { #MPI_NAME, MPI_NAME, 0, 1, kArithmetic, ORDINARY, fill_##NAME, wrong_##NAME }

/// The cases take turns: one in `one_in`, and of long vectors one in 16 times as many.
static int is_drawn(int one_in, int count) {
  static unsigned state = 1;
  state = state * 1664525U + 1013904223U;
  return (state >> 8) % (unsigned)(count > 1000 ? one_in * 16 : one_in) == 0;
}

static void check_type(const struct Type* t, int count, int one_in) {
  for (int in_place = 0; in_place < 2; ++in_place) {
    for (int op = 0; op < kNumOps; ++op) {
      if ((t->ops & (int)set_of((enum Op)op)) == 0) continue;
      for (int collective = 0; collective < kNumReductions; ++collective) {
        if (is_drawn(one_in, count)) check_reduction(t, (enum Op)op, count, (enum Collective)collective, in_place);
      }
    }
    if (is_drawn(one_in, count)) check_allgather(t, count, in_place);
  }
}

int main(int argc, char** argv) {
  start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
  struct Type types[] = {
      INTEGER(MPI_SIGNED_CHAR, schar, 1),
      INTEGER(MPI_UNSIGNED_CHAR, uchar, 0),
      INTEGER(MPI_SHORT, short, 1),
      INTEGER(MPI_UNSIGNED_SHORT, ushort, 0),
      INTEGER(MPI_INT, int, 1),
      INTEGER(MPI_UNSIGNED, unsigned, 0),
      INTEGER(MPI_LONG, long, 1),
      INTEGER(MPI_UNSIGNED_LONG, ulong, 0),
      INTEGER(MPI_LONG_LONG, long, 1),
      INTEGER(MPI_UNSIGNED_LONG_LONG, ulong, 0),
      INTEGER(MPI_INT8_T, schar, 1),
      INTEGER(MPI_UINT8_T, uchar, 0),
      INTEGER(MPI_INT16_T, short, 1),
      INTEGER(MPI_UINT16_T, ushort, 0),
      INTEGER(MPI_INT32_T, int, 1),
      INTEGER(MPI_UINT32_T, unsigned, 0),
      INTEGER(MPI_INT64_T, long, 1),
      INTEGER(MPI_UINT64_T, ulong, 0),
      FLOATING(MPI_FLOAT, float, 1),
      FLOATING(MPI_DOUBLE, double, 1),
      FLOATING(MPI_LONG_DOUBLE, ldouble, 0),
      {"MPI_BYTE", MPI_BYTE, 0, 0, kBits, 0, fill_uchar, wrong_uchar},
      {"MPI_AINT", MPI_AINT, 0, 1, kArithmetic, 0, fill_long, wrong_long},
      // Open MPI 4 takes it for unsigned.
      {"MPI_OFFSET", MPI_OFFSET, 0, 0, kArithmetic, 0, fill_long, wrong_long},
  };
  static const int kCounts[] = {0, 1, 2, 3, 7, 1000, 100003};
  enum { kNumTypes = sizeof(types) / sizeof(types[0]), kNumCounts = sizeof(kCounts) / sizeof(kCounts[0]) };
  const int one_in = argc > 1 ? atoi(argv[1]) : 1;
  for (int t = 0; t < kNumTypes; ++t) {
    int bytes = 0;
    MPI_Type_size(types[t].type, &bytes);
    types[t].bytes = (size_t)bytes;
    for (int c = 0; c < kNumCounts; ++c) {
      check_type(&types[t], kCounts[c], one_in);
    }
  }
  return end_mpi();
}
