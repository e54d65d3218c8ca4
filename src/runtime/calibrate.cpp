// beta is a copy out of memory into a staging area, with all cores at it. gamma and delta follow from two fan-ins. The
// blocks are as large as those of real chunks, so they lie in the caches.
//
// mu is what one more flag costs that one core sets and another one sees: in shared memory a message is a flag.
#include "runtime/calibrate.hpp"

#include <algorithm>
#include <array>
#include <atomic>
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

constexpr std::size_t kFlags = 32;
constexpr std::uint32_t kFlagRounds = 40;
constexpr double kMostFlagSeconds = 0.005;  // for all rounds

/// Waits until the flag has the value, and gives the core away when that takes long: there may be only one.
void wait_for(const std::atomic<std::uint32_t>& flag, std::uint32_t value) {
  for (int spins = 0; flag.load(std::memory_order_acquire) != value; ++spins) {
    if (spins > 1000) std::this_thread::yield();
  }
}

/// Two threads that pass flags: one asks, the other one sets `count` flags, the first one sees them one after another.
class FlagTimer {
 public:
  /// Seconds of the shortest round for each of these counts, measured in turns.
  std::array<double, 2> seconds(const std::array<std::size_t, 2>& counts) {
    std::array<double, 2> best{1, 1};
    std::thread other([&] { answer(counts); });
    const auto start = std::chrono::steady_clock::now();
    std::uint32_t round = 0;
    for (bool goes_on = true; goes_on;) {
      for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
        ++round;
        const auto begin = std::chrono::steady_clock::now();
        question_.value.store(round, std::memory_order_release);
        for (std::size_t i = 0; i < counts[k]; ++i) wait_for(flags_[i].value, round);
        const auto end = std::chrono::steady_clock::now();
        best[k] = std::min(best[k], std::chrono::duration<double>(end - begin).count());
        goes_on = round < 2 * kFlagRounds && std::chrono::duration<double>(end - start).count() < kMostFlagSeconds;
      }
    }
    question_.value.store(kEnd, std::memory_order_release);
    other.join();
    return best;
  }

 private:
  static constexpr std::uint32_t kEnd = 0xFFFFFFFF;
  struct alignas(64) Flag {
    std::atomic<std::uint32_t> value{0};
  };

  void answer(const std::array<std::size_t, 2>& counts) {
    std::uint32_t last = 0;
    for (;;) {
      std::uint32_t round = last;
      for (int spins = 0; round == last; ++spins) {
        round = question_.value.load(std::memory_order_acquire);
        if (spins > 1000) std::this_thread::yield();
      }
      if (round == kEnd) return;
      last = round;
      for (std::size_t i = 0; i < counts[(round - 1) % 2]; ++i) flags_[i].value.store(round, std::memory_order_release);
    }
  }

  Flag question_;
  std::array<Flag, kFlags> flags_;
};

/// With one core there is nothing to measure.
double flag_seconds() {
  if (std::thread::hardware_concurrency() < 2) return 0;
  const auto [one, many] = FlagTimer().seconds({1, kFlags});
  return split_steps(one, many, static_cast<double>(kFlags)).mu;
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
  costs.mu = flag_seconds();
  return costs;
}

}  // namespace

ServerParams reduction_costs(double two, double eight, double smallest) {
  ServerParams out;
  out.delta = std::max((7 * two - eight) / 12, smallest);
  out.gamma = std::max(two - 3 * out.delta, smallest);
  return out;
}

MessageCosts split_step(double step_s, double messages, double mu) {
  const double most = step_s / (4 * std::max(messages, 1.0));
  const double used = std::clamp(mu, 0.0, std::max(most, 0.0));
  return {step_s - 2 * messages * used, used};
}

MessageCosts split_steps(double one_s, double many_s, double messages) {
  return split_step(one_s, 1, messages > 1 ? (many_s - one_s) / (2 * (messages - 1)) : 0);
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
  server.server = {costs.gamma * share, costs.delta * share, costs.mu * share};
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
