// MPI's types and operators in the runtime's terms.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "gar/reduction.hpp"

namespace gar::preload {

/// A type and an operator of MPI's.
struct Elements {
  int entry = 0;  ///< the type's place in our table of them
  DataType type = DataType::kFloat32;
  int num_parts = 1;  ///< 2: a complex number, which is added part by part
  ReduceOp op = ReduceOp::kSum;
};

/// Nothing where the runtime cannot do what MPI defines for the two: then the MPI library does it, or says that it is
/// an error.
std::optional<Elements> elements_of(MPI_Datatype type, MPI_Op op);

/// Is this one of the basic types that we know by their handles?
bool is_basic(MPI_Datatype type);

/// What the MPI library combines in another way than gar does, which combines integers by two's complement, unsigned
/// numbers as unsigned, and finds NaN the least and the greatest of all numbers, and -0 less than +0. Open MPI 4.1
/// saturates sums of short integers, but only where it uses vector instructions; MPICH 4.0 compares unsigned ones as
/// signed; of NaN and another number, or of two zeros, both give the one or the other, by their places. Sums and
/// products of floating-point numbers are none of this: they differ by rounding, and in whose NaN it is.
class Deviations {
 public:
  static constexpr std::size_t kMostEntries = 64;
  void add(const Deviations& other);
  void add(int entry, ReduceOp op);
  [[nodiscard]] bool has(const Elements& elements) const;

 private:
  std::array<std::uint16_t, kMostEntries> ops_{};  ///< of every type of our table, a bit for each operator
};

/// Tries all of them with MPI_Reduce_local, on this machine.
Deviations find_deviations();
/// "the max of MPI_UINT8_T: MPICH 4.0.2 makes 1 of 255 and 1, where 255 is right"; `library` is the MPI library's name.
std::string describe_deviation(const Elements& elements, const std::string& library);

/// One of MPI's own operators, other than MINLOC, MAXLOC, REPLACE and NO_OP.
std::optional<ReduceOp> op_of(MPI_Op op);

}  // namespace gar::preload
