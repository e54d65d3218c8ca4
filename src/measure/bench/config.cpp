// What a benchmark measures.
#include <algorithm>

#include "gar/measure/bench.hpp"
#include "gar/measure/bench_config.hpp"

namespace gar::measure {
namespace {

constexpr std::int64_t kBatchBytes = std::int64_t{256} << 10;
constexpr std::int64_t kMaxBatch = 32;

}  // namespace

std::string describe(const BenchEntry& entry) { return entry.name + (entry.is_reproducible ? ", reproducible" : ""); }

bool BenchConfig::has_native() const {
  return std::any_of(entries.begin(), entries.end(), [](const BenchEntry& e) { return e.is_native; });
}

BenchSize bench_size(std::int64_t bytes, DataType type, Collective collective, int num_ranks) {
  const std::int64_t blocks = collective == Collective::kAllReduce ? 1 : num_ranks;
  const std::int64_t count = bytes / (size_of(type) * blocks);
  return {count, count * blocks, count * blocks * size_of(type)};
}

std::int64_t batch_of(const BenchConfig& config, std::int64_t bytes) {
  if (config.batch > 0) return config.batch;
  return std::clamp(kBatchBytes / std::max<std::int64_t>(bytes, 1), std::int64_t{1}, kMaxBatch);
}

double algorithm_bandwidth(double bytes, double seconds) { return seconds > 0 ? bytes / seconds : 0; }

double bus_bandwidth(Collective collective, int num_ranks, double algbw) {
  const double share = static_cast<double>(num_ranks - 1) / static_cast<double>(num_ranks);
  return algbw * share * (collective == Collective::kAllReduce ? 2 : 1);
}

double prediction_error(double measured_s, double predicted_s) { return measured_s / predicted_s - 1; }

}  // namespace gar::measure
