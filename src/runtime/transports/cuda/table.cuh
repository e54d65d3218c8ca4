// The jobs of one launch. They travel as kernel parameters: no memory to allocate or to keep, also in a captured graph.
//
// A job's output is cut into a head, whole vectors of 16 aligned bytes, and a tail. Every thread makes one vector; a
// full grid without a loop was faster than persistent blocks (on an H200, 2 to 16 operands). One more block makes head
// and tail, one element per thread.
//
// Operands may be aligned differently from the output. A vector of such an operand is put together from the two aligned
// vectors that it lies in. The head and the tail are then one vector longer, so that nothing outside the operands is
// read.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "runtime/transports/cuda/elements.cuh"
#include "runtime/transports/cuda/kernels.hpp"

namespace gar::device {

constexpr int kThreads = 512;
constexpr std::size_t kMaxParameterBytes = 4096;
/// Larger jobs are cut, so that the blocks of a full table fit a grid.
constexpr std::int64_t kMaxPieceBytes = std::int64_t{1} << 37;

struct Job {
  char* out;
  std::int64_t count;        ///< elements
  std::int64_t num_vectors;  ///< between head and tail
  std::int32_t head;         ///< elements
  std::int16_t first_operand;
  std::int16_t num_operands;
};

inline unsigned misalignment(const void* a, const void* b) {
  return static_cast<unsigned>((reinterpret_cast<std::uintptr_t>(a) ^ reinterpret_cast<std::uintptr_t>(b)) %
                               kVectorBytes);
}
inline bool are_aligned_alike(const void* out, std::span<const void* const> operands) {
  return std::all_of(operands.begin(), operands.end(), [out](const void* p) { return misalignment(out, p) == 0; });
}

/// Sets head and num_vectors.
inline void cut(Job& job, int element_bytes, bool is_aligned_alike) {
  const int per_vector = kVectorBytes / element_bytes;
  const auto past = static_cast<int>(reinterpret_cast<std::uintptr_t>(job.out) % kVectorBytes);
  const int margin = is_aligned_alike ? 0 : 1;
  const std::int64_t head = (kVectorBytes - past) % kVectorBytes / element_bytes + margin * per_vector;
  const std::int64_t num_vectors = (job.count - head) / per_vector - margin;
  const bool has_vectors = job.count > head && num_vectors > 0;
  job.head = static_cast<std::int32_t>(has_vectors ? head : 0);
  job.num_vectors = has_vectors ? num_vectors : 0;
}

template <int kMaxJobs, int kMaxOperands>
struct Table {
  const char* operands[kMaxOperands];
  Job jobs[kMaxJobs];
  std::uint32_t end_blocks[kMaxJobs];  ///< one past the last block of each job
  std::int32_t num_jobs;

  /// At most kMaxPieceBytes of output. False when there is no room.
  bool add(void* out, std::span<const void* const> job_operands, std::int64_t count, int element_bytes) {
    const int first = num_jobs == 0 ? 0 : jobs[num_jobs - 1].first_operand + jobs[num_jobs - 1].num_operands;
    const auto num_operands = static_cast<int>(job_operands.size());
    if (num_jobs == kMaxJobs || first + num_operands > kMaxOperands) return false;
    Job& job = jobs[num_jobs];
    job = {.out = static_cast<char*>(out),
           .count = count,
           .num_vectors = 0,
           .head = 0,
           .first_operand = static_cast<std::int16_t>(first),
           .num_operands = static_cast<std::int16_t>(num_operands)};
    cut(job, element_bytes, are_aligned_alike(out, job_operands));
    for (int k = 0; k < num_operands; ++k) operands[first + k] = static_cast<const char*>(job_operands[k]);
    const bool has_edges = job.num_vectors * (kVectorBytes / element_bytes) < count;
    const std::int64_t num_blocks = (job.num_vectors + kThreads - 1) / kThreads + (has_edges ? 1 : 0);
    end_blocks[num_jobs] = num_blocks_so_far() + static_cast<std::uint32_t>(num_blocks);
    ++num_jobs;
    return true;
  }
  [[nodiscard]] std::uint32_t num_blocks_so_far() const { return num_jobs == 0 ? 0 : end_blocks[num_jobs - 1]; }
};

/// What the calling thread works on.
struct ThreadWork {
  int job;
  std::int64_t vector;
  bool is_edge;  ///< the block of head and tail
};

template <class AnyTable>
__device__ ThreadWork find_work(const AnyTable& table) {
  int low = 0;
  int high = table.num_jobs - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (blockIdx.x < table.end_blocks[middle]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  const std::uint32_t first_block = low == 0 ? 0 : table.end_blocks[low - 1];
  const std::int64_t first_vector = static_cast<std::int64_t>(blockIdx.x - first_block) * kThreads;
  return {low, first_vector + threadIdx.x, first_vector >= table.jobs[low].num_vectors};
}

/// Calls make(i) with the index of the calling thread's element of head or tail, if it has one.
template <class T, class Make>
__device__ void make_edge(const Job& job, Make make) {
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t i = t < job.head ? t : t + job.num_vectors * kPerVector<T>;
  if (i < job.count) make(i);
}

/// Byte offset of a vector of the output.
template <class T>
__device__ std::int64_t offset_of(const Job& job, std::int64_t vector) {
  return static_cast<std::int64_t>(job.head) * static_cast<int>(sizeof(T)) + vector * kVectorBytes;
}

/// Puts jobs into a table and launches the kernel for it whenever it is full.
template <class AnyTable>
class Launcher {
  static_assert(sizeof(AnyTable) <= kMaxParameterBytes);

 public:
  Launcher(const void* kernel, int element_bytes, CudaStream stream)
      : kernel_(kernel), element_bytes_(element_bytes), stream_(stream) {
    table_.num_jobs = 0;
  }
  /// May launch what has been added before.
  cudaError_t add(void* out, std::span<const void* const> operands, std::int64_t count) {
    std::array<const void*, kMaxDeviceOperands> piece{};
    const std::int64_t max_count = kMaxPieceBytes / element_bytes_;
    for (std::int64_t begin = 0; begin < count; begin += max_count) {
      const std::int64_t offset = begin * element_bytes_;
      std::transform(operands.begin(), operands.end(), piece.begin(),
                     [offset](const void* p) { return static_cast<const char*>(p) + offset; });
      const auto pieces = std::span<const void* const>(piece).first(operands.size());
      const std::int64_t num_elements = std::min(max_count, count - begin);
      char* const piece_out = static_cast<char*>(out) + offset;
      if (table_.add(piece_out, pieces, num_elements, element_bytes_)) continue;
      const cudaError_t error = launch();
      if (error != cudaSuccess) return error;
      table_.add(piece_out, pieces, num_elements, element_bytes_);
    }
    return cudaSuccess;
  }
  /// What is left in the table.
  cudaError_t launch() {
    if (table_.num_jobs == 0) return cudaSuccess;
    void* arguments[] = {&table_};
    const dim3 grid(table_.num_blocks_so_far());
    const cudaError_t error = cudaLaunchKernel(kernel_, grid, dim3(kThreads), arguments, 0, stream_);
    table_.num_jobs = 0;
    return error;
  }

 private:
  const void* kernel_;
  int element_bytes_;
  CudaStream stream_;
  AnyTable table_;
};

}  // namespace gar::device
