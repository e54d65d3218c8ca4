// Reductions with any number of operands of any type, operator and alignment, and copies.
#include <cstdint>

#include "runtime/transports/cuda/edge.cuh"
#include "runtime/transports/cuda/kernels.hpp"
#include "runtime/transports/cuda/launchers.hpp"
#include "runtime/transports/cuda/table.cuh"

namespace gar::device {
namespace {

/// Room for 16 jobs of 20 operands each, or 5 of 64.
using OperandTable = Table<16, 320>;
using CopyTable = Table<64, 64>;

/// Operands that are read at once: with two blocks on a multiprocessor (the registers allow no more) 64 KB are on their
/// way, about twice what bandwidth and latency of an H200 ask for.
constexpr int kGroup = 4;

/// The two aligned vectors that hold one that is not; only the first when it is aligned.
struct Pair {
  uint4 low;
  uint4 high;
};

__device__ unsigned past_vector(const char* p) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(p) % kVectorBytes);
}

__device__ Pair load_pair(const char* p) {
  const unsigned past = past_vector(p);
  const auto* aligned = reinterpret_cast<const uint4*>(p - past);
  Pair pair;
  pair.low = __ldcs(aligned);
  pair.high = make_uint4(0, 0, 0, 0);
  if (past != 0) pair.high = __ldcs(aligned + 1);
  return pair;
}

/// The 16 bytes that begin `past` bytes after the pair does.
__device__ uint4 extract(const Pair& pair, unsigned past) {
  unsigned words[8] = {pair.low.x,  pair.low.y,  pair.low.z,  pair.low.w,
                       pair.high.x, pair.high.y, pair.high.z, pair.high.w};
#pragma unroll
  for (int i = 0; i < 6; ++i) words[i] = (past & 8) != 0 ? words[i + 2] : words[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) words[i] = (past & 4) != 0 ? words[i + 1] : words[i];
  const unsigned bits = past % 4 * 8;
  return make_uint4(__funnelshift_r(words[0], words[1], bits), __funnelshift_r(words[1], words[2], bits),
                    __funnelshift_r(words[2], words[3], bits), __funnelshift_r(words[3], words[4], bits));
}

template <class T, class Op>
__global__ void __launch_bounds__(kThreads) reduce_any(const __grid_constant__ OperandTable table) {
  const ThreadWork work = find_work(table);
  const Job& job = table.jobs[work.job];
  const char* const* operands = table.operands + job.first_operand;
  const int num_operands = job.num_operands;
  if (work.is_edge) {
    reduce_edge<T, Op>(job, operands, num_operands);
    return;
  }
  if (work.vector >= job.num_vectors) return;
  const std::int64_t offset = offset_of<T>(job, work.vector);
  Accumulator<T, Op> results;
#pragma unroll 1
  for (int first = 0; first < num_operands; first += kGroup) {
    Pair pairs[kGroup];
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      if (first + j < num_operands) pairs[j] = load_pair(operands[first + j] + offset);
    }
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      if (first + j >= num_operands) continue;
      const uint4 vector = extract(pairs[j], past_vector(operands[first + j] + offset));
      if (first + j == 0) {
        results.start(vector);
      } else {
        results.fold(vector);
      }
    }
  }
  __stcs(reinterpret_cast<uint4*>(job.out + offset), results.result());
}

__global__ void __launch_bounds__(kThreads) copy_any(const __grid_constant__ CopyTable table) {
  const ThreadWork work = find_work(table);
  const Job& job = table.jobs[work.job];
  const char* const in = table.operands[work.job];
  if (work.is_edge) {
    make_edge<char>(job, [&](std::int64_t i) { job.out[i] = in[i]; });
    return;
  }
  if (work.vector >= job.num_vectors) return;
  const std::int64_t offset = offset_of<char>(job, work.vector);
  const Pair pair = load_pair(in + offset);
  __stcs(reinterpret_cast<uint4*>(job.out + offset), extract(pair, past_vector(in + offset)));
}

template <class T>
const void* kernel_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return reinterpret_cast<const void*>(reduce_any<T, Sum>);
    case ReduceOp::kProd:
      return reinterpret_cast<const void*>(reduce_any<T, Prod>);
    case ReduceOp::kMin:
      return reinterpret_cast<const void*>(reduce_any<T, Min>);
    default:
      return reinterpret_cast<const void*>(reduce_any<T, Max>);
  }
}

/// Sums and products do not tell signed from unsigned.
template <class Signed, class Unsigned>
const void* signed_kernel_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin:
      return reinterpret_cast<const void*>(reduce_any<Signed, Min>);
    case ReduceOp::kMax:
      return reinterpret_cast<const void*>(reduce_any<Signed, Max>);
    default:
      return kernel_of<Unsigned>(op);
  }
}

const void* kernel_of(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kInt8:
      return signed_kernel_of<std::int8_t, std::uint8_t>(op);
    case DataType::kUint8:
      return kernel_of<std::uint8_t>(op);
    case DataType::kInt32:
      return signed_kernel_of<std::int32_t, std::uint32_t>(op);
    case DataType::kUint32:
      return kernel_of<std::uint32_t>(op);
    case DataType::kInt64:
      return signed_kernel_of<std::int64_t, std::uint64_t>(op);
    case DataType::kUint64:
      return kernel_of<std::uint64_t>(op);
    case DataType::kFloat16:
      return kernel_of<Half>(op);
    case DataType::kBfloat16:
      return kernel_of<Bhalf>(op);
    case DataType::kFloat32:
      return kernel_of<float>(op);
    default:
      return kernel_of<double>(op);
  }
}

}  // namespace

bool is_fixed(DataType type, ReduceOp op, const DeviceReduction& job) {
  return op == ReduceOp::kSum && !is_integer(type) && job.num_operands <= kMaxFixedOperands &&
         are_aligned_alike(job.out, std::span(job.operands).first(static_cast<std::size_t>(job.num_operands)));
}

cudaError_t launch_others(DataType type, ReduceOp op, std::span<const DeviceReduction> jobs, CudaStream stream) {
  Launcher<OperandTable> launcher(kernel_of(type, op), static_cast<int>(size_of(type)), stream);
  for (const DeviceReduction& job : jobs) {
    if (is_fixed(type, op, job)) continue;
    const auto operands = std::span(job.operands).first(static_cast<std::size_t>(job.num_operands));
    const cudaError_t error = launcher.add(job.out, operands, job.count);
    if (error != cudaSuccess) return error;
  }
  return launcher.launch();
}

cudaError_t launch_copy_kernel(std::span<const DeviceCopy> jobs, CudaStream stream) {
  Launcher<CopyTable> launcher(reinterpret_cast<const void*>(copy_any), 1, stream);
  for (const DeviceCopy& job : jobs) {
    if (job.out == job.in) continue;
    const cudaError_t error = launcher.add(job.out, std::span(&job.in, 1), job.bytes);
    if (error != cudaSuccess) return error;
  }
  return launcher.launch();
}

cudaError_t load_others() {
  cudaFuncAttributes attributes{};
  for (int t = 0; t < kNumDataTypes; ++t) {
    for (int o = 0; o < kNumReduceOps; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto op = static_cast<ReduceOp>(o);
      if (!is_supported_on_device(type, op)) continue;
      const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel_of(type, op));
      if (error != cudaSuccess) return error;
    }
  }
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(copy_any));
}

}  // namespace gar::device
