#include "runtime/transports/nccl/nccl_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gar/errors.hpp"
#include "runtime/transports/cuda/cuda_call.hpp"
#include "runtime/transports/nccl/nccl_call.hpp"

namespace gar {

namespace {

constexpr std::int64_t kGrainBytes = 256;  // staged messages begin at multiples of this, as memory of cudaMalloc does

int rank_in(ncclComm_t comm) {
  int rank = 0;
  check_nccl(nccl().comm_user_rank(comm, &rank), "ncclCommUserRank");
  return rank;
}

int size_of_comm(ncclComm_t comm) {
  int size = 0;
  check_nccl(nccl().comm_count(comm, &size), "ncclCommCount");
  return size;
}

std::int64_t staged_bytes(const ChunkRecv& recv, std::int64_t element_size) {
  if (recv.is_direct) return 0;
  return ((recv.end - recv.begin) * element_size + kGrainBytes - 1) / kGrainBytes * kGrainBytes;
}

/// What the step that stages most needs.
std::int64_t staging_bytes(const ChunkProgram& program, std::int64_t element_size) {
  std::int64_t most = 0;
  for (const ChunkStep& step : program.steps) {
    std::int64_t sum = 0;
    for (const ChunkRecv& recv : step.recvs) sum += staged_bytes(recv, element_size);
    most = std::max(most, sum);
  }
  return most;
}

ncclDataType_t to_nccl(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return ncclInt8;
    case DataType::kUint8:
      return ncclUint8;
    case DataType::kInt32:
      return ncclInt32;
    case DataType::kUint32:
      return ncclUint32;
    case DataType::kInt64:
      return ncclInt64;
    case DataType::kUint64:
      return ncclUint64;
    case DataType::kFloat16:
      return ncclFloat16;
    case DataType::kBfloat16:
      return ncclBfloat16;
    case DataType::kFloat32:
      return ncclFloat32;
    case DataType::kFloat64:
      return ncclFloat64;
    default:
      break;
  }
  throw InvalidArgument(fmt::format("NCCL does not reduce {}", to_string(type)));
}

ncclRedOp_t to_nccl(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return ncclSum;
    case ReduceOp::kProd:
      return ncclProd;
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
    default:
      break;
  }
  throw InvalidArgument(fmt::format("NCCL has no operator {}", to_string(op)));
}

}  // namespace

NcclComm NcclComm::join(const ncclUniqueId& id, int rank, int size) {
  ncclComm_t comm = nullptr;
  const ncclResult_t result = nccl().comm_init_rank(&comm, size, id, rank);
  if (result == ncclInvalidUsage && to_text(result).find("Duplicate GPU") != std::string::npos) {
    throw DeviceError(
        fmt::format("ncclCommInitRank: {}; NCCL refuses two ranks on one GPU, unless it takes them for different "
                    "hosts: expected a GPU for each rank, or a different NCCL_HOSTID in each process's environment",
                    to_text(result)));
  }
  check_nccl(result, fmt::format("ncclCommInitRank of rank {} of {}", rank, size));
  return {comm, true};
}

NcclComm::~NcclComm() {
  if (is_own_ && comm_ != nullptr) static_cast<void>(nccl().comm_destroy(comm_));
}

void NcclComm::abort() noexcept {
  if (!is_own_ || comm_ == nullptr) return;
  static_cast<void>(nccl().comm_abort(std::exchange(comm_, nullptr)));
}

NcclTransport::NcclTransport(std::unique_ptr<SharedTransport> control, NcclComm comm, NcclPath path)
    : DeviceTransport(std::move(control), rank_in(comm.get()), size_of_comm(comm.get())), comm_(std::move(comm)) {
  if (path == NcclPath::kNative) library_ = "NCCL " + nccl_version();
  token_.reserve(1);
}

NcclTransport::~NcclTransport() {
  const std::shared_ptr<void> scope = enter_for_good();
  finish();
  if (has_failed()) comm_.abort();
}

bool NcclTransport::needs_detour(const Operands& operands) const {
  const auto* in = static_cast<const std::byte*>(operands.in);
  const auto* out = static_cast<const std::byte*>(operands.out);
  return operands.in_bytes > operands.out_bytes && out >= in && out < in + operands.in_bytes &&
         out != in + rank() * operands.out_bytes;
}

void NcclTransport::prepare(const Operands& operands, std::array<std::byte, kNoticeBytes>& /*words*/) {
  if (is_capturing()) staging_.keep_old();
  if (operands.schedule == nullptr) {
    if (needs_detour(operands)) staging_.reserve(operands.out_bytes);
    return;
  }
  const Schedule& schedule = *operands.schedule;
  staging_.reserve(std::max(staging_bytes(schedule.full, schedule.element_size),
                            staging_bytes(schedule.last, schedule.element_size)));
}

void NcclTransport::collect_sends(const Flight& flight, const ChunkStep& step) {
  sends_.clear();
  for (const ChunkSend& send : step.sends) {
    std::int64_t begin = send.begin;
    for (const Part& part : send.parts) {
      const SpaceView& view = part.space == Space::kInput ? flight.input : flight.work;
      sends_.push_back({send.peer, begin, begin + part.count, address(view, part, flight.element_size)});
      begin += part.count;
    }
  }
}

void NcclTransport::collect_receives(const Flight& flight, const ChunkStep& step,
                                     std::span<const std::byte*> operands) {
  receives_.clear();
  std::byte* free = staging_.data();
  for (std::size_t i = 0; i < step.recvs.size(); ++i) {
    const ChunkRecv& recv = step.recvs[i];
    std::byte* place = recv.is_direct ? address(flight.work, recv.target, flight.element_size) : free;
    free += staged_bytes(recv, flight.element_size);
    receives_.push_back({recv.peer, recv.begin, recv.end, place});
    operands[i] = place;
  }
}

void NcclTransport::exchange(std::int64_t element_size) {
  // NCCL matches what two ranks send and receive in the order of their calls. Both ends know the same intervals (the
  // parts of a ChunkSend are what its receiver expects), so both sort by them; messages of the same interval are alike.
  std::sort(sends_.begin(), sends_.end());
  std::sort(receives_.begin(), receives_.end());
  const auto bytes = [&](const Parcel& p) { return static_cast<std::size_t>((p.end - p.begin) * element_size); };
  // One group for both: no rank waits for another one's receive before it gets to its own.
  NcclGroup group;
  for (const Parcel& p : sends_) {
    check_nccl(nccl().send(p.memory, bytes(p), ncclInt8, p.peer, comm_.get(), stream()), "ncclSend", comm_.get());
  }
  for (const Parcel& p : receives_) {
    check_nccl(nccl().recv(p.memory, bytes(p), ncclInt8, p.peer, comm_.get(), stream()), "ncclRecv", comm_.get());
  }
  group.end(comm_.get());
}

bool NcclTransport::try_send(Flight& /*flight*/, int /*step*/) { return true; }

bool NcclTransport::try_receive(Flight& flight, int step, std::span<const std::byte*> operands) {
  const ChunkStep& s = flight.program->steps[static_cast<std::size_t>(step)];
  collect_sends(flight, s);
  collect_receives(flight, s, operands);
  exchange(flight.element_size);
  return true;
}

void NcclTransport::consumed(Flight& /*flight*/, int /*step*/) {}

bool NcclTransport::try_close(Flight& /*flight*/) { return true; }

void NcclTransport::run(const Signature& signature, const Operands& operands) {
  const auto count = static_cast<std::size_t>(signature.count);
  const auto block = static_cast<std::size_t>(signature.count * size_of(signature.type));
  const bool has_detour = needs_detour(operands);
  NcclGroup group;
  switch (signature.collective) {
    case Collective::kAllReduce:
      check_nccl(nccl().all_reduce(operands.in, operands.out, count, to_nccl(signature.type), to_nccl(signature.op),
                                   comm_.get(), stream()),
                 "ncclAllReduce", comm_.get());
      break;
    case Collective::kReduceScatter:
      check_nccl(nccl().reduce_scatter(operands.in, has_detour ? staging_.data() : operands.out, count,
                                       to_nccl(signature.type), to_nccl(signature.op), comm_.get(), stream()),
                 "ncclReduceScatter", comm_.get());
      break;
    case Collective::kAllGather:
      check_nccl(nccl().all_gather(operands.in, operands.out, block, ncclInt8, comm_.get(), stream()), "ncclAllGather",
                 comm_.get());
      break;
  }
  group.end(comm_.get());
  if (has_detour) {
    check_cuda(cudaMemcpyAsync(operands.out, staging_.data(), block, cudaMemcpyDeviceToDevice, stream()),
               "cudaMemcpyAsync");
  }
}

void NcclTransport::meet_on_device() {
  NcclGroup group;
  check_nccl(nccl().all_reduce(token_.data(), token_.data(), 1, ncclInt8, ncclMax, comm_.get(), stream()),
             "ncclAllReduce", comm_.get());
  group.end(comm_.get());
}

void NcclTransport::check_device() {
  if (comm_.get() == nullptr) return;
  ncclResult_t state = ncclSuccess;
  check_nccl(nccl().comm_get_async_error(comm_.get(), &state), "ncclCommGetAsyncError");
  if (state == ncclSuccess || state == ncclInProgress) return;
  throw TransportError(fmt::format("NCCL has failed on rank {}: {}", rank(), to_text(state)));
}

void NcclTransport::release() noexcept { comm_.abort(); }

}  // namespace gar
