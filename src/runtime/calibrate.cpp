// beta is a copy out of memory into a staging area, with all cores at it. gamma and delta follow from two fan-ins. The
// blocks are as large as those of real chunks, so they lie in the caches.
#include "runtime/calibrate.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "gar/reduction.hpp"
#include "gar/stats.hpp"

namespace gar {

namespace {

constexpr std::int64_t kMemory = 10 << 20;  // floats: more than most caches hold
constexpr std::int64_t kMaxThreads = 8;
constexpr std::int64_t kBlock = 32 << 10;  // floats
constexpr int kOperands = 8;
constexpr double kSmallest = 1e-13;

/// Best of several: what disturbs a measurement only makes it longer.
template <class Work>
double seconds_per_float(const Work& work) {
  double best = 1;
  for (int repetition = 0; repetition < 12; ++repetition) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count() / static_cast<double>(kBlock));
  }
  return best;
}

/// From memory into a staging area, as a rank does it: the median of several copies.
double copy_seconds_per_float(std::int64_t num_floats) {
  const std::vector<float> source(static_cast<std::size_t>(num_floats), 1.0F);
  std::vector<float> staging(static_cast<std::size_t>(kBlock), 1.0F);
  std::vector<double> times;
  for (std::int64_t begin = 0; begin + kBlock <= num_floats; begin += kBlock) {
    const auto start = std::chrono::steady_clock::now();
    copy(staging.data(), source.data() + begin, kBlock * 4);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    times.push_back(time.count() / static_cast<double>(kBlock));
  }
  return median(std::move(times));
}

/// The same on all cores at once, for they share the memory.
double crowded_copy_seconds_per_float() {
  const std::int64_t num_threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, kMaxThreads);
  std::vector<double> seconds(static_cast<std::size_t>(num_threads));
  std::vector<std::thread> threads;
  for (double& result : seconds) {
    threads.emplace_back([&result, num_threads] { result = copy_seconds_per_float(kMemory / num_threads); });
  }
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(seconds.begin(), seconds.end());
}

LocalCosts measure() {
  std::vector<float> memory(static_cast<std::size_t>((kOperands + 1) * kBlock), 1.0F);
  std::array<const void*, kOperands> operands{};
  for (std::size_t i = 0; i < operands.size(); ++i)
    operands[i] = memory.data() + static_cast<std::ptrdiff_t>(i) * kBlock;
  float* out = memory.data() + kOperands * kBlock;
  const auto reduce_all = [&](std::size_t fan_in) {
    return seconds_per_float(
        [&] { reduce(DataType::kFloat32, ReduceOp::kSum, out, std::span(operands).first(fan_in), kBlock); });
  };
  LocalCosts costs;
  const ServerParams reduction = reduction_costs(reduce_all(2), reduce_all(kOperands), kSmallest);
  costs.gamma = reduction.gamma;
  costs.delta = reduction.delta;
  costs.beta = std::max(crowded_copy_seconds_per_float(), kSmallest);
  return costs;
}

}  // namespace

ServerParams reduction_costs(double two, double eight, double smallest) {
  ServerParams out;
  out.delta = std::max((7 * two - eight) / 12, smallest);
  out.gamma = std::max(two - 3 * out.delta, smallest);
  return out;
}

LocalCosts measure_costs() {
  static const LocalCosts kCosts = measure();
  return kCosts;
}

Topology memory_topology(const std::string& name, int num_ranks, double share, const LocalCosts& costs) {
  Node server;
  server.name = "rank";
  server.alpha = costs.alpha / 2;  // a path passes two of them
  server.uplink = {costs.beta * share, 0, 0, 0};
  server.server = {costs.gamma * share, costs.delta * share};
  if (num_ranks == 1) return {name, {server}, 0};
  Node memory;
  memory.name = "memory";
  memory.children = {{0, num_ranks}};
  return {name, {server, memory}, 1};
}

Topology host_topology(int num_ranks, const LocalCosts& costs) {
  const double cores = std::max(1U, std::thread::hardware_concurrency());
  return memory_topology("host", num_ranks, std::max(1.0, num_ranks / cores), costs);
}

}  // namespace gar
