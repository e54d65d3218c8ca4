// The memory of a benchmark on one rank.
#include "measure/bench/buffers.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace gar::measure {
namespace {

constexpr std::int64_t kGuardBytes = 64;
constexpr std::int64_t kAlignment = 4096;
constexpr int kGuard = 0x5a;
constexpr int kGarbage = 0xa5;

}  // namespace

GuardedBuffer::GuardedBuffer(std::int64_t capacity, CudaSession* cuda) : cuda_(cuda) {
  const std::int64_t bytes = (capacity + kGuardBytes + kAlignment - 1) / kAlignment * kAlignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<std::size_t>(bytes))));
  if (!data_) throw std::bad_alloc();
  if (cuda_ != nullptr) device_ = cuda_->allocate(bytes);
}

void GuardedBuffer::upload() const {
  if (cuda_ != nullptr) cuda_->upload(device_.get(), data_.get(), end_ + kGuardBytes);
}

void GuardedBuffer::download() const {
  if (cuda_ != nullptr) cuda_->download(data_.get(), device_.get(), end_ + kGuardBytes);
}

void GuardedBuffer::Free::operator()(std::byte* memory) const { std::free(memory); }

void GuardedBuffer::set_end(std::int64_t bytes) {
  end_ = bytes;
  std::memset(data() + end_, kGuard, static_cast<std::size_t>(kGuardBytes));
}

bool GuardedBuffer::is_intact() const {
  return std::all_of(data() + end_, data() + end_ + kGuardBytes, [](std::byte b) { return b == std::byte{kGuard}; });
}

BenchBuffers::BenchBuffers(std::int64_t max_bytes, std::int64_t max_slot_bytes, CudaSession* cuda)
    : cuda_(cuda), input_(max_bytes, cuda), work_(std::max(max_bytes, max_slot_bytes), cuda) {}

// AllReduce: one vector; ReduceScatter: all blocks in, one out; AllGather: one in, all out.
std::int64_t BenchBuffers::input_count() const {
  return shape_.collective == Collective::kAllGather ? shape_.size.count : shape_.size.total;
}
std::int64_t BenchBuffers::output_count() const {
  return shape_.collective == Collective::kReduceScatter ? shape_.size.count : shape_.size.total;
}
std::int64_t BenchBuffers::slot_bytes() const { return shape_.size.bytes; }
std::int64_t BenchBuffers::block_bytes() const {
  return shape_.collective == Collective::kAllReduce ? 0 : shape_.size.count * size_of(shape_.type);
}

void BenchBuffers::set_shape(const Shape& shape) {
  shape_ = shape;
  const std::int64_t element = size_of(shape.type);
  input_.set_end(input_count() * element);
  work_.set_end(shape.in_place ? slot_bytes() * shape.batch : output_count() * element);
}

void BenchBuffers::fill(const BenchData& data) {
  data.fill(shape_.rank, 0, input_.data(), input_count());
  const std::int64_t slots = shape_.in_place ? shape_.batch : 1;
  std::memset(
      work_.data(), kGarbage,
      static_cast<std::size_t>(slots * (shape_.in_place ? slot_bytes() : output_count() * size_of(shape_.type))));
  input_.upload();
  work_.upload();
  restore();
}

void BenchBuffers::restore() {
  if (!shape_.in_place) return;
  const std::int64_t own = shape_.collective == Collective::kAllGather ? shape_.rank * block_bytes() : 0;
  const std::int64_t bytes = input_count() * size_of(shape_.type);
  for (std::int64_t slot = 0; slot < shape_.batch; ++slot) {
    std::byte* out = work_.target() + slot * slot_bytes() + own;
    if (cuda_ != nullptr) {
      cuda_->copy(out, input_.target(), bytes);
    } else {
      std::memcpy(out, input_.target(), static_cast<std::size_t>(bytes));
    }
  }
  if (cuda_ != nullptr) cuda_->synchronize();
}

CollectiveCall BenchBuffers::call(std::int64_t operation, bool is_native) const {
  CollectiveCall out{shape_.collective, input_.target(), work_.target(), shape_.size.count, shape_.type, shape_.op};
  if (!shape_.in_place) return out;
  std::byte* slot = work_.target() + operation * slot_bytes();
  out.in = out.out = slot;
  if (shape_.collective == Collective::kAllGather) out.in = slot + shape_.rank * block_bytes();
  // MPI leaves the result of an in-place ReduceScatter at the front, we where the rank's block is.
  if (shape_.collective == Collective::kReduceScatter && !is_native) out.out = slot + shape_.rank * block_bytes();
  return out;
}

std::int64_t BenchBuffers::num_wrong(const BenchData& data, bool is_native) const {
  input_.download();
  work_.download();
  std::int64_t wrong = input_.is_intact() && work_.is_intact() ? 0 : 1;
  wrong += data.num_wrong_of_input(shape_.rank, 0, input_.data(), input_count());
  const std::byte* result = work_.data() + (static_cast<std::byte*>(call(0, is_native).out) - work_.target());
  switch (shape_.collective) {
    case Collective::kAllReduce:
      return wrong + data.num_wrong_of_result(0, result, shape_.size.count);
    case Collective::kReduceScatter:
      return wrong + data.num_wrong_of_result(shape_.rank * shape_.size.count, result, shape_.size.count);
    case Collective::kAllGather:
      break;
  }
  for (int r = 0; r < shape_.num_ranks; ++r) {
    wrong += data.num_wrong_of_input(r, 0, result + r * block_bytes(), shape_.size.count);
  }
  return wrong;
}

}  // namespace gar::measure
