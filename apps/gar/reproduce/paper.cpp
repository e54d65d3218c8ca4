// The paper's measurements.
#include "apps/gar/reproduce/paper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>

#include "apps/gar/reproduce/paper_text.hpp"
#include "gar/algorithms.hpp"
#include "gar/profile_io.hpp"

namespace gar::cli {
namespace {

/// What the paper predicts for the bars of Figure fig:costmodel, in the order of data/paper/costmodel.json.
struct Predicted {
  std::int64_t servers;
  const char* algorithm;
  double genmodel;
  double abc;
};
constexpr Predicted kPredicted[] = {
    {12, "ring", 0.805, 0.69450333},
    {12, "hcps:2x6", 0.702, 0.62250333},
    {12, "hcps:3x4", 0.69, 0.62250333},
    {12, "hcps:4x3", 0.682, 0.62250333},
    {12, "hcps:6x2", 0.679, 0.62250333},
    {12, "cps", 0.718, 0.61450333},
    {15, "ring", 0.85, 0.729530666666667},
    {15, "hcps:3x5", 0.7, 0.633530666666667},
    {15, "hcps:5x3", 0.685, 0.633530666666667},
    {15, "cps", 0.785, 0.625530666666667},
};

constexpr PaperBreakdown kBreakdown[] = {
    {"ring", 0.660933, 0.087144, 0.130613, 0.087},
    {"hcps:2x6", 0.5754909, 0.0645091, 0.1181375, 0.064774},
    {"hcps:3x4", 0.5760999, 0.0539001, 0.117556, 0.058483217},
    {"hcps:4x3", 0.5713501, 0.0486499, 0.118159, 0.0500399},
    {"hcps:6x2", 0.5769914, 0.0430086, 0.119825833, 0.043595283},
    {"cps", 0.6261722, 0.0338278, 0.128188, 0.0340864},
};

}  // namespace

Measurements paper_measurements(std::string_view name) {
  return parse_measurements(paper_text(name), fmt::format("data/paper/{}.json", name));
}

PaperIncast incast_point(const Observation& mesh) {
  // The figure shows the extra time in whole milliseconds, the file its sum with the assumed rest.
  const double extra_s = std::round(1e3 * (mesh.seconds.front() - PaperIncast::kBaseSeconds)) / 1e3;
  return {static_cast<std::int64_t>(mesh.servers.size()), extra_s, mesh.pause_frames};
}

std::vector<PaperBar> paper_costmodel() {
  std::vector<PaperBar> out;
  for (const Observation& bar : paper_measurements("costmodel").observations) {
    const auto servers = static_cast<std::int64_t>(bar.servers.size());
    const std::string algorithm = to_string(bar.algorithm);
    const auto* predicted = std::find_if(std::begin(kPredicted), std::end(kPredicted), [&](const Predicted& one) {
      return one.servers == servers && one.algorithm == algorithm;
    });
    if (predicted == std::end(kPredicted)) throw std::logic_error("data/paper/costmodel.json has a bar too many");
    out.push_back({servers, algorithm, bar.seconds.front(), predicted->genmodel, predicted->abc});
  }
  return out;
}

std::span<const PaperBreakdown> paper_breakdown() { return kBreakdown; }

Topology paper_testbed(std::int64_t servers) {
  constexpr double kPathAlpha = 4.0e-3;
  PaperParams params;
  params.alpha = kPathAlpha / 3;
  params.server_link = {kPaperBeta, 1.0615e-10, 9};
  params.server = {6.6164e-9 - 2 * kPaperBeta, 3.892e-10};
  return make_tree({servers}, params);
}

}  // namespace gar::cli
