// Watching a simulation.
#include "apps/gar/views/simulate_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/gar/cli/interrupt.hpp"
#include "apps/gar/cli/output.hpp"

namespace gar::cli {
namespace {

constexpr ProgressPace kSimulationPace{std::chrono::milliseconds(500), std::chrono::milliseconds(100)};

}  // namespace

SimulationWatch::SimulationWatch(std::string what) : what_(std::move(what)), line_(kSimulationPace) {}

bool SimulationWatch::go_on(const SimulationProgress& progress) {
  if (is_interrupted()) return false;
  if (line_.is_due()) {
    const double share = progress.flows > 0 ? std::min(progress.flows_done / progress.flows, 1.0) : 0;
    line_.show(fmt::format("{}: {:.0f}% of {:.3g} messages, {} simulated (Ctrl-C ends it)", what_, 100 * share,
                           progress.flows, format_seconds(progress.seconds)));
  }
  return true;
}

}  // namespace gar::cli
