// What reduces and copies for the executor: the calling thread on host memory, or a stream of a GPU on its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gar/reduction.hpp"

namespace gar {

class Compute {
 public:
  Compute() = default;
  Compute(const Compute&) = delete;
  Compute& operator=(const Compute&) = delete;
  virtual ~Compute() = default;

  [[nodiscard]] virtual bool supports(DataType type, ReduceOp op) const = 0;
  /// As gar::reduce and gar::copy. On a GPU they happen in the order of the stream; those of one step are independent
  /// of each other and may be gathered until end_step.
  virtual void reduce(DataType type, ReduceOp op, void* out, std::span<const void* const> operands,
                      std::int64_t count) = 0;
  virtual void copy(void* out, const void* in, std::int64_t bytes, Stores stores) = 0;
  /// Nothing more belongs to this step.
  virtual void end_step() = 0;
  /// Memory of at least this many bytes that stays until the next call asks for more.
  virtual std::byte* scratch(std::int64_t bytes) = 0;
};

/// The calling thread.
class HostCompute final : public Compute {
 public:
  [[nodiscard]] bool supports(DataType type, ReduceOp op) const override { return is_supported(type, op); }
  void reduce(DataType type, ReduceOp op, void* out, std::span<const void* const> operands,
              std::int64_t count) override {
    gar::reduce(type, op, out, operands, count);
  }
  void copy(void* out, const void* in, std::int64_t bytes, Stores stores) override {
    gar::copy(out, in, bytes, stores);
  }
  void end_step() override {}
  std::byte* scratch(std::int64_t bytes) override {
    if (scratch_.size() < static_cast<std::size_t>(bytes)) scratch_.resize(static_cast<std::size_t>(bytes));
    return scratch_.data();
  }

 private:
  std::vector<std::byte> scratch_;
};

}  // namespace gar
