#include "gar/cuda.hpp"
#include "runtime/arguments.hpp"
#include "runtime/choice.hpp"
#include "runtime/transports/cuda/device_costs.hpp"
#include "runtime/transports/cuda/host_meeting.hpp"
#include "runtime/transports/cuda/ipc_transport.hpp"
#include "runtime/transports/shared/exchange_once.hpp"

namespace gar {

namespace {

constexpr std::uint64_t kOptionsSequence = 5;  // after those of the transports
constexpr std::uint64_t kCostsSequence = 10;

/// Ranks with and without one would do different things from here on.
bool agree_on_topology(SharedTransport& control, const CommunicatorOptions& options) {
  const int has_topology = options.topology ? 1 : 0;
  check_alike(exchange_once(control, kOptionsSequence, has_topology), "cuda_communicator");
  return has_topology != 0;
}

/// Rank 0 measures its GPU while the others wait; then all take part in some operations.
LocalCosts agree_on_costs(IpcTransport& transport, SharedTransport& control) {
  LocalCosts costs;
  if (transport.size() == 1) return costs;
  if (transport.rank() == 0) costs = measure_device_costs();
  costs = exchange_once(control, kCostsSequence, costs).front();
  // A ReduceScatter reads its operands where they lie, so only the AllGather half of an AllReduce copies; the model
  // charges beta for both.
  costs.beta /= 2;
  costs.alpha = measure_stage_seconds(transport, kCostsSequence + 1);
  return exchange_once(control, kCostsSequence + 100, costs).front();
}

}  // namespace

Communicator cuda_communicator(std::string_view name, int rank, int size, const CommunicatorOptions& options) {
  check_membership(name, rank, size, "cuda_communicator");
  require_cuda("cuda_communicator");
  const CommunicatorOptions complete = with_environment(options, size);
  HostMeeting meeting(name, rank, size, complete.timeout_s);
  return meeting.make([&](std::unique_ptr<SharedTransport> control) {
    SharedTransport& meeting_point = *control;
    auto transport = std::make_unique<IpcTransport>(std::move(control), rank, size);
    const Topology topology =
        agree_on_topology(meeting_point, complete)
            ? *complete.topology
            : device_topology(size, transport->num_sharing(), agree_on_costs(*transport, meeting_point));
    return make_communicator(std::move(transport), complete, topology);
  });
}

}  // namespace gar
