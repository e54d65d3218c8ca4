#include "runtime/transports/cuda/device_costs.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/stats.hpp"
#include "runtime/executor.hpp"
#include "runtime/transports/cuda/cuda_call.hpp"

namespace gar {

namespace {

constexpr int kOperands = 8;
constexpr std::int64_t kFloats = 8 << 20;  // of an operand; all together are several times what caches hold
constexpr int kRepetitions = 5;
constexpr double kSmallest = 1e-15;

/// Device memory, a stream and events of its own, so that nothing of the user's is touched.
class Stopwatch {
 public:
  Stopwatch() {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    for (cudaEvent_t& event : events_) check_cuda(cudaEventCreate(&event), "cudaEventCreate");
  }
  ~Stopwatch() {
    for (cudaEvent_t event : events_) static_cast<void>(cudaEventDestroy(event));
    static_cast<void>(cudaStreamDestroy(stream_));
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// The shortest of some repetitions.
  double seconds(const std::function<void(CudaStream)>& work) {
    double shortest = std::numeric_limits<double>::max();
    for (int i = 0; i <= kRepetitions; ++i) {
      check_cuda(cudaEventRecord(events_[0], stream_), "cudaEventRecord");
      work(stream_);
      check_cuda(cudaEventRecord(events_[1], stream_), "cudaEventRecord");
      check_cuda(cudaEventSynchronize(events_[1]), "cudaEventSynchronize");
      float milliseconds = 0;
      check_cuda(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]), "cudaEventElapsedTime");
      if (i > 0) shortest = std::min(shortest, 1e-3 * static_cast<double>(milliseconds));
    }
    return shortest;
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::array<cudaEvent_t, 2> events_{};
};

LocalCosts built_in() {
  LocalCosts costs;
  costs.alpha = 1e-5;
  costs.beta = 3e-12;
  costs.gamma = 1e-15;
  costs.delta = 2e-12;
  return costs;
}

LocalCosts measure() {
  DeviceBuffer memory;
  memory.reserve((kOperands + 1) * kFloats * 4);
  check_cuda(cudaMemset(memory.data(), 0, (kOperands + 1) * kFloats * 4), "cudaMemset");
  check_cuda(cudaDeviceSynchronize(), "cudaMemset");
  Stopwatch watch;
  DeviceReduction job;
  job.out = memory.data() + kOperands * kFloats * 4;
  for (int i = 0; i < kOperands; ++i) job.operands[static_cast<std::size_t>(i)] = memory.data() + i * kFloats * 4;
  job.count = kFloats;
  const auto per_float = [&](int operands) {
    job.num_operands = operands;
    return watch.seconds([&](CudaStream stream) {
      launch_reductions(DataType::kFloat32, ReduceOp::kSum, std::span(&job, 1), stream);
    }) / static_cast<double>(kFloats);
  };
  LocalCosts costs = built_in();
  const ServerParams reduction = reduction_costs(per_float(2), per_float(kOperands), kSmallest);
  costs.gamma = reduction.gamma;
  costs.delta = reduction.delta;
  const DeviceCopy copy{job.out, job.operands[0], kFloats * 4};
  costs.beta = watch.seconds([&](CudaStream stream) { launch_copies(std::span(&copy, 1), stream); }) /
               static_cast<double>(kFloats);
  return costs;
}

}  // namespace

LocalCosts measure_device_costs() {
  try {
    return measure();
  } catch (const DeviceError&) {
    return built_in();
  }
}

cudaUUID_t current_gpu() {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.uuid;
}

int most_sharing(const std::vector<cudaUUID_t>& gpus) {
  std::ptrdiff_t most = 1;
  for (const cudaUUID_t& gpu : gpus) {
    most = std::max(most, std::count_if(gpus.begin(), gpus.end(), [&](const cudaUUID_t& other) {
                      return std::memcmp(&gpu, &other, sizeof gpu) == 0;
                    }));
  }
  return static_cast<int>(most);
}

double measure_seconds(DeviceTransport& transport, Plan plan, std::int64_t count, std::uint64_t sequence) {
  const Collective collective = plan.collective;
  const Schedule schedule = make_schedule(std::make_shared<const IndexedPlan>(std::move(plan)), transport.rank(), count,
                                          4, transport.limits());
  const std::int64_t block = count * 4;
  const std::int64_t all = block * schedule.num_blocks;
  DeviceBuffer memory;
  memory.reserve(all);
  check_cuda(cudaMemset(memory.data(), 0, static_cast<std::size_t>(all)), "cudaMemset");
  check_cuda(cudaDeviceSynchronize(), "cudaMemset");
  const std::byte* in = memory.data() + (collective == Collective::kAllGather ? transport.rank() * block : 0);
  const CollectiveCall call{.collective = collective, .in = in, .out = memory.data(), .count = count};
  const Operands operands{.in = call.in,
                          .out = call.out,
                          .in_bytes = block,
                          .out_bytes = all,
                          .stream = std::nullopt,
                          .schedule = &schedule};
  std::vector<double> times;
  for (int round = 0; round < kMeasuredRounds; ++round) {
    Signature signature;
    signature.sequence = sequence + static_cast<std::uint64_t>(round);
    signature.collective = call.collective;
    signature.count = call.count;
    signature.plan = schedule.fingerprint;
    const auto begin = std::chrono::steady_clock::now();
    try {
      transport.begin(signature, operands);
      Execution execution(transport, schedule, call, 0);
      while (!execution.advance() || !transport.try_complete()) transport.wait();
    } catch (const std::exception& e) {
      // Streams that wait for a dead peer would hold up the release of the memory for ever.
      transport.fail(e.what());
      throw;
    }
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return median(std::move(times));
}

double measure_stage_seconds(DeviceTransport& transport, std::uint64_t sequence) {
  constexpr std::int64_t kCount = 1024;
  const bool is_cps = transport.size() <= kMaxDeviceOperands;
  const double stages = is_cps ? 2 : 2 * (transport.size() - 1);
  const Plan plan = build_plan(parse_algorithm(is_cps ? "cps" : "ring"), transport.size());
  return measure_seconds(transport, plan, kCount, sequence) / stages;
}

Topology device_topology(int num_ranks, int num_sharing, const LocalCosts& costs) {
  return memory_topology("gpus", num_ranks, num_sharing, costs);
}

}  // namespace gar
