// The paper's measurements, as read from the coordinates of its figures and the cells of its tables. What `gar fit` can
// read lies in data/paper and nowhere else; the program carries those files within itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gar/fit.hpp"
#include "gar/topology.hpp"

namespace gar::cli {

/// The vector of Figures fig:costmodel, fig:breakdown and fig:model_five and of Table tab:gentreereal, in floats.
inline constexpr double kPaperSize = 1e8;
/// 4 bytes at 10 Gbit/s, the links of the paper's testbed; seconds per float.
inline constexpr double kPaperBeta = 32.0 / 10e9;

/// The measurements in a file of data/paper, by its name without the ending: "calc-cpu", "calc-gpu", "incast",
/// "costmodel".
Measurements paper_measurements(std::string_view name);

/// A point of Figure fig:incast: a mesh of x servers in which everyone receives 2e7 floats.
struct PaperIncast {
  /// The figure leaves the time without incast out; 10 Gbit/s without latency is assumed.
  static constexpr double kBaseSeconds = 2e7 * kPaperBeta;
  std::int64_t servers;
  double extra_s;
  double pause_frames;
};
PaperIncast incast_point(const Observation& mesh);

/// A bar of Figure fig:costmodel, in seconds.
struct PaperBar {
  std::int64_t servers;
  std::string algorithm;
  double measured;
  double genmodel;
  double abc;
};
std::vector<PaperBar> paper_costmodel();

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
