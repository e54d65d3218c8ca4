// One operation of an engine while it runs.
#pragma once

#include <optional>
#include <vector>

#include "runtime/engine.hpp"

namespace gar {

/// Can be carried on a little at a time.
class Engine::Running {
 public:
  /// Begins the operation. Throws TransportError when the transport has failed before.
  Running(Engine& engine, const CollectiveCall& call, const Path& path, std::optional<Stream> stream = std::nullopt);
  /// Does what can be done now. True when the operation is complete, as far as the caller wants to wait.
  bool advance();

 private:
  /// The latency path.
  bool advance_exchange();
  /// On a device: one rank, no elements, or a library's own collectives.
  bool advance_without_plan(DeviceSide& device);

  Engine& engine_;
  CollectiveCall call_;
  std::shared_ptr<const Schedule> schedule_;
  Signature signature_;
  Operands operands_;
  std::optional<Execution> execution_;
  std::vector<const std::byte*> exchanged_;  ///< of every rank, on the latency path
  bool has_met_ = false;
};

}  // namespace gar
