// Futexes: only a thread that really sleeps, or wakes one, makes a system call.
//
// No wake-up is lost: a sleeper announces itself (num_waiters) before the kernel compares the value, a raiser changes
// the value before it looks for sleepers, and both pairs are sequentially consistent.
#include "runtime/transports/shared/signal.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace gar {

namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
              std::atomic<std::uint32_t>::is_always_lock_free);

void wake(Signal& signal) { syscall(SYS_futex, &signal.value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void raise(Signal& signal, std::uint32_t value) {
  signal.value.store(value, std::memory_order_seq_cst);
  if (signal.num_waiters.load(std::memory_order_seq_cst) != 0) wake(signal);
}

void increase(Signal& signal) {
  signal.value.fetch_add(1, std::memory_order_seq_cst);
  if (signal.num_waiters.load(std::memory_order_seq_cst) != 0) wake(signal);
}

bool wait_for(Signal& signal, std::uint32_t target, Patience& patience, int microseconds) {
  for (int i = 0; i < patience.num_spins; ++i) {
    if (has_reached(signal, target)) return true;
    pause();
  }
  if (patience.num_yields > 0 && patience.courtesy.may_yield()) {
    for (int i = 0; i < patience.num_yields; ++i) {
      if (has_reached(signal, target)) return true;
      if (!patience.courtesy.yield()) break;
    }
  }
  signal.num_waiters.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t seen = signal.value.load(std::memory_order_seq_cst);
  if (!has_reached(seen, target)) {
    const timespec limit{microseconds / 1'000'000, microseconds % 1'000'000 * 1'000L};
    syscall(SYS_futex, &signal.value, FUTEX_WAIT, seen, &limit, nullptr, 0);
  }
  signal.num_waiters.fetch_sub(1, std::memory_order_relaxed);
  return has_reached(signal, target);
}

}  // namespace gar
