// The exceptions of the library. Applications turn them into messages and exit codes.
#pragma once

#include <stdexcept>
#include <string>

#include "gar/language.hpp"

namespace gar {

/// Base of everything the library throws; `what()` says what is wrong, where, and what is expected.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file that cannot be read, or whose content is not what the format allows.
class ParseError : public Error {
 public:
  using Error::Error;
};

/// A value that a function or a flag does not accept.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// Text that a person typed and that makes no sense: a flag, a size such as "400MX".
class UsageError : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

/// A plan that is malformed, or does not fit the topology that it is used with.
class PlanError : public Error {
 public:
  using Error::Error;
};

/// A transport that failed while a plan was running.
class TransportError : public Error {
 public:
  using Error::Error;
};

/// A GPU that cannot do what is asked of it: no driver, no memory. A communicator stays usable: the operation has begun
/// on no rank, and all ranks are told (on a caller's communicator of NCCL: this one alone).
class DeviceError : public Error {
 public:
  using Error::Error;
};

}  // namespace gar
