#include "runtime/transports/cuda/ipc_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "gar/errors.hpp"
#include "runtime/transports/cuda/cuda_call.hpp"
#include "runtime/transports/cuda/device_costs.hpp"
#include "runtime/transports/shared/exchange_once.hpp"

namespace gar {

namespace {

/// What ranks tell each other once.
struct Greeting {
  IpcAddress boxes;
  cudaUUID_t gpu{};
};

/// Two ranks that exchange the same elements would both wait until the other one has read them.
void check_steps(const Schedule& schedule, const ChunkProgram& program) {
  for (const ChunkStep& step : program.steps) {
    if (step.overwrites_lent) {
      throw PlanError(
          fmt::format("step {} of the plan '{}' overwrites elements that it sends; expected over cuda-ipc "
                      "plans that do not (over nccl: any)",
                      step.number, schedule.plan->plan.algorithm));
    }
  }
}

/// A vector that is longer than its memory would be the end of every rank's CUDA.
void check_length(const IpcAddress& address, std::int64_t bytes, const char* name) {
  const std::uint64_t there = address.bytes - address.offset;
  if (static_cast<std::uint64_t>(bytes) <= there) return;
  throw InvalidArgument(
      fmt::format("`{}` has {} bytes, but only {} are left of its allocation; expected memory for all elements", name,
                  bytes, there));
}

}  // namespace

IpcTransport::IpcTransport(std::unique_ptr<SharedTransport> control, int rank, int size)
    : DeviceTransport(std::move(control), rank, size),
      own_boxes_(size),
      boxes_(static_cast<std::size_t>(size)),
      buffers_(static_cast<std::size_t>(size)) {
  check_cuda(cudaStreamCreateWithFlags(&releasing_, cudaStreamNonBlocking), "cudaStreamCreate");
  meet_peers();
}

IpcTransport::~IpcTransport() {
  const std::shared_ptr<void> scope = enter_for_good();
  finish();
  if (has_failed()) own_boxes_.set_dirty();
  mappings_.close();
  if (releasing_ != nullptr) static_cast<void>(cudaStreamDestroy(releasing_));
}

TransportLimits IpcTransport::limits() const {
  TransportLimits out = DeviceTransport::limits();
  out.has_equal_halves = false;  // operands are read in place, and only AllGather copies
  return out;
}

void IpcTransport::meet_peers() {
  Greeting own;
  own.boxes = ipc_address_of(own_boxes_.data(), "mailboxes");
  own.gpu = current_gpu();
  const std::vector<Greeting> all = exchange_once(*control(), 1, own);
  std::vector<cudaUUID_t> gpus;
  for (int peer = 0; peer < size(); ++peer) {
    const Greeting& greeting = all[static_cast<std::size_t>(peer)];
    gpus.push_back(greeting.gpu);
    if (peer != rank() && greeting.boxes.process == own.boxes.process) {
      throw InvalidArgument(
          fmt::format("cuda_communicator: ranks {} and {} are in one process; expected a process for every rank",
                      std::min(peer, rank()), std::max(peer, rank())));
    }
    std::byte* base =
        peer == rank() ? reinterpret_cast<std::byte*>(own_boxes_.data()) : mappings_.open(greeting.boxes, true);
    boxes_[static_cast<std::size_t>(peer)] = {reinterpret_cast<std::uint32_t*>(base), size()};
  }
  num_sharing_ = most_sharing(gpus);
  // No rank writes into a box before its owner has emptied it and all ranks are here.
  static_cast<void>(exchange_once(*control(), 2, 0));
}

void IpcTransport::prepare(const Operands& operands, std::array<std::byte, kNoticeBytes>& words) {
  static_assert(sizeof(Addresses) <= kNoticeBytes);
  if (operands.schedule != nullptr) {
    check_steps(*operands.schedule, operands.schedule->full);
    check_steps(*operands.schedule, operands.schedule->last);
  }
  Addresses addresses;
  addresses.in = ipc_address_of(operands.in, "in");
  check_length(addresses.in, operands.in_bytes, "in");
  // What ReduceScatter has reduced so far lies in the scratch memory.
  const bool has_scratch = operands.schedule != nullptr && scratch_bytes(*operands.schedule, limits()) > 0;
  own_ = {static_cast<const std::byte*>(operands.in),
          has_scratch ? compute().scratch(0) : static_cast<const std::byte*>(operands.out)};
  addresses.out = ipc_address_of(own_.out, "out");
  if (!has_scratch) check_length(addresses.out, operands.out_bytes, "out");
  std::memcpy(words.data(), &addresses, sizeof addresses);
}

void IpcTransport::agree(std::span<const Notice* const> notices) {
  mappings_.begin();
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    Addresses addresses;
    std::memcpy(&addresses, notices[static_cast<std::size_t>(peer)]->words.data(), sizeof addresses);
    PeerBuffers& buffers = buffers_[static_cast<std::size_t>(peer)];
    buffers.in = mappings_.open(addresses.in, is_capturing());
    buffers.out = mappings_.open(addresses.out, is_capturing());
  }
}

void IpcTransport::add(const std::vector<BoxAction>& actions) {
  for (const BoxAction& action : actions) {
    const Mailboxes boxes = boxes_[static_cast<std::size_t>(action.box.owner)];
    std::uint32_t* box = action.box.kind == Box::Kind::kPublished ? boxes.published(action.box.writer)
                                                                  : boxes.consumed(action.box.writer);
    if (action.is_wait) {
      batch_.wait(box, action.value);
    } else {
      batch_.write(box, action.value);
    }
  }
}

bool IpcTransport::try_send(Flight& flight, int step) {
  std::vector<BoxAction> actions;
  MailboxProtocol(*flight.program, rank()).send(step, actions);
  add(actions);
  return true;
}

bool IpcTransport::try_receive(Flight& flight, int step, std::span<const std::byte*> operands) {
  std::vector<BoxAction> actions;
  MailboxProtocol(*flight.program, rank()).receive(step, actions);
  add(actions);
  batch_.enter(stream());
  const ChunkStep& s = flight.program->steps[static_cast<std::size_t>(step)];
  for (std::size_t i = 0; i < s.recvs.size(); ++i) {
    const ChunkRecv& recv = s.recvs[i];
    const PeerBuffers& buffers = buffers_[static_cast<std::size_t>(recv.peer)];
    const bool is_input = recv.source.space == Space::kInput;
    const SpaceView& own = is_input ? flight.input : flight.work;
    // The chunk lies at the same distance from the beginning on all ranks.
    const std::ptrdiff_t distance = own.base - (is_input ? own_.in : own_.out);
    const SpaceView view{(is_input ? buffers.in : buffers.out) + distance, own.block_stride};
    operands[i] = address(view, recv.source, flight.element_size);
  }
  return true;
}

void IpcTransport::consumed(Flight& flight, int step) {
  std::vector<BoxAction> actions;
  MailboxProtocol(*flight.program, rank()).consume(step, actions);
  add(actions);
}

bool IpcTransport::try_close(Flight& flight) {
  std::vector<BoxAction> actions;
  MailboxProtocol(*flight.program, rank()).close(actions);
  add(actions);
  batch_.enter(stream());
  return true;
}

void IpcTransport::release() noexcept {
  // Any step has been begun and completed; what is written here later by a stream that goes on does no harm.
  own_boxes_.set_dirty();
  static_cast<void>(cudaMemsetAsync(own_boxes_.data(), 0x7f, static_cast<std::size_t>(own_boxes_.bytes()), releasing_));
  static_cast<void>(cudaStreamSynchronize(releasing_));
}

}  // namespace gar
