// What threads and processes that share memory need to go on without some of them (runtime/survival): links that end
// with whoever holds them, and new memory for every generation, which nobody can write to who is no member of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/survival/survival.hpp"
#include "runtime/transports/shared/shared_transport.hpp"

namespace gar {

/// For each of the threads of a group. The options are complete.
std::vector<std::unique_ptr<Survival>> survivals_of_threads(int num_ranks, const CommunicatorOptions& options);

/// Collective. For one of the processes that share `transport`, a group of this name; takes some operations from
/// `sequence` on.
std::unique_ptr<Survival> survival_of_processes(SharedTransport& transport, std::string_view name,
                                                const CommunicatorOptions& options, std::uint64_t sequence);

}  // namespace gar
