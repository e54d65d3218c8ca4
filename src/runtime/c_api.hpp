// What the files of the C interface share: the objects behind the opaque types, and the border that no exception
// crosses.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "gar/communicator.hpp"
#include "gar/gar.h"
#include "gar/reduction.hpp"

// NOLINTBEGIN(readability-identifier-naming): the names of gar.h
struct gar_comm {
  gar::Communicator communicator;
  std::shared_ptr<void> store{};  ///< the communicator's, where it needs it later
};

struct gar_request {
  gar::Request request;
};
// NOLINTEND(readability-identifier-naming)

namespace gar::c_api {

/// Keeps the message of the exception that is being handled for gar_last_error; returns its code.
gar_status status_of_current_exception() noexcept;

/// Runs body(function) and turns what it throws into a code. `function` is the name for messages.
template <class Body>
gar_status guarded(const char* function, Body&& body) noexcept {
  try {
    std::forward<Body>(body)(function);
    return GAR_OK;
  } catch (...) {
    return status_of_current_exception();
  }
}

/// Throws InvalidArgument "`function`: `message`".
void require(bool condition, const char* function, const std::string& message);

/// What the processes of a host need to find each other. Throws InvalidArgument.
void require_name(const char* name, gar_comm** comm, const char* function);

/// Throw InvalidArgument in the name of `function`.
Communicator& communicator_of(gar_comm* comm, const char* function);
DataType checked_type(gar_type type, const char* function);
ReduceOp checked_op(gar_op op, const char* function);

/// Where this rank's block begins in a vector of blocks, for GAR_IN_PLACE. A count that the engine refuses, because no
/// memory is as large, gives the beginning of the vector.
const void* block_in(const void* vector, std::int64_t count, DataType type, int rank);

/// NULL: the defaults. Reads the files that the options name.
CommunicatorOptions communicator_options(const gar_options* options, const char* function);

/// What gar_reduce and gar_cuda_reduce are given, and what is left to say once it has been checked.
struct ReduceArguments {
  gar_type type;
  gar_op op;
  const void* out;
  const void* const* operands;
  int num_operands;
  std::int64_t count;
};
struct Reduction {
  DataType type;
  ReduceOp op;
  std::span<const void* const> operands;
};
/// Throws InvalidArgument.
Reduction checked_reduction(const ReduceArguments& given, const char* function);

}  // namespace gar::c_api
