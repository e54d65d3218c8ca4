// Whose memory is this? A child that was forked has a copy of everything its parent had, communicators included, and
// must not pass for its parent.
#pragma once

#include <cstdint>

namespace gar {

/// A number that this process shares with none of those that it was forked from. Costs a load from memory, so that
/// every call can ask.
std::uint64_t process_number();

}  // namespace gar
