// Letters of an agreement as bytes. Whoever sends them knows the secret of the job, or shares a host and a user with
// this rank, but may run wild: what comes is checked before it is used.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "runtime/survival/agreement.hpp"

namespace gar {

/// Ranks, and what an agreement tells of each of them, have an upper limit.
inline constexpr std::size_t kMostMembers = 4096;
inline constexpr std::size_t kMostAddressBytes = 256;
inline constexpr std::size_t kMostLetterBytes = std::size_t{4} << 20;

/// Shorter than kMostLetterBytes.
std::string write_letter(const Letter& letter);
/// Nothing when no rank sends that.
std::optional<Letter> read_letter(std::string_view bytes);

}  // namespace gar
