// Sums with the number of operands known to the compiler; sum_*.cu instantiate them type by type, because they take
// long to compile.
#pragma once

#include <type_traits>
#include <utility>

#include "runtime/transports/cuda/edge.cuh"
#include "runtime/transports/cuda/launchers.hpp"
#include "runtime/transports/cuda/table.cuh"

namespace gar::device {

constexpr int kMaxFixedJobs = 8;
template <int kFanIn>
using FixedTable = Table<kMaxFixedJobs, kMaxFixedJobs * kFanIn>;

template <class T, int kFanIn>
__global__ void __launch_bounds__(kThreads) fixed_sum(const __grid_constant__ FixedTable<kFanIn> table) {
  const ThreadWork work = find_work(table);
  const Job& job = table.jobs[work.job];
  const char* const* operands = table.operands + work.job * kFanIn;
  if (work.is_edge) {
    reduce_edge<T, Sum>(job, operands, kFanIn);
    return;
  }
  if (work.vector >= job.num_vectors) return;
  const std::int64_t offset = offset_of<T>(job, work.vector);
  uint4 vectors[kFanIn];
#pragma unroll
  for (int k = 0; k < kFanIn; ++k) vectors[k] = __ldcs(reinterpret_cast<const uint4*>(operands[k] + offset));
  Accumulator<T, Sum> sums;
  sums.start(vectors[0]);
#pragma unroll
  for (int k = 1; k < kFanIn; ++k) sums.fold(vectors[k]);
  __stcs(reinterpret_cast<uint4*>(job.out + offset), sums.result());
}

template <class T, int kFanIn>
cudaError_t launch_fixed_sums_of(DataType type, std::span<const DeviceReduction> jobs, CudaStream stream) {
  Launcher<FixedTable<kFanIn>> launcher(reinterpret_cast<const void*>(fixed_sum<T, kFanIn>), sizeof(T), stream);
  for (const DeviceReduction& job : jobs) {
    if (job.num_operands != kFanIn || !is_fixed(type, ReduceOp::kSum, job)) continue;
    const cudaError_t error = launcher.add(job.out, std::span(job.operands).first(kFanIn), job.count);
    if (error != cudaSuccess) return error;
  }
  return launcher.launch();
}

/// Calls step(2), step(3), ... with numbers that the compiler knows; ends with the first error.
template <class Step>
cudaError_t for_each_fan_in(Step step) {
  return [&]<int... kLess>(std::integer_sequence<int, kLess...>) {
    cudaError_t error = cudaSuccess;
    static_cast<void>(((error = step(std::integral_constant<int, kLess + 2>()), error == cudaSuccess) && ...));
    return error;
  }
  (std::make_integer_sequence<int, kMaxFixedOperands - 1>());
}

template <class T>
cudaError_t launch_fixed_sums(DataType type, std::span<const DeviceReduction> jobs, CudaStream stream) {
  return for_each_fan_in([&](auto fan_in) { return launch_fixed_sums_of<T, fan_in()>(type, jobs, stream); });
}

template <class T>
cudaError_t load_fixed_sums() {
  return for_each_fan_in([](auto fan_in) {
    cudaFuncAttributes attributes{};
    return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(fixed_sum<T, fan_in()>));
  });
}

}  // namespace gar::device
