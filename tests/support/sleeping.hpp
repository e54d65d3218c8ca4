// Forking a process that has threads.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace gar::test {

/// Waits until all other threads of this process sleep. A child that is forked while another thread holds the lock of
/// an allocator never gets that lock: the address sanitizer's and a bare system call know nothing of fork().
inline void wait_until_others_sleep() {
  const auto is_asleep = [](const std::filesystem::path& task) {
    std::ifstream file(task / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t end_of_name = line.rfind(") ");
    return end_of_name == std::string::npos || line[end_of_name + 2] == 'S';  // no line: the thread has ended
  };
  const std::string own = std::to_string(gettid());
  for (;;) {
    bool are_asleep = true;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      if (task.path().filename() != own && !is_asleep(task.path())) are_asleep = false;
    }
    if (are_asleep) return;
    std::this_thread::yield();
  }
}

}  // namespace gar::test
