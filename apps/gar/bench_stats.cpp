// What the columns of `gar bench` are made of.
#include "apps/gar/bench_stats.hpp"

#include <algorithm>
#include <cmath>

namespace gar::cli {

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Spread spread_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {quantile(seconds, 0.5), seconds.front(), seconds.back(), quantile(seconds, 0.1), quantile(seconds, 0.9)};
}

double algorithm_bandwidth(double bytes, double seconds) { return seconds > 0 ? bytes / seconds : 0; }

double bus_bandwidth(Collective collective, int num_ranks, double algbw) {
  const double share = static_cast<double>(num_ranks - 1) / static_cast<double>(num_ranks);
  return algbw * share * (collective == Collective::kAllReduce ? 2 : 1);
}

double prediction_error(double measured_s, double predicted_s) { return measured_s / predicted_s - 1; }

double geometric_mean(const std::vector<double>& ratios) {
  double sum = 0;
  for (const double ratio : ratios) sum += std::log(ratio);
  return ratios.empty() ? 1 : std::exp(sum / static_cast<double>(ratios.size()));
}

}  // namespace gar::cli
