// What the columns of `gar bench` are made of.
#pragma once

#include <vector>

#include "gar/plan.hpp"

namespace gar::cli {

/// Seconds of the timed iterations.
struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
  double p10 = 0;  ///< a tenth of the iterations was at most this
  double p90 = 0;
};
/// `seconds` is not empty.
Spread spread_of(std::vector<double> seconds);
/// Linear between the neighbours in order; share 0 is the smallest, 1 the largest.
double quantile(const std::vector<double>& sorted, double share);

/// Bytes per second: algbw is the vector over the time; busbw what the busiest link of a bandwidth-optimal algorithm
/// carries, 2 (n-1)/n of that for AllReduce and (n-1)/n for ReduceScatter and AllGather.
double algorithm_bandwidth(double bytes, double seconds);
double bus_bandwidth(Collective collective, int num_ranks, double algbw);

/// measured / predicted - 1.
double prediction_error(double measured_s, double predicted_s);
/// Of ratios; 1 for none.
double geometric_mean(const std::vector<double>& ratios);

}  // namespace gar::cli
