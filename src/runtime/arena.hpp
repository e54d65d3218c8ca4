// Memory of a chunk's messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace gar {

/// Memory that grows and is never copied: what was in it is lost then.
class Arena {
 public:
  void reserve(std::int64_t bytes) {
    if (bytes <= size_) return;
    constexpr std::int64_t kPage = 4096;
    size_ = (std::max(bytes, size_ * 3 / 2) + kPage - 1) / kPage * kPage;
    memory_.reset();
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, static_cast<std::size_t>(size_))));
    if (!memory_) {
      size_ = 0;
      throw std::bad_alloc();
    }
  }
  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  void leak() {
    static_cast<void>(memory_.release());
    size_ = 0;
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }  // NOLINT(*-no-malloc)
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::int64_t size_ = 0;
};

}  // namespace gar
