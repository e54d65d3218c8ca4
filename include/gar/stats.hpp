// Medians, quantiles and means.
#pragma once

#include <vector>

namespace gar {

/// How the seconds of the timed iterations are spread.
struct Spread {
  double median = 0;  ///< half of the iterations took at most this
  double min = 0;     ///< the fastest
  double max = 0;     ///< the slowest
  double p10 = 0;     ///< a tenth of the iterations took at most this
  double p90 = 0;     ///< nine tenths of the iterations took at most this
};
/// Median, extremes and deciles. Precondition: `seconds` is not empty.
Spread spread_of(std::vector<double> seconds);
/// The value below which `share` of the sorted values lie, linear between neighbours: 0 is the smallest, 1 the largest.
/// Precondition: `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double share);

/// The geometric mean of some ratios; 1 when there are none.
double geometric_mean(const std::vector<double>& ratios);

}  // namespace gar
