// Simulations in words: what limits a stage, what the critical path waits for, what is wrong with the network.
#pragma once

#include <string>
#include <vector>

#include "gar/critical_path.hpp"
#include "gar/simulate.hpp"
#include "gar/what_if.hpp"

namespace gar {

/// A simulated time against a predicted one: "3.1% longer", "2.0% less", "as long".
std::string difference_words(double simulated_s, double predicted_s);

/// The bottleneck of a stage: "downlink of rack7, 92% busy, incast 31% of it". With several chunks a link is busy with
/// other stages, too, and the share is that of this stage.
std::string bottleneck_words(const Topology& topology, const StageUse& stage, bool has_chunks);

/// What a part of the critical path spent its time on: "533 ms on the uplink of server0, 20% of it incast; 19.7 ms of
/// latency".
std::string waiting_words(const Topology& topology, const PathPart& part);

/// One line for each condition: "the link of rack3 has 50% of its capacity".
std::vector<std::string> what_if_words(const WhatIf& what_if);

}  // namespace gar
