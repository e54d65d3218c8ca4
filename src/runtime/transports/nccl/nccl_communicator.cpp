// Communicators over NCCL.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "gar/algorithms.hpp"
#include "gar/errors.hpp"
#include "gar/nccl.hpp"
#include "runtime/arguments.hpp"
#include "runtime/choice.hpp"
#include "runtime/transports/cuda/cuda_call.hpp"
#include "runtime/transports/cuda/device_costs.hpp"
#include "runtime/transports/cuda/host_meeting.hpp"
#include "runtime/transports/nccl/nccl_call.hpp"
#include "runtime/transports/nccl/nccl_transport.hpp"
#include "runtime/transports/shared/exchange_once.hpp"

namespace gar {

namespace {

// Numbers of the operations that set a communicator up.
constexpr std::uint64_t kIdSequence = 1;
constexpr std::uint64_t kGreetingSequence = 3;
constexpr std::uint64_t kOptionsSequence = 2;
constexpr std::uint64_t kShortSequence = 10;
constexpr std::uint64_t kLongSequence = kShortSequence + kMeasuredRounds;
constexpr std::uint64_t kCostsSequence = kLongSequence + kMeasuredRounds;

constexpr std::int64_t kShortBlock = 1024;          // floats that a rank passes on in a step
constexpr std::int64_t kLongVector = 4 << 20;       // floats that all pass on together,
constexpr std::int64_t kLeastLongBlock = 64 << 10;  // and each of them at least
constexpr double kLeastBeta = 1e-13;

/// All ranks' values. They go over NCCL itself, because a caller's communicator comes without anything else.
template <class T>
std::vector<T> gather(NcclTransport& transport, std::uint64_t sequence, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> out(static_cast<std::size_t>(transport.size()));
  const std::int64_t bytes = sizeof(T);
  DeviceBuffer memory;
  memory.reserve(transport.size() * bytes);
  std::byte* own = memory.data() + transport.rank() * bytes;
  check_cuda(cudaMemcpy(own, &value, sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  Signature signature;
  signature.sequence = sequence;
  signature.collective = Collective::kAllGather;
  signature.count = bytes;
  signature.type = DataType::kUint8;
  const Operands operands{.in = own,
                          .out = memory.data(),
                          .in_bytes = bytes,
                          .out_bytes = transport.size() * bytes,
                          .stream = std::nullopt};
  try {
    transport.begin(signature, operands);
    while (!transport.try_meet()) transport.wait();
    transport.run(signature, operands);
    while (!transport.try_complete()) transport.wait();
  } catch (const std::exception& e) {
    transport.fail(e.what());  // before the memory goes, which would wait for the stream
    throw;
  }
  check_cuda(cudaMemcpy(out.data(), memory.data(), out.size() * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return out;
}

/// What ranks tell each other once.
struct Greeting {
  cudaUUID_t gpu{};
  LocalCosts costs;  ///< rank 0's are used
};

/// alpha and beta of what NCCL has between the ranks: every rank sends to the next one, and nothing is reduced.
void measure_wire(NcclTransport& transport, LocalCosts& costs) {
  const std::int64_t size = transport.size();
  const Plan ring = as_all_gather(build_plan(parse_algorithm("ring"), size));
  const std::int64_t long_block = std::max(kLongVector / size, kLeastLongBlock);
  const auto steps = static_cast<double>(size - 1);
  const double short_s = measure_seconds(transport, ring, kShortBlock, kShortSequence) / steps;
  const double long_s = measure_seconds(transport, ring, long_block, kLongSequence) / steps;
  costs.alpha = short_s;
  costs.beta = std::max((long_s - short_s) / static_cast<double>(long_block - kShortBlock), kLeastBeta);
}

/// Rank 0's measurements, for all ranks.
Topology measured_topology(NcclTransport& transport) {
  Greeting own;
  own.gpu = current_gpu();
  if (transport.rank() == 0) own.costs = measure_device_costs();
  const std::vector<Greeting> all = gather(transport, kGreetingSequence, own);
  LocalCosts costs = all.front().costs;
  measure_wire(transport, costs);
  std::vector<cudaUUID_t> gpus;
  for (const Greeting& greeting : all) gpus.push_back(greeting.gpu);
  const int num_sharing = most_sharing(gpus);
  // The wire was measured with all ranks on it.
  costs.beta /= num_sharing;
  return device_topology(transport.size(), num_sharing, gather(transport, kCostsSequence, costs).front());
}

/// Ranks with and without one would do different things from here on.
bool agree_on_topology(NcclTransport& transport, const CommunicatorOptions& options) {
  const int has_topology = options.topology ? 1 : 0;
  check_alike(gather(transport, kOptionsSequence, has_topology), "nccl_communicator");
  return has_topology != 0;
}

Communicator on_transport(std::unique_ptr<NcclTransport> transport, const CommunicatorOptions& options) {
  const bool has_plans = transport->size() > 1 && transport->own_collectives() == nullptr;
  Topology topology = device_topology(transport->size(), 1, {});
  try {
    if (has_plans && !agree_on_topology(*transport, options)) topology = measured_topology(*transport);
  } catch (const std::exception& e) {
    transport->fail(e.what());
    throw;
  }
  return make_communicator(std::move(transport), options, topology);
}

ncclUniqueId make_id() {
  ncclUniqueId id{};
  check_nccl(nccl().get_unique_id(&id), "ncclGetUniqueId");
  return id;
}

void check_device_of(ncclComm_t comm) {
  if (comm == nullptr) throw InvalidArgument("nccl_communicator: `comm` is null; expected a communicator of NCCL");
  int device = 0;
  check_nccl(nccl().comm_cu_device(comm, &device), "ncclCommCuDevice");
  int current = 0;
  check_cuda(cudaGetDevice(&current), "cudaGetDevice");
  if (device == current) return;
  throw InvalidArgument(
      fmt::format("nccl_communicator: `comm` works on device {}, but device {} is current; accepted after "
                  "cudaSetDevice({})",
                  device, current, device));
}

}  // namespace

Communicator nccl_communicator(std::string_view name, int rank, int size, const CommunicatorOptions& options,
                               NcclPath path) {
  check_membership(name, rank, size, "nccl_communicator");
  require_cuda("nccl_communicator");
  const CommunicatorOptions complete = with_environment(options, size);
  HostMeeting meeting(name, rank, size, complete.timeout_s);
  return meeting.make([&](std::unique_ptr<SharedTransport> control) {
    // NCCL waits for ranks that never come: what may fail on one of them, such as CUDA on a full GPU, comes before.
    check_cuda(cudaFree(nullptr), "CUDA's start on the device");
    const ncclUniqueId own = rank == 0 ? make_id() : ncclUniqueId{};
    const ncclUniqueId id = exchange_once(*control, kIdSequence, own).front();
    NcclComm comm = NcclComm::join(id, rank, size);
    return on_transport(std::make_unique<NcclTransport>(std::move(control), std::move(comm), path), complete);
  });
}

Communicator nccl_communicator(ncclComm* comm, const CommunicatorOptions& options, NcclPath path) {
  require_cuda("nccl_communicator");
  check_device_of(comm);
  auto transport = std::make_unique<NcclTransport>(nullptr, NcclComm::borrow(comm), path);
  const CommunicatorOptions complete = with_environment(options, transport->size());
  return on_transport(std::move(transport), complete);
}

}  // namespace gar
