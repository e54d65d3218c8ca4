// The paper's measurements, as read from the coordinates of its figures and the cells of its tables. The same numbers
// are in data/paper, as files for `gar fit`.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "gar/fit.hpp"
#include "gar/topology.hpp"

namespace gar::cli {

/// The vector of Figures fig:costmodel, fig:breakdown and fig:model_five and of Table tab:gentreereal, in floats.
inline constexpr double kPaperSize = 1e8;
/// 4 bytes at 10 Gbit/s, the links of the paper's testbed; seconds per float.
inline constexpr double kPaperBeta = 32.0 / 10e9;

/// Figure fig:calc: x vectors of 1.5e8 floats each are reduced at once.
struct PaperCalc {
  static constexpr double kCount = 1.5e8;
  static constexpr int kMinFanIn = 2;
  std::array<double, 15> ms_per_add;  ///< T / (x - 1) for x = 2 ... 16
  [[nodiscard]] double seconds(int x) const {
    return 1e-3 * ms_per_add[static_cast<std::size_t>(x - kMinFanIn)] * (x - 1);
  }
};
const PaperCalc& paper_calc_cpu();
const PaperCalc& paper_calc_gpu();
Measurements calc_measurements(const PaperCalc& points);

/// Figure fig:incast: a mesh of x servers in which everyone receives 2e7 floats.
struct PaperIncast {
  static constexpr double kReceived = 2e7;
  /// The figure leaves the time without incast out; 10 Gbit/s without latency is assumed.
  static constexpr double kBaseSeconds = kReceived * kPaperBeta;
  std::int64_t servers;
  double extra_s;
  double pause_frames;
};
std::span<const PaperIncast> paper_incast();
/// As AllGathers with cps.
Measurements incast_measurements();

/// A bar of Figure fig:costmodel, in seconds.
struct PaperBar {
  std::int64_t servers;
  const char* algorithm;
  double measured;
  double genmodel;
  double abc;
};
std::span<const PaperBar> paper_costmodel();
Measurements costmodel_measurements();

/// Bars of Figure fig:breakdown, 12 servers, in seconds.
struct PaperBreakdown {
  const char* algorithm;
  double communication_10g;
  double calculation_10g;
  double communication_100g;
  double calculation_100g;
};
std::span<const PaperBreakdown> paper_breakdown();

/// The servers of Figure fig:costmodel below their switch. One parameter set explains all predicted bars of both
/// models: alpha = 4.0e-3 s per path, 2 beta + gamma = 6.6164e-9, delta = 3.892e-10, epsilon = 1.0615e-10 s per float,
/// w_t = 9 with w = N. Only 2 beta + gamma can be told from CPS measurements (Section 3.4), so beta follows from the
/// 10 Gbit/s of the links.
Topology paper_testbed(std::int64_t servers);

}  // namespace gar::cli
