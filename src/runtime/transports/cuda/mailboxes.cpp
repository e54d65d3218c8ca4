#include "runtime/transports/cuda/mailboxes.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/transports/cuda/cuda_call.hpp"

namespace gar {

namespace {

constexpr std::size_t kMostOperations = 256;  // of one batch, by CUDA's rules

/// Boxes that no communicator of this process uses.
struct Pool {
  std::mutex mutex;
  std::multimap<std::pair<int, int>, std::uint32_t*> free;  // by device and number of ranks
};
Pool& pool() {
  // Never destroyed: CUDA may be gone before it.
  static auto* const kInstance = new Pool;
  return *kInstance;
}

}  // namespace

MailboxMemory::MailboxMemory(int num_ranks) : num_ranks_(num_ranks) {
  check_cuda(cudaGetDevice(&device_), "cudaGetDevice");
  {
    const std::lock_guard lock(pool().mutex);
    const auto found = pool().free.find({device_, num_ranks});
    if (found != pool().free.end()) {
      data_ = found->second;
      pool().free.erase(found);
    }
  }
  if (data_ == nullptr) {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(bytes())), "cudaMalloc for mailboxes");
    data_ = static_cast<std::uint32_t*>(memory);
  }
  check_cuda(cudaMemset(data_, 0, static_cast<std::size_t>(bytes())), "cudaMemset of mailboxes");
  check_cuda(cudaStreamSynchronize(nullptr), "cudaMemset of mailboxes");
}

MailboxMemory::~MailboxMemory() {
  if (is_dirty_) return;
  const std::lock_guard lock(pool().mutex);
  pool().free.emplace(std::pair(device_, num_ranks_), data_);
}

std::int64_t MailboxMemory::bytes() const {
  return 2 * std::int64_t{num_ranks_} * Mailboxes::kStride * static_cast<std::int64_t>(sizeof(std::uint32_t));
}

void StreamBatch::write(std::uint32_t* box, std::uint32_t value) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = device_address(box);
  operation.writeValue.value = value;
  operation.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  operations_.push_back(operation);
}

void StreamBatch::wait(std::uint32_t* box, std::uint32_t value) {
  CUstreamBatchMemOpParams operation{};
  operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operation.waitValue.address = device_address(box);
  operation.waitValue.value = value;
  operation.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  operations_.push_back(operation);
}

void StreamBatch::enter(CUstream stream) {
  for (std::size_t first = 0; first < operations_.size(); first += kMostOperations) {
    const std::size_t number = std::min(kMostOperations, operations_.size() - first);
    check_driver(driver().stream_batch_mem_op(stream, static_cast<unsigned>(number), operations_.data() + first, 0),
                 "cuStreamBatchMemOp");
  }
  operations_.clear();
}

}  // namespace gar
