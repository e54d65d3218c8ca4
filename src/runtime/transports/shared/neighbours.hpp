// Sockets between all processes that share a segment.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/transports/shared/meeting_place.hpp"
#include "runtime/transports/shared/shared_transport.hpp"

namespace gar {

/// Collective; takes operations `sequence` and `sequence` + 1. Connected sockets by rank, the own one empty; each ends
/// when the process at its other end does. They never have a name in the file system, and nobody gets in who is not
/// this user and does not know what the ranks have told each other through the segment. Throws TransportError.
std::vector<File> connect_neighbours(SharedTransport& transport, double timeout_s, std::uint64_t sequence);

}  // namespace gar
