// Medians, quantiles and means of measured values.
#pragma once

#include <vector>

#include "gar/language.hpp"

namespace gar {

/// The value in the middle, or the mean of the two in the middle; 0 when there are none.
double median(std::vector<double> values);
/// Linear between the neighbours in order; share 0 is the smallest, 1 the largest. `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double share);

/// Seconds of the timed iterations.
struct Spread {
  double median = 0;  ///< half of the iterations took at most this
  double min = 0;     ///< the fastest
  double max = 0;     ///< the slowest
  double p10 = 0;     ///< a tenth of the iterations took at most this
  double p90 = 0;     ///< nine tenths of the iterations took at most this
};
/// Median, extremes and deciles. Precondition: `seconds` is not empty.
Spread spread_of(std::vector<double> seconds);

/// The geometric mean of some ratios; 1 when there are none.
double geometric_mean(const std::vector<double>& ratios);

}  // namespace gar
