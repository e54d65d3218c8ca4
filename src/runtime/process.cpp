// The number lies in a page that the kernel hands to children empty, however they were made (MADV_WIPEONFORK). A child
// that finds it empty takes the next number; the last one is in ordinary memory, so it knows those of its ancestors.
// Kernels before 4.14 do not have that: there it is the number of the process that getpid() gives, a system call.
#include "runtime/process.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace gar {

namespace {

using Number = std::atomic<std::uint64_t>;

/// Null: there is no such page.
Number* make_wiped_number() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (madvise(memory, page, MADV_WIPEONFORK) != 0) {
    munmap(memory, page);
    return nullptr;
  }
  return new (memory) Number(0);
}

}  // namespace

std::uint64_t process_number() {
  static Number* const kNumber = make_wiped_number();  // stays until the process ends
  static Number last{0};
  if (kNumber == nullptr) return static_cast<std::uint64_t>(getpid());
  const std::uint64_t known = kNumber->load(std::memory_order_relaxed);
  if (known != 0) return known;
  std::uint64_t expected = 0;
  const std::uint64_t next = last.fetch_add(1) + 1;
  return kNumber->compare_exchange_strong(expected, next) ? next : expected;
}

}  // namespace gar
