// What must be the same on all ranks, as numbers that they compare before anything else. It decides which collective
// calls the set-up makes, and which plans run. (A launcher that does not hand the environment on to other hosts is a
// reason why it is not.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "gar/communicator.hpp"

namespace gar {

inline constexpr std::size_t kNumSharedOptions = 9;
using SharedOptions = std::array<std::uint64_t, kNumSharedOptions>;

/// Of options that are complete (with_environment). `path`: the transport's, as a number; `is_default`: as in
/// is_exploring.
SharedOptions shared_options(const CommunicatorOptions& options, std::uint64_t path, int num_fakes, bool is_default);

/// The first rank that has something else than rank 0, and what, as a message without the function's name; empty: none.
std::string difference_of(std::span<const SharedOptions> ranks);

}  // namespace gar
