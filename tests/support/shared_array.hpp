// Numbers that threads and forked processes see alike.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <thread>

#include "support/rank_groups.hpp"

namespace gar::test {

class SharedArray {
 public:
  explicit SharedArray(std::size_t size) : size_(size) {
    void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    values_ = new (memory) std::atomic<std::uint64_t>[size]();
  }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;
  ~SharedArray() { munmap(static_cast<void*>(values_), bytes()); }

  std::atomic<std::uint64_t>& operator[](std::size_t i) { return values_[i]; }
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Waits, without the library, until a value has been reached; throws Failure when a busy machine cannot be the
  /// reason any more.
  void await(std::size_t i, std::uint64_t at_least) {
    const auto start = Clock::now();
    while (values_[i].load() < at_least) {
      check(seconds_since(start) < kLongestWait, "another rank did not come");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  [[nodiscard]] std::size_t bytes() const { return size_ * sizeof(std::atomic<std::uint64_t>); }
  std::size_t size_;
  std::atomic<std::uint64_t>* values_ = nullptr;
};

/// A digest of bytes.
inline std::uint64_t digest(const void* data, std::size_t bytes) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  const auto* p = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ p[i]) * 0x100000001B3ULL;
  return hash;
}

}  // namespace gar::test
