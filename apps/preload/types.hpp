// MPI's types and operators in the runtime's terms.
#pragma once

#include <mpi.h>

#include <optional>

#include "gar/reduction.hpp"

namespace gar::preload {

struct Elements {
  DataType type = DataType::kFloat32;
  int num_parts = 1;  ///< 2: a complex number, which is added part by part
  ReduceOp op = ReduceOp::kSum;
};

/// Nothing where the runtime cannot do what MPI defines for the two: then the MPI library does it, or says that it is
/// an error.
std::optional<Elements> elements_of(MPI_Datatype type, MPI_Op op);

/// One of MPI's own operators, other than MINLOC, MAXLOC, REPLACE and NO_OP.
std::optional<ReduceOp> op_of(MPI_Op op);

}  // namespace gar::preload
