// The paper's measurements.
#include "apps/gar/reproduce/paper.hpp"

#include <fmt/format.h>

#include <numeric>

#include "gar/algorithms.hpp"

namespace gar::cli {
namespace {

constexpr PaperCalc kCalcCpu = {{56, 35, 26, 22, 19.6, 18.5, 17.71428571, 17, 17.22222222, 16.3, 16.18181818,
                                 16.41666667, 15.69230769, 15.14285714, 15.46666667}};
constexpr PaperCalc kCalcGpu = {{8, 5.5, 4.333333333, 4, 3.8, 3.666666667, 3.571428571, 3.375, 3.333333333, 3.3,
                                 3.272727273, 3.166666667, 3.153846154, 3.142857143, 3.066666667}};

// The right axis is in seconds, the left one in units of 1e4 pause frames.
constexpr PaperIncast kIncast[] = {
    {6, 0, 0},        {7, 0, 0},          {8, 0, 0},          {9, 0, 0},         {10, 0.005, 1.8e4},
    {11, 0.023, 4e4}, {12, 0.052, 6.2e4}, {13, 0.08, 9.05e4}, {14, 0.1, 11.9e4}, {15, 0.13, 15e4},
};

constexpr PaperBar kBars[] = {
    {12, "ring", 0.8, 0.805, 0.69450333},
    {12, "hcps:2x6", 0.7, 0.702, 0.62250333},
    {12, "hcps:3x4", 0.6805, 0.69, 0.62250333},
    {12, "hcps:4x3", 0.68, 0.682, 0.62250333},
    {12, "hcps:6x2", 0.6705, 0.679, 0.62250333},
    {12, "cps", 0.7, 0.718, 0.61450333},
    {15, "ring", 0.84, 0.85, 0.729530666666667},
    {15, "hcps:3x5", 0.7, 0.7, 0.633530666666667},
    {15, "hcps:5x3", 0.685, 0.685, 0.633530666666667},
    {15, "cps", 0.78, 0.785, 0.625530666666667},
};

constexpr PaperBreakdown kBreakdown[] = {
    {"ring", 0.660933, 0.087144, 0.130613, 0.087},
    {"hcps:2x6", 0.5754909, 0.0645091, 0.1181375, 0.064774},
    {"hcps:3x4", 0.5760999, 0.0539001, 0.117556, 0.058483217},
    {"hcps:4x3", 0.5713501, 0.0486499, 0.118159, 0.0500399},
    {"hcps:6x2", 0.5769914, 0.0430086, 0.119825833, 0.043595283},
    {"cps", 0.6261722, 0.0338278, 0.128188, 0.0340864},
};

std::vector<std::int64_t> first_servers(std::int64_t count) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

Measurements below_one_switch(std::int64_t servers, std::string figure) {
  Measurements out{topology_from_spec(fmt::format("star:{}", servers)), 0, {}, {}, {}};
  out.provenance.command = std::move(figure);
  out.provenance.num_ranks = servers;
  return out;
}

}  // namespace

const PaperCalc& paper_calc_cpu() { return kCalcCpu; }
const PaperCalc& paper_calc_gpu() { return kCalcGpu; }

Measurements calc_measurements(const PaperCalc& points) {
  Measurements out = below_one_switch(1, "Figure fig:calc of the paper");
  for (std::size_t i = 0; i < points.ms_per_add.size(); ++i) {
    const int x = PaperCalc::kMinFanIn + static_cast<int>(i);
    Observation o;
    o.kind = ObservationKind::kReduction;
    o.servers = first_servers(1);
    o.size_floats = PaperCalc::kCount;
    o.fan_in = x;
    o.seconds = {points.seconds(x)};
    out.observations.push_back(std::move(o));
  }
  return out;
}

std::span<const PaperIncast> paper_incast() { return kIncast; }

Measurements incast_measurements() {
  Measurements out = below_one_switch(15, "Figure fig:incast of the paper");
  for (const PaperIncast& point : kIncast) {
    const auto x = static_cast<double>(point.servers);
    Observation o;
    o.collective = Collective::kAllGather;
    o.algorithm = parse_algorithm("cps");
    o.servers = first_servers(point.servers);
    o.size_floats = PaperIncast::kReceived * x / (x - 1);
    o.seconds = {PaperIncast::kBaseSeconds + point.extra_s};
    o.pause_frames = point.pause_frames;
    out.observations.push_back(std::move(o));
  }
  return out;
}

std::span<const PaperBar> paper_costmodel() { return kBars; }

Measurements costmodel_measurements() {
  Measurements out = below_one_switch(15, "Figure fig:costmodel of the paper");
  for (const PaperBar& bar : kBars) {
    Observation o;
    o.algorithm = parse_algorithm(bar.algorithm);
    o.servers = first_servers(bar.servers);
    o.size_floats = kPaperSize;
    o.seconds = {bar.measured};
    out.observations.push_back(std::move(o));
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
