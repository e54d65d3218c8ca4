// For transports whose receivers read the senders' memory where it lies.
//
// Where a message lies, and when its sender may write there again, follow from the programs of both ends; so a rank
// also compiles its peers' programs. Once per length, O(programs of the peers).
#pragma once

#include <cstdint>

#include "runtime/program.hpp"

namespace gar {

/// Cuts what `program` (of `rank`) receives so that every message is one part of its sender's memory, and fills in
/// ChunkRecv::source, ChunkStep::readers and ChunkProgram::last_readers. Sender and receiver cut in the same way: the
/// parts of a ChunkSend are the messages that its receiver expects, in order.
void find_peer_memory(const PlanIndex& index, std::int64_t rank, ChunkProgram& program);

}  // namespace gar
