// Giving the core away while waiting. A yield costs next to nothing when the core goes to a rank that waits as well, or
// to nobody. When it goes to a program that computes, it is gone for a time slice, some milliseconds. A thread that
// sleeps instead gets the core back as soon as it is woken. So after a yield that took long the next waits go to sleep
// at once, more of them each time that it happens again.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace gar {

inline std::int64_t steady_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}
inline void yield_core() { sched_yield(); }

/// One for each thread that waits.
class Courtesy {
 public:
  static constexpr std::int64_t kLongNs = 2'500'000;  ///< shorter than a time slice, longer than most steps of a rank
  static constexpr int kFewest = 16;                  ///< waits that sleep after a long yield
  static constexpr int kMost = 4096;

  using Clock = std::int64_t (*)();
  using Give = void (*)();
  explicit Courtesy(Clock now = steady_now_ns, Give give = yield_core) : now_(now), give_(give) {}

  /// Once before each wait: may it yield?
  [[nodiscard]] bool may_yield() {
    if (num_sleeping_ == 0) return true;
    --num_sleeping_;
    return false;
  }
  /// Yields. False: that took long, and this wait goes to sleep, too.
  bool yield() {
    const std::int64_t begin = now_();
    give_();
    if (now_() - begin < kLongNs) {
      if (num_short_ < kMost && ++num_short_ == kMost) next_ = kFewest;
      return true;
    }
    num_short_ = 0;
    num_sleeping_ = next_;
    next_ = std::min(2 * next_, kMost);
    return false;
  }

 private:
  Clock now_;
  Give give_;
  int num_sleeping_ = 0;  ///< waits to come that sleep
  int next_ = kFewest;    ///< how many, after the next long yield
  int num_short_ = 0;     ///< yields since the last long one, up to kMost
};

}  // namespace gar
