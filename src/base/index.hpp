// Indices: the library counts ranks, servers and nodes with signed numbers, and containers want unsigned ones.
#pragma once

#include <concepts>
#include <cstddef>

namespace gar {

/// A count or number that is known not to be negative, as the index of a container.
template <std::integral T>
constexpr std::size_t idx(T number) {
  return static_cast<std::size_t>(number);
}

}  // namespace gar
