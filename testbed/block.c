// Preloaded into MPI programs on the virtual cluster: ranks that wait give their core away.
//
// MPI libraries look for messages without pause. Where many hosts share few cores, those who wait would take the time
// of those who work. Here a rank that has looked in vain a few times sleeps on the epoll set it looked at, until the
// set has something.
//
// Open MPI (mpi_yield_when_idle 1) calls epoll_wait(timeout 0) and then sched_yield, also after the look that found
// what it waited for: a yield that follows a successful look must not sleep. MPICH with UCX does not yield; there
// (GAR_TESTBED_BLOCK=epoll) epoll_wait itself sleeps. What comes by other ways than the set, such as shared memory, is
// found when the sleep is over: sleeps grow from a few microseconds, each as long as all before it, so that no wait
// becomes more than twice as long.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kFreeLooks = 4, kFirstSleepNs = 20000, kLongestSleepNs = 2000000, kOtherWorkNs = 30000 };

typedef int (*EpollWait)(int, struct epoll_event*, int, int);

static EpollWait next_epoll_wait;
static ssize_t (*next_read)(int, void*, size_t);
static enum { kNever, kInYield, kInEpoll } mode;
static int process_manager = -1;

static __thread int last_set = -1;
static __thread int num_vain_looks;
static __thread long sleep_ns = kFirstSleepNs;
static __thread long last_look_ns;

__attribute__((constructor)) static void start(void) {
  *(void**)&next_epoll_wait = dlsym(RTLD_NEXT, "epoll_wait");
  *(void**)&next_read = dlsym(RTLD_NEXT, "read");
  const char* name = getenv("GAR_TESTBED_BLOCK");
  if (name) mode = strcmp(name, "epoll") == 0 ? kInEpoll : kInYield;
  name = getenv("PMI_FD");
  if (name && mode == kInEpoll) process_manager = atoi(name);
  if (mode != kNever) prctl(PR_SET_TIMERSLACK, 1000);  // the kernel may prolong a sleep by 1 us, not by 50
}

static long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void found_something(void) {
  num_vain_looks = 0;
  sleep_ns = kFirstSleepNs;
}

// True when something came while we slept.
static int sleep_on(int set) {
  struct pollfd wanted = {.fd = set, .events = POLLIN};
  const struct timespec limit = {.tv_sec = 0, .tv_nsec = sleep_ns};
  const int has_something = ppoll(&wanted, 1, &limit, NULL) > 0;
  if (has_something) {
    found_something();
  } else if (sleep_ns < kLongestSleepNs) {
    sleep_ns *= 2;
  }
  return has_something;
}

int epoll_wait(int set, struct epoll_event* events, int max_events, int timeout_ms) {
  if (timeout_ms != 0) return next_epoll_wait(set, events, max_events, timeout_ms);
  last_set = set;
  int num_events = next_epoll_wait(set, events, max_events, 0);
  if (num_events > 0) {
    found_something();
  } else if (mode == kInEpoll) {
    const long now = now_ns();
    if (now - last_look_ns > kOtherWorkNs) found_something();
    if (++num_vain_looks > kFreeLooks && sleep_on(set)) num_events = next_epoll_wait(set, events, max_events, 0);
    last_look_ns = now_ns();
  }
  return num_events;
}

int sched_yield(void) {
  if (mode != kInYield || last_set < 0) return (int)syscall(SYS_sched_yield);
  const long now = now_ns();
  if (now - last_look_ns > kOtherWorkNs) found_something();  // the caller did something else meanwhile
  if (++num_vain_looks > kFreeLooks) sleep_on(last_set);
  last_look_ns = now_ns();
  return 0;
}

// Open MPI's mpirun starts its daemons with setpgid in parent and child, and complains when the child is already
// past it and runs another program. Nothing is wrong then.
int setpgid(pid_t process, pid_t group) {
  const int result = (int)syscall(SYS_setpgid, process, group);
  return result != 0 && errno == EACCES && process == group ? 0 : result;
}

// MPICH 4.0 with UCX, at MPI_Finalize: a rank whose connections are closed waits for the others in a blocking read from
// its process manager (PMI_FD), while some of those still need its answer to close theirs. With more ranks than cores
// that is where many jobs hang. So a rank that reads from there keeps serving its connections until there is something
// to read.
static void* ucx_worker;

static void* in_ucx(const char* name) {
  void* library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
  void* symbol = library ? dlsym(library, name) : NULL;
  if (!symbol) abort();  // somebody has called it, so it is there
  return symbol;
}

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*next)(void*);
  if (!next) *(void**)&next = in_ucx("ucp_worker_progress");
  ucx_worker = worker;
  return next(worker);
}

void ucp_worker_destroy(void* worker) {
  void (*next)(void*);
  *(void**)&next = in_ucx("ucp_worker_destroy");
  ucx_worker = NULL;
  next(worker);
}

ssize_t read(int file, void* buffer, size_t size) {
  if (ucx_worker && file == process_manager) {
    struct pollfd wanted = {.fd = file, .events = POLLIN};
    while (ucx_worker && poll(&wanted, 1, 1) == 0) ucp_worker_progress(ucx_worker);
  }
  return next_read ? next_read(file, buffer, size) : syscall(SYS_read, file, buffer, size);  // also before start()
}
