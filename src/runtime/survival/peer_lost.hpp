// The error that says that a peer may be lost: it has died, left, given up, or been silent for too long. Survivors can
// go on after it, where everything else that goes wrong in a transport is a defect of the program.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gar/errors.hpp"

namespace gar {

class PeerLost final : public TransportError {
 public:
  /// `silent`: ranks from which nothing has come for the time limit, or that cannot be reached.
  explicit PeerLost(const std::string& text, std::vector<int> silent = {})
      : TransportError(text), silent_(std::move(silent)) {}
  [[nodiscard]] const std::vector<int>& silent() const { return silent_; }

 private:
  std::vector<int> silent_;
};

}  // namespace gar
