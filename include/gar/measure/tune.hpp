// Measures all ways of running an AllReduce for some sizes at once, and keeps what was found (gar tune).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gar/decisions.hpp"
#include "gar/measure/bench_config.hpp"
#include "gar/measure/world.hpp"

namespace gar::measure {

/// What is measured, and on which ranks.
struct TuneConfig : RankOptions {
  std::vector<std::int64_t> sizes;     ///< bytes; one for each size class is enough
  std::int64_t most_calls = 2000;      ///< for a size, when the candidates stay too close to tell
  DataType type = DataType::kFloat32;  ///< element type
  std::optional<Topology> topology;    ///< the network; nothing: it is measured
};

/// What came of it.
struct TuneOutcome {
  Decisions found;             ///< on rank 0
  std::string problem;         ///< on rank 0: why the decisions are not kept; empty: they are
  std::int64_t num_wrong = 0;  ///< elements with wrong results, over all ranks
  bool is_complete = true;     ///< false: a rank was asked to stop
};

/// Who is told what happens, on rank 0.
struct TuneWatch {
  std::function<void(const Decision&)> on_decision;     ///< a size is done; may be empty
  std::function<void(const std::string&)> on_progress;  ///< may be empty
};

/// Collective. Every candidate of the model, and the MPI library's own AllReduce where there is one, takes turns until
/// the fastest is known; what was found is kept for later jobs. Earlier decisions for these sizes are not believed.
TuneOutcome run_tune(World& world, const TuneConfig& config, const TuneWatch& watch);

}  // namespace gar::measure
