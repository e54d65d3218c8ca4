// Watching a simulation.
#include "apps/gar/views/simulate_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "apps/gar/cli/interrupt.hpp"
#include "apps/gar/cli/output.hpp"

namespace gar::cli {
namespace {

constexpr double kNotable = 30;  // seconds
constexpr ProgressPace kSimulationPace{std::chrono::milliseconds(500), std::chrono::milliseconds(100)};

}  // namespace

SimulationWatch::SimulationWatch(std::string what, bool has_jitter)
    : what_(std::move(what)), has_jitter_(has_jitter), line_(kSimulationPace) {}

bool SimulationWatch::go_on(const SimulationProgress& progress) {
  if (is_interrupted()) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!begun_) {
    begun_ = now;
    if (progress.estimate_s > kNotable) {
      print_progress(fmt::format(
          "{}: {:.3g} messages one by one, up to about {}; {}", what_, progress.flows,
          format_seconds(progress.estimate_s),
          has_jitter_ ? "without --jitter only one of each class is simulated" : "less where many are alike"));
    }
  }
  if (line_.is_due()) {
    const double share = progress.flows > 0 ? std::min(progress.flows_done / progress.flows, 1.0) : 0;
    line_.show(fmt::format("{}: {:.0f}% of {:.3g} messages, {} simulated{} (Ctrl-C ends it)", what_, 100 * share,
                           progress.flows, format_seconds(progress.seconds),
                           time_left(std::chrono::duration<double>(now - *begun_).count(), share)));
  }
  return true;
}

}  // namespace gar::cli
