// The AllReduce of the library below us (MPI's own), as one of the candidates that are measured.
#pragma once

#include <cstdint>
#include <string>

#include "gar/communicator.hpp"

namespace gar {

class NativeAllReduce {
 public:
  NativeAllReduce() = default;
  NativeAllReduce(const NativeAllReduce&) = delete;
  NativeAllReduce& operator=(const NativeAllReduce&) = delete;
  virtual ~NativeAllReduce() = default;

  /// "Open MPI 4.1.4"
  [[nodiscard]] virtual std::string library() const = 0;
  /// Can it run this? The same on all ranks that make the same call.
  [[nodiscard]] virtual bool takes(const CollectiveCall& call) const = 0;
  /// Is an AllReduce complete when start() returns? The same on all ranks.
  [[nodiscard]] virtual bool is_blocking() const = 0;
  /// Begins an AllReduce. Where no other operation of ours has to go on meanwhile, it is complete when this returns.
  /// Throws TransportError.
  virtual void start(const CollectiveCall& call) = 0;
  /// Is it complete? Throws TransportError.
  virtual bool test() = 0;
};

}  // namespace gar
