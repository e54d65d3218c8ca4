// The memory of a benchmark on one rank, and where input and result of an operation lie in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gar/measure/bench_config.hpp"
#include "gar/measure/cuda_session.hpp"
#include "gar/measure/mpi_session.hpp"
#include "measure/bench/data.hpp"

namespace gar::measure {

/// Aligned memory with a few bytes behind its end that nobody may change. With a GPU there is a second one on that,
/// with the same content after upload(); operations use that one, and everything else the one on the host.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::int64_t capacity, CudaSession* cuda = nullptr);
  [[nodiscard]] std::byte* data() const { return data_.get(); }
  /// Where operations read and write.
  [[nodiscard]] std::byte* target() const { return device_ ? device_.get() : data_.get(); }
  /// Between the host's and the GPU's, up to the end of the guard; nothing to do without a GPU.
  void upload() const;
  void download() const;
  /// Puts the guard behind the first `bytes`.
  void set_end(std::int64_t bytes);
  [[nodiscard]] bool is_intact() const;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  CudaSession* cuda_;
  DeviceMemory device_;
  std::int64_t end_ = 0;
};

/// What an operation reads and writes. Out of place the input is in one buffer and the result in the other. In place
/// everything is in the second one, in one slot per operation of a batch, and the first one keeps the input so that it
/// can be put back.
class BenchBuffers {
 public:
  /// For vectors of up to `max_bytes` and batches of up to `max_slot_bytes` in all.
  BenchBuffers(std::int64_t max_bytes, std::int64_t max_slot_bytes, CudaSession* cuda = nullptr);

  struct Shape {
    Collective collective = Collective::kAllReduce;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    BenchSize size;
    int rank = 0;
    int num_ranks = 1;
    bool in_place = false;
    std::int64_t batch = 1;
  };
  void set_shape(const Shape& shape);

  /// Fresh input everywhere, and garbage where the results go.
  void fill(const BenchData& data);
  /// In place: puts the input back into every slot.
  void restore();
  /// The call of one operation of a batch. `is_native`: of MPI, which has its own idea of an in-place ReduceScatter.
  [[nodiscard]] CollectiveCall call(std::int64_t operation, bool is_native) const;
  /// Elements that are not as they must be after one operation on slot 0; an input that was changed, or a write beyond
  /// the end, counts too.
  [[nodiscard]] std::int64_t num_wrong(const BenchData& data, bool is_native) const;

 private:
  [[nodiscard]] std::int64_t input_count() const;
  [[nodiscard]] std::int64_t output_count() const;
  [[nodiscard]] std::int64_t slot_bytes() const;
  [[nodiscard]] std::int64_t block_bytes() const;

  Shape shape_;
  CudaSession* cuda_;
  GuardedBuffer input_;
  GuardedBuffer work_;
};

}  // namespace gar::measure
