// Bytes that a plan moves through memory.
#include "measure/bench/bound.hpp"

#include <algorithm>
#include <vector>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"

namespace gar::measure {
namespace {

/// Units that at least one of the intervals covers.
std::int64_t covered(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::int64_t units = 0;
  std::int64_t end = 0;
  for (const Interval& one : intervals) {
    units += std::max<std::int64_t>(one.end - std::max(one.begin, end), 0);
    end = std::max(end, one.end);
  }
  return units;
}

/// Reads of what was received, reads of the rank's own value where it takes part, and one write each.
std::int64_t units_moved(const Step& step) {
  std::vector<Interval> all;
  std::vector<Interval> with_own;
  std::int64_t units = 0;
  for (const Message& message : step.recvs) {
    const Interval interval{message.begin, message.end};
    units += interval.size();
    all.push_back(interval);
    if (message.accumulate) with_own.push_back(interval);
  }
  return units + covered(std::move(all)) + covered(std::move(with_own));
}

}  // namespace

double memory_traffic(const Plan& plan, double vector_bytes) {
  const PlanIndex index(plan);
  std::int64_t units = 0;
  for (std::int64_t rank = 0; rank < plan.num_ranks; ++rank) {
    for (const Step& step : index.program(rank).steps) units += units_moved(step);
  }
  return vector_bytes * static_cast<double>(units) / static_cast<double>(plan.num_units);
}

std::optional<double> memory_traffic_of(const std::string& algorithm, Collective collective, std::int64_t num_ranks,
                                        double vector_bytes) {
  const auto n = static_cast<double>(num_ranks);
  if (algorithm == "gather") {
    if (collective == Collective::kAllReduce) return n * (n + 1) * vector_bytes;
    return (collective == Collective::kReduceScatter ? n + 1 : 2 * n) * vector_bytes;
  }
  try {
    const AlgorithmSpec spec = parse_algorithm(algorithm);
    if (is_tree_planner(spec)) return std::nullopt;
    return memory_traffic(as_collective(build_plan(spec, num_ranks), collective), vector_bytes);
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

}  // namespace gar::measure
