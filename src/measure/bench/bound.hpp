// What a plan cannot beat on GPUs whose ranks read each other's memory: the bytes that it moves through memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gar/plan.hpp"

namespace gar::measure {

/// Bytes that all ranks together read and write: a reduction of f operands reads f and writes 1, a received copy reads
/// 1 and writes 1, and nothing that is sent is copied first. For S bytes on N ranks CPS moves (N + 1) S + 2 (N - 1) S,
/// a ring 3 (N - 1) S + 2 (N - 1) S. Throws PlanError.
double memory_traffic(const Plan& plan, double vector_bytes);

/// The plan of a collective in the words of a PlanReport ("cps", "hcps:2x2", "gather"); nothing when the words do not
/// say how it was made. A gather is every rank's reduction of all vectors (or a copy of all blocks).
std::optional<double> memory_traffic_of(const std::string& algorithm, Collective collective, std::int64_t num_ranks,
                                        double vector_bytes);

}  // namespace gar::measure
