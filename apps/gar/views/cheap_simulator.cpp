#include "apps/gar/views/cheap_simulator.hpp"

#include <fmt/format.h>

#include <cmath>

#include "gar/errors.hpp"
#include "gar/format.hpp"

namespace gar::cli {
namespace {

constexpr std::int64_t kMostServers = 512;
constexpr double kMostMessages = 5000;         // one by one
constexpr std::int64_t kMostMoments = 20'000;  // of all plans together
constexpr double kNotableDifference = 0.2;     // of the simulator's time from the model's

}  // namespace

CheapSimulator::CheapSimulator(const Topology& topology, double size_floats, const ModelOptions& model)
    : topology_(topology), size_(size_floats) {
  options_.model = model.kind;
  options_.degree = model.degree;
  options_.keep_path = false;
  options_.clock = [this] { return static_cast<double>(++moments_); };  // so that progress is called every time
  options_.progress = [this](const SimulationProgress& progress) {
    const bool has_classes = progress.estimate_s == 0;
    return moments_ <= kMostMoments && (has_classes || progress.flows <= kMostMessages);
  };
}

std::optional<double> CheapSimulator::seconds_of(const Plan& plan) {
  if (topology_.num_servers() > kMostServers) return std::nullopt;
  try {
    const Simulation simulation = simulate(plan, topology_, size_, options_);
    if (simulation.is_complete) return simulation.seconds;
  } catch (const Error&) {
    // What cannot be simulated (numbers beyond all bounds) can still be predicted.
  }
  return std::nullopt;
}

std::string CheapSimulator::doubt_words(const Plan& plan, double predicted_seconds) {
  if (predicted_seconds <= 0) return "";
  const std::optional<double> seconds = seconds_of(plan);
  const double difference = seconds ? *seconds / predicted_seconds - 1 : 0;
  if (std::abs(difference) <= kNotableDifference) return "";
  return fmt::format("{}, {} {} than predicted", format_seconds(*seconds), format_percent(std::abs(difference)),
                     difference < 0 ? "less" : "more");
}

}  // namespace gar::cli
