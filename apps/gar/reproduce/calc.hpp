// What the two ways of measuring Figure `fig:calc`, on the CPU and on a GPU, share.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "apps/gar/reproduce/json_output.hpp"
#include "apps/gar/reproduce/paper.hpp"
#include "gar/fit.hpp"

namespace gar::cli {

inline constexpr int kMaxCalcFanIn = 16;
/// Of the time per add, x = 16 against x = 2: what is accepted.
inline constexpr double kMaxCalcRatio = 0.45;

/// Times of reductions of x vectors.
struct CalcSeries {
  std::array<double, kMaxCalcFanIn + 1> seconds{};  ///< [x]
  [[nodiscard]] double per_add(int x) const { return seconds[static_cast<std::size_t>(x)] / (x - 1); }
  [[nodiscard]] double ratio() const { return per_add(kMaxCalcFanIn) / per_add(2); }
};
CalcSeries series_of(const PaperCalc& points);

/// T / (x - 1) = slope / (x - 1) + offset.
struct CalcFit {
  double delta = 0, gamma = 0;  ///< seconds per float
  double r2 = 0;
  [[nodiscard]] Json json() const;
  [[nodiscard]] std::string text() const;
};
/// By least squares, for vectors of `count` floats.
CalcFit fit_calc(const CalcSeries& series, double count);

/// What `gar fit` says about the same points; it allows no negative parameter, and says so.
struct CalcProfile {
  Profile profile;
  [[nodiscard]] Json json() const;
  /// `which` begins every line.
  [[nodiscard]] std::string text(const char* which) const;
};
/// As calc_measurements, of vectors of `count` floats.
Measurements calc_measurements(const CalcSeries& series, double count);

}  // namespace gar::cli
