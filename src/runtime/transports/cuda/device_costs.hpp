// Parameters of a GPU for the model, from a measurement of some milliseconds.
#pragma once

#include "gar/plan.hpp"
#include "gar/topology.hpp"
#include "runtime/calibrate.hpp"
#include "runtime/transports/cuda/device_transport.hpp"

namespace gar {

/// gamma, delta and beta (a copy) of the current device's memory, for a rank that has it for itself. Where there is no
/// memory for a measurement: built-in values.
LocalCosts measure_device_costs();

/// Which GPU the current device is, on whatever host.
cudaUUID_t current_gpu();
/// The most ranks that are on one GPU.
int most_sharing(const std::vector<cudaUUID_t>& gpus);

/// Seconds of an AllReduce or AllGather of floats by `plan`, `count` of them (in a block); the median of
/// kMeasuredRounds. Collective, on a transport that nothing has used yet; operations get numbers from `sequence` on.
double measure_seconds(DeviceTransport& transport, Plan plan, std::int64_t count, std::uint64_t sequence);
inline constexpr int kMeasuredRounds = 7;

/// Seconds of the stages of a small AllReduce, one stage on average; otherwise as measure_seconds.
double measure_stage_seconds(DeviceTransport& transport, std::uint64_t sequence);

/// Ranks of a host, `num_sharing` of them on each GPU.
Topology device_topology(int num_ranks, int num_sharing, const LocalCosts& costs);

}  // namespace gar
