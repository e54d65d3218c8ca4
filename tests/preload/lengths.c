// A result does not depend on who computes it, whatever the length of the vector: all integers and operators, with
// numbers that overflow and unsigned ones above the signed range, and minima and maxima of floating-point numbers, NaN
// and both zeros among them, in a short vector and in a long one.
//   lengths FILE [SKIPPED]: writes the results into a file, which must be the same with and without a library
#include <math.h>
#include <stdint.h>

#include "plain_mpi.h"

enum { kShort = 3, kLong = 4096 };

static const struct {
  const char* name;
  MPI_Datatype type;
} kTypes[] = {
    {"MPI_FLOAT", MPI_FLOAT},
    {"MPI_DOUBLE", MPI_DOUBLE},
    {"MPI_INT8_T", MPI_INT8_T},
    {"MPI_UINT8_T", MPI_UINT8_T},
    {"MPI_INT16_T", MPI_INT16_T},
    {"MPI_UINT16_T", MPI_UINT16_T},
    {"MPI_INT32_T", MPI_INT32_T},
    {"MPI_UINT32_T", MPI_UINT32_T},
    {"MPI_INT64_T", MPI_INT64_T},
    {"MPI_UINT64_T", MPI_UINT64_T},
    {"MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR},
    {"MPI_UNSIGNED", MPI_UNSIGNED},
    {"MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG},
    {"MPI_SIGNED_CHAR", MPI_SIGNED_CHAR},
};
static const struct {
  const char* name;
  MPI_Op op;
} kOps[] = {
    {"MPI_SUM", MPI_SUM}, {"MPI_PROD", MPI_PROD}, {"MPI_MIN", MPI_MIN}, {"MPI_MAX", MPI_MAX}, {"MPI_BXOR", MPI_BXOR}};

static unsigned char in[kLong * 8], out[kLong * 8];

static uint64_t hash_of(const unsigned char* bytes, size_t count) {
  uint64_t hash = 14695981039346656037U;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * 1099511628211U;
  return hash;
}

static int is_float(MPI_Datatype type) { return type == MPI_FLOAT || type == MPI_DOUBLE; }

static void fill(MPI_Datatype type) {
  for (size_t i = 0; i < sizeof(in); ++i) in[i] = (unsigned char)((i * 2654435761U >> 7) + (size_t)rank_of_world * 97);
  if (!is_float(type)) return;
  for (int i = 0; i < kLong; ++i) {
    double value = (i * 31 + rank_of_world * 17) % 101 - 50;
    if (i % 3 == 0 && i / 3 % size_of_world == rank_of_world) value = NAN;
    if (i % 3 == 1) value = i / 3 % size_of_world == rank_of_world ? -0.0 : 0.0;
    if (type == MPI_FLOAT) {
      const float narrow = (float)value;
      memcpy(in + (size_t)i * sizeof(narrow), &narrow, sizeof(narrow));
    } else {
      memcpy(in + (size_t)i * sizeof(value), &value, sizeof(value));
    }
  }
}

int main(int argc, char** argv) {
  start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
  FILE* lines = rank_of_world == 0 && argc > 1 ? fopen(argv[1], "w") : NULL;
  for (size_t t = 0; t < sizeof(kTypes) / sizeof(kTypes[0]); ++t) {
    int bytes = 0;
    MPI_Type_size(kTypes[t].type, &bytes);
    fill(kTypes[t].type);
    for (size_t o = 0; o < sizeof(kOps) / sizeof(kOps[0]); ++o) {
      // Other operators are not defined, or round.
      if (is_float(kTypes[t].type) && kOps[o].op != MPI_MIN && kOps[o].op != MPI_MAX) continue;
      for (int count = kShort; count <= kLong; count += kLong - kShort) {
        MPI_Request request = MPI_REQUEST_NULL;
        memset(out, 0, sizeof(out));
        MPI_Allreduce(in, out, count, kTypes[t].type, kOps[o].op, MPI_COMM_WORLD);
        const uint64_t blocking = hash_of(out, (size_t)(bytes * count));
        memset(out, 0, sizeof(out));
        MPI_Iallreduce(in, out, count, kTypes[t].type, kOps[o].op, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        const uint64_t nonblocking = hash_of(out, (size_t)(bytes * count));
        if (lines != NULL) {
          fprintf(lines, "%s %s %d: %016llx %016llx\n", kTypes[t].name, kOps[o].name, count,
                  (unsigned long long)blocking, (unsigned long long)nonblocking);
        }
      }
    }
  }
  if (lines != NULL) fclose(lines);
  return end_mpi();
}
