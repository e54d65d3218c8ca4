// For programs that run on Open MPI: a sched_yield() that is kind to them on a busy machine. Open MPI's ranks that wait
// look for messages and yield, again and again. Beside a program that computes every yield costs a time slice, some
// milliseconds, so tests took ten times as long. After a yield that took long the next ones are short sleeps instead:
// who sleeps gets the core back as soon as it is woken. It stands in the program itself, where it goes before the C
// library's.
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kLongNs = 1000000, kSleeps = 256, kSleepNs = 20000 };

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

__attribute__((visibility("default"))) int sched_yield(void) {
  static _Thread_local int num_sleeps;
  if (num_sleeps > 0) {
    const struct timespec nap = {.tv_nsec = kSleepNs};
    --num_sleeps;
    nanosleep(&nap, NULL);
    return 0;
  }
  const int64_t begin = now_ns();
  syscall(SYS_sched_yield);
  if (now_ns() - begin > kLongNs) num_sleeps = kSleeps;
  return 0;
}
