// Why a simulation and a prediction differ, in words.
#pragma once

#include <string>

#include "gar/model.hpp"

namespace gar::cli {

/// How the simulation was run, as far as it explains differences.
struct RunKind {
  bool has_chunks = false;
  bool barrier = false;
};

/// Which terms make the difference between the model's terms and those of the simulated critical path, largest first,
/// and where each comes from: "incast -40%: senders finish at different times, so fewer of them share a link".
std::string why_simulated_differs(const Terms& predicted, const Terms& simulated, const RunKind& kind);

/// Which terms grew when something was wrong with the network: "link time +1.2 s, incast +80 ms".
std::string what_grew(const Terms& without, const Terms& with);

}  // namespace gar::cli
