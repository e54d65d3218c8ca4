// A counter in shared memory that others can sleep on.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/courtesy.hpp"

namespace gar {

/// On a cache line of its own. The value only grows (and wraps around).
struct alignas(64) Signal {
  std::atomic<std::uint32_t> value{0};
  std::atomic<std::uint32_t> num_waiters{0};
  std::atomic<std::uint64_t> note{0};  ///< travels with the value
};

/// Has a counter that wraps around come as far as `target`?
inline bool has_reached(std::uint32_t value, std::uint32_t target) {
  return static_cast<std::int32_t>(value - target) >= 0;
}
inline bool has_reached(const Signal& signal, std::uint32_t target) {
  return has_reached(signal.value.load(std::memory_order_acquire), target);
}

/// Sets the value and wakes the threads that sleep on it.
void raise(Signal& signal, std::uint32_t value);
/// Adds 1 and wakes the threads that sleep on it.
void increase(Signal& signal);

/// How a waiting thread behaves before it sleeps. One for each thread: it remembers what yields cost.
struct Patience {
  int num_spins = 0;   ///< looks with a pause between them; for ranks that have a core each
  int num_yields = 0;  ///< then looks after giving the core away, where that pays
  Courtesy courtesy{};
};

/// Waits until the target is reached or about this many microseconds have passed; returns whether it is reached.
bool wait_for(Signal& signal, std::uint32_t target, Patience& patience, int microseconds);

}  // namespace gar
